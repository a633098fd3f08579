#version 330 core
// The key at the texture coordinates; blending compares it to the one in the frame buffer
// (Govindaraju, Raghuvanshi, Manocha (SIGMOD 2005), routines 4.1 and 4.2). At the middle of a texel
// the coordinates are a whole number and a half, so that rounding down is safe.
uniform sampler2D keys;

in vec2 texture_at;

layout(location = 0) out vec4 key;

void main() { key = texelFetch(keys, ivec2(texture_at), 0); }
