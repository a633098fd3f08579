// Sorts eight values by odd-even transition (§7.1); every second eight descending.
uniform usampler2D keys;

layout(location = 0) out uvec4 values_0;
layout(location = 1) out uvec4 values_1;
layout(location = 2) out uvec4 values_2;
layout(location = 3) out uvec4 values_3;

void main() {
  uint instance = Instance(values_width_log2);
  bool descending = (instance & 1u) != 0u;
  uvec4 low = texelFetch(keys, RowWise(2u * instance, keys_width_log2), 0);
  uvec4 high = texelFetch(keys, RowWise(2u * instance + 1u, keys_width_log2), 0);
  uvec2 value[8];
  for (int i = 0; i < 4; ++i) {
    value[i] = uvec2(low[i], 8u * instance + uint(i));
    value[i + 4] = uvec2(high[i], 8u * instance + uint(i + 4));
  }
  for (int turn = 0; turn < 8; ++turn) {
    for (int i = turn & 1; i < 7; i += 2) {
      if (Greater(value[i], value[i + 1]) != descending) {
        uvec2 other = value[i];
        value[i] = value[i + 1];
        value[i + 1] = other;
      }
    }
  }
  values_0 = uvec4(value[0], value[1]);
  values_1 = uvec4(value[2], value[3]);
  values_2 = uvec4(value[4], value[5]);
  values_3 = uvec4(value[6], value[7]);
}
