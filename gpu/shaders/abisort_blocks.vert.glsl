#version 330 core
// The blocks of one stream operation, each a rectangle of the target: one instance a block, drawn as
// a strip of two triangles. No vertex buffer is needed.
const int kBlocksMax = 16;
uniform uvec4 rectangles[kBlocksMax];  // x, y, width, height
uniform uvec4 blocks[kBlocksMax];      // handed through to the fragment program
uniform vec2 target_size;              // of the viewport, texels; powers of two

flat out uvec4 block;
flat out uint block_pairs;

void main() {
  uvec4 rectangle = rectangles[gl_InstanceID];
  vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);
  vec2 at = vec2(rectangle.xy) + corner * vec2(rectangle.zw);
  gl_Position = vec4(at / target_size * 2.0 - 1.0, 0.0, 1.0);
  block = blocks[gl_InstanceID];
  block_pairs = rectangle.z * rectangle.w;
}
