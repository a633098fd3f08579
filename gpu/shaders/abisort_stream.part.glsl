// Before every fragment program of gl-abisort (gpu/sort/gl_abisort_engine.cc puts it there, after
// #version, Z_ORDER and WIDE). Streams: gpu/sort/abisort_plan.h; their layout: stream_layout.h.
//   node   key or its high word, id, left son, right son: one texel; two nodes are a pair, which lies
//          at one place of two textures
//   value  key or its high word, id: eight values lie at one place of four textures
uniform uint pairs_width_log2;
uniform uint values_width_log2;
uniform uint keys_width_log2;
uniform uint nodes;  // N; nodes from N on are the trees in order
flat in uvec4 block;  // first, first of the phase before, first of the phase after, stage | phase << 8
flat in uint block_pairs;

uint EvenBits(uint a) {
  a &= 0x55555555u;
  a = (a | (a >> 1)) & 0x33333333u;
  a = (a | (a >> 2)) & 0x0f0f0f0fu;
  a = (a | (a >> 4)) & 0x00ff00ffu;
  return (a | (a >> 8)) & 0x0000ffffu;
}

uint SpreadBits(uint a) {
  a = (a | (a << 8)) & 0x00ff00ffu;
  a = (a | (a << 4)) & 0x0f0f0f0fu;
  a = (a | (a << 2)) & 0x33333333u;
  return (a | (a << 1)) & 0x55555555u;
}

ivec2 RowWise(uint a, uint width_log2) {
  return ivec2(a & ((1u << width_log2) - 1u), a >> width_log2);
}

#if Z_ORDER
ivec2 PointOf(uint a, uint width_log2) { return ivec2(EvenBits(a), EvenBits(a >> 1)); }
uint IndexOf(uvec2 at, uint width_log2) { return SpreadBits(at.x) | (SpreadBits(at.y) << 1); }
#else
ivec2 PointOf(uint a, uint width_log2) { return RowWise(a, width_log2); }
uint IndexOf(uvec2 at, uint width_log2) { return (at.y << width_log2) | at.x; }
#endif

// The instance of the kernel that this fragment is.
uint Instance(uint width_log2) { return IndexOf(uvec2(gl_FragCoord.xy), width_log2) - block.x; }

// Node i of trees that are stored in order.
uvec4 InOrderNode(uint i, uvec2 value) {
  uint half_span = ((i + 1u) & ~i) >> 1;
  return uvec4(value, nodes + i - half_span, nodes + i + half_span);
}
