// Keys become the nodes of trees in order; the place of a key is its id.
uniform usampler2D keys;

layout(location = 0) out uvec4 even_node;
layout(location = 1) out uvec4 odd_node;

void main() {
  uint i = 2u * Instance(pairs_width_log2);
  uvec4 four = texelFetch(keys, RowWise(i >> 2, keys_width_log2), 0);
  uvec2 two = (i & 2u) == 0u ? four.xy : four.zw;
  even_node = InOrderNode(i, uvec2(two.x, i));
  odd_node = InOrderNode(i + 1u, uvec2(two.y, i + 1u));
}
