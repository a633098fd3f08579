#version 330 core
// Each block as a line of the reduced stream: Roger, Assarson, Holzschuch (Efficient Stream
// Reduction on the GPU, 2007), §III-C, figures 6 and 7. Four vertices a block: the line in the row
// where it begins, and the rest that wraps around into the next row; a line of no length draws
// nothing. The viewport is two widths wide, so that no end of a line is clipped.
uniform usampler2D block_sums;  // unwanted elements of the blocks up to each, inclusive
uniform uint blocks_width_log2;
uniform uint block_log2;
uniform uint width_log2;
uniform uint height_log2;
uniform int channel;

flat out uint source;  // of the line's first texel: index in the stream of reduced blocks
flat out uint first;   // the place where the block begins in the reduced stream

uint sum_of(uint block) {
  ivec2 at = ivec2(block & ((1u << blocks_width_log2) - 1u), block >> blocks_width_log2);
  return texelFetch(block_sums, at, 0)[channel];
}

void main() {
  uint block = uint(gl_VertexID) >> 2;
  bool wrapped = (gl_VertexID & 2) != 0;
  bool is_end = (gl_VertexID & 1) != 0;
  uint before = block == 0u ? 0u : sum_of(block - 1u);
  uint length = (1u << block_log2) - (sum_of(block) - before);
  uint width = 1u << width_log2;
  source = block << block_log2;
  first = source - before;
  uint x = first & (width - 1u);
  uint y = first >> width_log2;
  uint in_row = min(length, width - x);
  uint from = wrapped ? 0u : x;
  uint to = wrapped ? length - in_row : x + in_row;
  // From the middle of a texel, which a line leaves, to the middle of another, which it does not.
  float column = float(is_end ? to : from) + 0.5;
  float row = float(wrapped ? y + 1u : y) + 0.5;
  gl_Position = vec4(column / float(width) - 1.0,
                     2.0 * row / float(1u << height_log2) - 1.0, 0.0, 1.0);
}
