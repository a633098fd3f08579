// One phase of adaptive min/max determination (Greß, Zachmann (GPU-ABiSort, 2006), §4.2, listings 3
// and 4): a fragment reads a pair of nodes wherever they lie and writes them, exchanged or not, to
// its own place; sons of the nodes that the next phase will write already point there.
uniform usampler2D nodes_even;
uniform usampler2D nodes_odd;
uniform usampler2D pq_in;
uniform uint level;
uniform uint alternating;  // 1: odd trees are sorted descending

layout(location = 0) out uvec4 even_node;
layout(location = 1) out uvec4 odd_node;
layout(location = 2) out uvec2 pq;

uvec4 NodeAt(uint a) {
  ivec2 at = PointOf(a >> 1, pairs_width_log2);
  return (a & 1u) == 0u ? texelFetch(nodes_even, at, 0) : texelFetch(nodes_odd, at, 0);
}

void main() {
  uint instance = Instance(pairs_width_log2);
  uint stage = block.w & 255u;
  uint phase = block.w >> 8;
  bool descending = ((instance >> stage) & alternating) != 0u;
  if (phase == 0u) {
    // Of the first stage in the trees in order; of a later one where the stage before left them.
    uint tree = nodes + (instance << level);
    uint span = 1u << level;
    uvec4 root = NodeAt(stage == 0u ? tree + span / 2u - 1u : block_pairs + instance);
    uvec4 spare = NodeAt(stage == 0u ? tree + span - 1u : instance);
    bool exchange = Greater(root.xy, spare.xy) != descending;
    even_node = exchange ? uvec4(spare.xy, root.wz) : root;
    odd_node = exchange ? uvec4(root.xy, spare.zw) : spare;
    pq = even_node.zw;
    return;
  }
  uvec2 from = texelFetch(pq_in, PointOf(block.y + instance, pairs_width_log2), 0).xy;
  uvec4 p = NodeAt(from.x);
  uvec4 q = NodeAt(from.y);
  uint son = 2u * (block.z + instance);
  if (Greater(p.xy, q.xy) != descending) {
    pq = uvec2(p.w, q.w);
    even_node = uvec4(q.xy, q.z, son);
    odd_node = uvec4(p.xy, p.z, son + 1u);
  } else {
    pq = uvec2(p.z, q.z);
    even_node = uvec4(p.xy, son, p.w);
    odd_node = uvec4(q.xy, son + 1u, q.w);
  }
}
