#version 330 core
// One step of the bitonic network (gpu/sort/network_schedule.h): each texel holds key number
// i = y * width + x of four windows, one in each channel, and keeps the smaller or the larger of its
// own keys and its partner's. The comparison is on integers: exact for every bit pattern.
uniform usampler2D keys;
uniform uint partner_mask;  // partner = i XOR this
uniform uint distance;      // i keeps the smaller key when this bit of i is 0
uniform uint width_log2;

layout(location = 0) out uvec4 sorted;

void main() {
  uvec2 at = uvec2(gl_FragCoord.xy);
  uint own_index = (at.y << width_log2) | at.x;
  uint partner_index = own_index ^ partner_mask;
  ivec2 partner_at = ivec2(partner_index & ((1u << width_log2) - 1u), partner_index >> width_log2);
  uvec4 own = texelFetch(keys, ivec2(at), 0);
  uvec4 partner = texelFetch(keys, partner_at, 0);
  sorted = (own_index & distance) == 0u ? min(own, partner) : max(own, partner);
}
