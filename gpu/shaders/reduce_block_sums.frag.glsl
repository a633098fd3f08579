#version 330 core
// The last element of each block's prefix sum: how many of the block are unwanted.
uniform usampler2D sums;
uniform uint block_log2;
uniform uint width_log2;         // of the sums
uniform uint blocks_width_log2;  // of what is drawn

layout(location = 0) out uvec4 block_sum;

void main() {
  uvec2 at = uvec2(gl_FragCoord.xy);
  uint block = (at.y << blocks_width_log2) | at.x;
  uint last = (block << block_log2) + (1u << block_log2) - 1u;
  block_sum = texelFetch(sums, ivec2(last & ((1u << width_log2) - 1u), last >> width_log2), 0);
}
