#version 330 core
// Finds for each place of a block the element that moves there: Roger, Assarson, Holzschuch
// (Efficient Stream Reduction on the GPU, 2007), figure 5, for each of four channels. Without
// `improved` the plain dichotomic search of Horn (2005), whose loops all have the same length.
uniform usampler2D sums;  // of unwanted elements, inclusive, within blocks
uniform usampler2D keys_high;
uniform usampler2D keys_low;
uniform uint block_log2;
uniform uint width_log2;
uniform bool improved;

layout(location = 0) out uvec4 found_high;
layout(location = 1) out uvec4 found_end;  // keys of the channel up to the one that was found
layout(location = 2) out uvec4 found_low;

ivec2 place(uint index) {
  return ivec2(index & ((1u << width_log2) - 1u), index >> width_log2);
}

uint sum_at(uint index, int channel) { return texelFetch(sums, place(index), 0)[channel]; }

// REQUIRES: the block that begins at `base` has more than i wanted elements.
uint find_improved(uint base, uint i, int channel) {
  uint lower = i + sum_at(base + i, channel);
  uint upper = i + sum_at(base + (1u << block_log2) - 1u, channel);
  for (int round = 0; round < 32; ++round) {  // each halves the interval; never more
    uint j = (lower + upper) / 2u;
    uint sum = sum_at(base + j, channel);
    uint before = j == 0u ? 0u : sum_at(base + j - 1u, channel);
    int found = int(j - sum) - int(i);
    if (found == 0 && sum == before) return j;
    if (found < 0) {
      lower = j + uint(-found);
    } else {
      upper = j - uint(max(1, found));
    }
  }
  return lower;
}

uint find_plain(uint base, uint i, int channel) {
  uint low = 0u;  // the first j with more than i wanted elements up to it lies in [low, high]
  uint high = (1u << block_log2) - 1u;
  for (uint round = 0u; round < block_log2; ++round) {
    uint j = (low + high) / 2u;
    if (j + 1u - sum_at(base + j, channel) > i) {
      high = j;
    } else {
      low = j + 1u;
    }
  }
  return low;
}

void main() {
  uvec2 at = uvec2(gl_FragCoord.xy);
  uint index = (at.y << width_log2) | at.x;
  uint i = index & ((1u << block_log2) - 1u);
  uint base = index - i;
  found_high = uvec4(0u);
  found_end = uvec4(0u);
  found_low = uvec4(0u);
  for (int channel = 0; channel < 4; ++channel) {
    uint wanted = (1u << block_log2) - sum_at(base + (1u << block_log2) - 1u, channel);
    if (i >= wanted) continue;
    uint j = base + (improved ? find_improved(base, i, channel) : find_plain(base, i, channel));
    found_high[channel] = texelFetch(keys_high, place(j), 0)[channel];
    found_low[channel] = texelFetch(keys_low, place(j), 0)[channel];
    found_end[channel] = j + 1u;
  }
}
