// The sixteen values of each subtree in order (§7.2): an even instance writes those of the root's
// left son and the root's, an odd one those of the right son and the spare's.
uniform usampler2D nodes_even;
uniform usampler2D nodes_odd;
uniform uint subtrees;

layout(location = 0) out uvec4 values_0;
layout(location = 1) out uvec4 values_1;
layout(location = 2) out uvec4 values_2;
layout(location = 3) out uvec4 values_3;

uvec4 NodeAt(uint a) {
  ivec2 at = PointOf(a >> 1, pairs_width_log2);
  return (a & 1u) == 0u ? texelFetch(nodes_even, at, 0) : texelFetch(nodes_odd, at, 0);
}

void main() {
  uint instance = Instance(values_width_log2);
  uint subtree = instance >> 1;
  bool upper = (instance & 1u) != 0u;
  uvec4 root = NodeAt(subtrees + subtree);
  uvec4 top = NodeAt(upper ? root.w : root.z);
  uvec4 left = NodeAt(top.z);
  uvec4 right = NodeAt(top.w);
  values_0 = uvec4(NodeAt(left.z).xy, left.xy);
  values_1 = uvec4(NodeAt(left.w).xy, top.xy);
  values_2 = uvec4(NodeAt(right.z).xy, right.xy);
  values_3 = uvec4(NodeAt(right.w).xy, upper ? NodeAt(subtree).xy : root.xy);
}
