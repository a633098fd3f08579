// What the last step of a level wrote, trees in order by their places, gets the sons of such trees.
uniform usampler2D written_even;
uniform usampler2D written_odd;

layout(location = 0) out uvec4 even_node;
layout(location = 1) out uvec4 odd_node;

void main() {
  uint pair = Instance(pairs_width_log2);
  ivec2 at = PointOf(pair, pairs_width_log2);
  even_node = InOrderNode(2u * pair, texelFetch(written_even, at, 0).xy);
  odd_node = InOrderNode(2u * pair + 1u, texelFetch(written_odd, at, 0).xy);
}
