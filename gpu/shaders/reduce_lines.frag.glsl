#version 330 core
// Moves an element of a reduced block to its place in the reduced stream. The paper interpolates
// the place along the line; the texel's own is used here, which is exact.
uniform usampler2D reduced_high;
uniform usampler2D reduced_end;
uniform usampler2D reduced_low;
uniform uint width_log2;

flat in uint source;
flat in uint first;

layout(location = 0) out uvec4 moved_high;
layout(location = 1) out uvec4 moved_end;
layout(location = 2) out uvec4 moved_low;

void main() {
  uvec2 at = uvec2(gl_FragCoord.xy);
  uint from = source + (((at.y << width_log2) | at.x) - first);
  ivec2 place = ivec2(from & ((1u << width_log2) - 1u), from >> width_log2);
  moved_high = texelFetch(reduced_high, place, 0);
  moved_end = texelFetch(reduced_end, place, 0);
  moved_low = texelFetch(reduced_low, place, 0);
}
