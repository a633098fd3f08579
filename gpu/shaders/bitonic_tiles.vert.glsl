#version 330 core
// Equal quads in a grid (gpu/sort/bitonic_tiles.h): one instance a quad, row by row, drawn as a strip
// of two triangles. No vertex buffer is needed.
uniform uvec4 tile;         // width, height, x and y of the first
uniform uvec2 group;        // columns and rows of tiles in a quad
uniform uvec2 group_size;   // from one quad to the next
uniform uint columns;       // tiles in a row of the grid
uniform uint first_tile;    // of this draw call
uniform vec2 target_size;   // powers of two

void main() {
  uint number = first_tile + uint(gl_InstanceID);
  uvec2 at_tile = uvec2(number % columns, number / columns);
  uvec2 from = at_tile / group * group_size + at_tile % group * tile.xy + tile.zw;
  uvec2 corner = uvec2(gl_VertexID & 1, gl_VertexID >> 1);
  vec2 at = vec2(from + corner * tile.xy);
  gl_Position = vec4(at / target_size * 2.0 - 1.0, 0.0, 1.0);
}
