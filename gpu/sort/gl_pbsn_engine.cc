#include "gpu/sort/gl_pbsn_engine.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "gpu/gl/gl_check.h"
#include "tidemark_shaders.h"

namespace tidemark::sort {

GlPbsnEngine::GlPbsnEngine(StepObserver observer)
    : observer_(std::move(observer)), capabilities_(gl::ReadCapabilities()) {
  const auto edge_log2 = static_cast<std::uint32_t>(std::bit_width(
                             static_cast<unsigned>(capabilities_.texture_size_max))) -
                         1;
  log2_keys_max_ = std::min(2 * edge_log2, kPbsnMaxLog2);
  program_ = gl::Program("pbsn_quads", shaders::kPbsnQuadsVert, shaders::kPbsnFetchFrag);
  quad_ = program_.Uniform("quad");
  texture_from_to_ = program_.Uniform("texture_from_to");
  distance_ = program_.Uniform("distance");
  target_size_ = program_.Uniform("target_size");
  program_.Use();
  glUniform1i(program_.Uniform("keys"), 0);
  gl::CheckGl("setting up gl-pbsn");
}

void GlPbsnEngine::DrawQuads(const PbsnQuads& quads) {
  const auto real = [](std::uint32_t texels) { return static_cast<float>(texels); };
  glUniform4f(quad_, real(quads.x), real(quads.y), real(quads.width), real(quads.height));
  glUniform4f(texture_from_to_, real(quads.from_x), real(quads.from_y), real(quads.to_x),
              real(quads.to_y));
  glUniform2f(distance_, real(quads.distance_x), real(quads.distance_y));
  glDrawArraysInstanced(GL_TRIANGLE_STRIP, 0, 4, static_cast<GLsizei>(quads.count));
  ++drawn_.draw_calls;
}

void GlPbsnEngine::Sort(Texels& texels) {
  const PbsnSize size = PbsnSizeOf(texels.log2_keys);
  const std::uint32_t columns = std::uint32_t{1} << size.width_log2;
  const std::uint32_t rows = std::uint32_t{1} << size.height_log2;
  const auto width = static_cast<int>(columns);
  const auto height = static_cast<int>(rows);
  if (texels.log2_keys > log2_keys_made_) {
    log2_keys_made_ = 0;
    frame_buffer_ = gl::Framebuffer();
    texture_ = gl::Texture(width, height, gl::TexelFormat::kFloat4);
    frame_ = gl::Texture(width, height, gl::TexelFormat::kFloat4);
    const std::array<const gl::Texture*, 1> targets = {&frame_};
    frame_buffer_ = gl::Framebuffer(targets);
    log2_keys_made_ = texels.log2_keys;
  }

  if (observer_) observer_("upload");
  texture_.Upload(width, height, texels.high.data());
  gl::CheckGl("uploading windows to the GPU");

  if (observer_) observer_("draw");
  drawn_ = SortCounts{};
  program_.Use();
  vertex_array_.Bind();
  glViewport(0, 0, width, height);
  glUniform2f(target_size_, static_cast<float>(width), static_cast<float>(height));
  texture_.BindToUnit(0);
  frame_buffer_.BindForDrawing();
  // Routine 4.3, line 3: the keys come into the frame buffer as a quad with plain coordinates.
  DrawQuads({0, 0, columns, rows, 0, 0, columns, rows, 0, 0, 1});
  ++drawn_.copies;
  glEnable(GL_BLEND);
  for (const PbsnStep& step : PbsnPlan(texels.log2_keys)) {
    glBlendEquation(GL_MIN);
    DrawQuads(QuadsOf(step, size, true));
    glBlendEquation(GL_MAX);
    DrawQuads(QuadsOf(step, size, false));
    frame_buffer_.CopyTo(texture_, width, height);
    ++drawn_.passes;
    ++drawn_.copies;
  }
  glDisable(GL_BLEND);
  gl::CheckGl("drawing the steps of the network");

  if (observer_) observer_("read back");
  frame_buffer_.Read(0, width, height, texels.high.data());
  gl::CheckGl("reading sorted windows back from the GPU");
  gl::CheckNotReset("reading sorted windows back from the GPU");
  texels.counts = PbsnCounts(texels.log2_keys);
  texels.counts.passes = drawn_.passes;
  texels.counts.copies = drawn_.copies;
  texels.counts.draw_calls = drawn_.draw_calls;
}

}  // namespace tidemark::sort
