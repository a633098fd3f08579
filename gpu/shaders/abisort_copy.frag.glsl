// Copies the node pairs that a step wrote to where the next step reads (§6.1).
uniform usampler2D written_even;
uniform usampler2D written_odd;

layout(location = 0) out uvec4 even_node;
layout(location = 1) out uvec4 odd_node;

void main() {
  ivec2 at = ivec2(gl_FragCoord.xy);
  even_node = texelFetch(written_even, at, 0);
  odd_node = texelFetch(written_odd, at, 0);
}
