// Merges sixteen bitonic values by the network (§7.2): an even instance writes the first eight, an odd
// one the last eight.
uniform usampler2D values_0;
uniform usampler2D values_1;
uniform usampler2D values_2;
uniform usampler2D values_3;
uniform uint level;
uniform uint alternating;

layout(location = 0) out uvec4 merged_0;
layout(location = 1) out uvec4 merged_1;
layout(location = 2) out uvec4 merged_2;
layout(location = 3) out uvec4 merged_3;

void Fetch(uint eight, out uvec2 value[8]) {
  ivec2 at = PointOf(eight, values_width_log2);
  uvec4 a = texelFetch(values_0, at, 0);
  uvec4 b = texelFetch(values_1, at, 0);
  uvec4 c = texelFetch(values_2, at, 0);
  uvec4 d = texelFetch(values_3, at, 0);
  value[0] = a.xy;
  value[1] = a.zw;
  value[2] = b.xy;
  value[3] = b.zw;
  value[4] = c.xy;
  value[5] = c.zw;
  value[6] = d.xy;
  value[7] = d.zw;
}

void main() {
  uint instance = Instance(values_width_log2);
  uint even = instance & ~1u;
  bool upper = instance != even;
  bool descending = (((8u * even) >> level) & alternating) != 0u;
  uvec2 value[8];
  uvec2 other[8];
  Fetch(even, value);
  Fetch(even + 1u, other);
  for (int i = 0; i < 8; ++i) {
    if ((Greater(value[i], other[i]) != descending) != upper) value[i] = other[i];
  }
  for (int distance = 4; distance > 0; distance /= 2) {
    for (int i = 0; i < 8; ++i) {
      if ((i & distance) == 0 && Greater(value[i], value[i + distance]) != descending) {
        uvec2 smaller = value[i + distance];
        value[i + distance] = value[i];
        value[i] = smaller;
      }
    }
  }
  merged_0 = uvec4(value[0], value[1]);
  merged_1 = uvec4(value[2], value[3]);
  merged_2 = uvec4(value[4], value[5]);
  merged_3 = uvec4(value[6], value[7]);
}
