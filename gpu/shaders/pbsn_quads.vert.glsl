#version 330 core
// Equal quads with texture coordinates (gpu/sort/pbsn_plan.h): one instance a quad, drawn as a strip
// of two triangles. All lengths are texels. No vertex buffer is needed.
uniform vec4 quad;             // x, y, width, height of the first
uniform vec4 texture_from_to;  // its texture coordinates: lower left, upper right
uniform vec2 distance;         // from one quad to the next, of both
uniform vec2 target_size;

out vec2 texture_at;

void main() {
  vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);
  vec2 moved = float(gl_InstanceID) * distance;
  vec2 at = quad.xy + corner * quad.zw + moved;
  gl_Position = vec4(at / target_size * 2.0 - 1.0, 0.0, 1.0);
  texture_at = mix(texture_from_to.xy, texture_from_to.zw, corner) + moved;
}
