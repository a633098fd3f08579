// Values become the nodes of trees in order.
uniform usampler2D values_0;
uniform usampler2D values_1;
uniform usampler2D values_2;
uniform usampler2D values_3;

layout(location = 0) out uvec4 even_node;
layout(location = 1) out uvec4 odd_node;

void main() {
  uint pair = Instance(pairs_width_log2);
  ivec2 at = PointOf(pair >> 2, values_width_log2);
  uint part = pair & 3u;
  uvec4 two = part == 0u   ? texelFetch(values_0, at, 0)
              : part == 1u ? texelFetch(values_1, at, 0)
              : part == 2u ? texelFetch(values_2, at, 0)
                           : texelFetch(values_3, at, 0);
  even_node = InOrderNode(2u * pair, two.xy);
  odd_node = InOrderNode(2u * pair + 1u, two.zw);
}
