#version 330 core
// Every k-th key: texel i holds the keys at place first + i * stride.
uniform usampler2D keys_high;
uniform usampler2D keys_low;
uniform uint first;
uniform uint stride;
uniform uint width_log2;
uniform uint last;  // index of the texture's last key

layout(location = 0) out uvec4 sample_high;
layout(location = 1) out uvec4 sample_low;

void main() {
  uvec2 at = uvec2(gl_FragCoord.xy);
  uint index = min(first + ((at.y << width_log2) | at.x) * stride, last);
  ivec2 place = ivec2(index & ((1u << width_log2) - 1u), index >> width_log2);
  sample_high = texelFetch(keys_high, place, 0);
  sample_low = texelFetch(keys_low, place, 0);
}
