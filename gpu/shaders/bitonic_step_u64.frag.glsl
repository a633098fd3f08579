#version 330 core
// As bitonic_step_u32, for keys of 64 bits: their high and low words lie in two textures and leave
// through two render targets.
uniform usampler2D keys_high;
uniform usampler2D keys_low;
uniform uint partner_mask;
uniform uint distance;
uniform uint width_log2;

layout(location = 0) out uvec4 sorted_high;
layout(location = 1) out uvec4 sorted_low;

// All ones in the channels where a < b.
uvec4 less(uvec4 a_high, uvec4 a_low, uvec4 b_high, uvec4 b_low) {
  uvec4 high = uvec4(lessThan(a_high, b_high));
  uvec4 same = uvec4(equal(a_high, b_high));
  uvec4 low = uvec4(lessThan(a_low, b_low));
  return uvec4(0u) - (high | (same & low));
}

void main() {
  uvec2 at = uvec2(gl_FragCoord.xy);
  uint own_index = (at.y << width_log2) | at.x;
  uint partner_index = own_index ^ partner_mask;
  ivec2 partner_at = ivec2(partner_index & ((1u << width_log2) - 1u), partner_index >> width_log2);
  uvec4 own_high = texelFetch(keys_high, ivec2(at), 0);
  uvec4 own_low = texelFetch(keys_low, ivec2(at), 0);
  uvec4 partner_high = texelFetch(keys_high, partner_at, 0);
  uvec4 partner_low = texelFetch(keys_low, partner_at, 0);
  // Equal keys: both keep their own, so nothing is lost or doubled.
  uvec4 take = (own_index & distance) == 0u
                   ? less(partner_high, partner_low, own_high, own_low)
                   : less(own_high, own_low, partner_high, partner_low);
  sorted_high = (partner_high & take) | (own_high & ~take);
  sorted_low = (partner_low & take) | (own_low & ~take);
}
