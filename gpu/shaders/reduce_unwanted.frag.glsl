#version 330 core
// Flags for the run-length encoding of sorted keys (gpu/reduce/reduced_channel.h): 1 for a key that
// is not the last of its run, or that lies behind the channel's keys; 0 for one that is kept.
// Keys of 32 bits: both samplers read the same texture.
uniform usampler2D keys_high;
uniform usampler2D keys_low;
uniform uint width_log2;
uniform uvec4 lengths;  // keys of each channel

layout(location = 0) out uvec4 unwanted;

ivec2 place(uint index) {
  return ivec2(index & ((1u << width_log2) - 1u), index >> width_log2);
}

void main() {
  uvec2 at = uvec2(gl_FragCoord.xy);
  uint index = (at.y << width_log2) | at.x;
  // Behind the last key of the texture lies none: `lengths` says so before it is compared.
  ivec2 next = place(min(index + 1u, uint(textureSize(keys_high, 0).y << width_log2) - 1u));
  uvec4 same =
      uvec4(equal(texelFetch(keys_high, ivec2(at), 0), texelFetch(keys_high, next, 0))) &
      uvec4(equal(texelFetch(keys_low, ivec2(at), 0), texelFetch(keys_low, next, 0)));
  uvec4 is_last = uvec4(greaterThanEqual(uvec4(index + 1u), lengths));
  uvec4 behind = uvec4(greaterThanEqual(uvec4(index), lengths));
  unwanted = (same & (uvec4(1u) - is_last)) | behind;
}
