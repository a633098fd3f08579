#version 330 core
// One pass of a prefix sum (gpu/reduce/prefix_scan.h) over blocks, four channels at once.
uniform usampler2D sums;
uniform uint distance;
uniform uint which;       // 0: all, 1: the last of every 2 * distance, 2: the middle of them
uniform uint block_mask;  // elements of a block - 1
uniform uint width_log2;

layout(location = 0) out uvec4 summed;

void main() {
  uvec2 at = uvec2(gl_FragCoord.xy);
  uint index = (at.y << width_log2) | at.x;
  uint in_block = index & block_mask;
  uint in_pair = (in_block + 1u) & (2u * distance - 1u);
  bool adds = which == 0u   ? in_block >= distance
              : which == 1u ? in_pair == 0u
                            : in_pair == distance && in_block >= 2u * distance;
  summed = texelFetch(sums, ivec2(at), 0);
  if (adds) {
    uint other = index - distance;
    summed += texelFetch(sums, ivec2(other & ((1u << width_log2) - 1u), other >> width_log2), 0);
  }
}
