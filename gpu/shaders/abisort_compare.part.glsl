// Before the fragment programs of gl-abisort that compare. The id is the second key: no two values
// are equal.
#if WIDE
uniform usampler2D low_words;  // of the keys, by id; four a texel

uint LowWord(uint id) { return texelFetch(low_words, RowWise(id >> 2, keys_width_log2), 0)[id & 3u]; }
#endif

bool Greater(uvec2 a, uvec2 b) {
  if (a.x != b.x) return a.x > b.x;
#if WIDE
  uint a_low = LowWord(a.y);
  uint b_low = LowWord(b.y);
  if (a_low != b_low) return a_low > b_low;
#endif
  return a.y > b.y;
}
