#include "gpu/sort/gl_bitonic_engine.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "gpu/gl/gl_check.h"
#include "gpu/sort/network_schedule.h"
#include "tidemark_shaders.h"

namespace tidemark::sort {

GlBitonicEngine::StepProgram GlBitonicEngine::MakeProgram(std::string_view name,
                                                          std::string_view vertex_source,
                                                          std::string_view fragment_source,
                                                          bool two_words) {
  StepProgram out;
  out.program = gl::Program(name, vertex_source, fragment_source);
  out.partner_mask = out.program.Uniform("partner_mask");
  out.distance = out.program.Uniform("distance");
  out.width_log2 = out.program.Uniform("width_log2");
  out.tile = out.program.UniformIfUsed("tile");
  out.group = out.program.UniformIfUsed("group");
  out.group_size = out.program.UniformIfUsed("group_size");
  out.columns = out.program.UniformIfUsed("columns");
  out.first_tile = out.program.UniformIfUsed("first_tile");
  out.target_size = out.program.UniformIfUsed("target_size");
  out.program.Use();
  if (two_words) {
    glUniform1i(out.program.Uniform("keys_high"), 0);
    glUniform1i(out.program.Uniform("keys_low"), 1);
  } else {
    glUniform1i(out.program.Uniform("keys"), 0);
  }
  return out;
}

GlBitonicEngine::GlBitonicEngine(StepObserver observer, const BitonicDrawing& drawing)
    : observer_(std::move(observer)), capabilities_(gl::ReadCapabilities()), drawing_(drawing) {
  const auto edge_log2 = static_cast<std::uint32_t>(std::bit_width(
                             static_cast<unsigned>(capabilities_.texture_size_max))) -
                         1;
  log2_keys_max_ = std::min(2 * edge_log2, kMaxLog2Keys);
  const std::array<std::string_view, 2> fragment = {shaders::kBitonicStepU32Frag,
                                                    shaders::kBitonicStepU64Frag};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string_view name = i == 0 ? "bitonic_step_u32" : "bitonic_step_u64";
    program_[i] = MakeProgram(name, shaders::kFullScreenVert, fragment[i], i == 1);
    if (drawing_.tile == 0) continue;
    tile_program_[i] = MakeProgram(name, shaders::kBitonicTilesVert, fragment[i], i == 1);
  }
  gl::CheckGl("setting up gl-bitonic");
}

GlBitonicEngine::Targets& GlBitonicEngine::TargetsFor(int width, int height, unsigned words) {
  Targets& targets = targets_[words - 1];
  // Textures only grow: smaller windows use a corner of them.
  if (width <= targets.width && height <= targets.height) return targets;
  targets = Targets{};
  for (std::size_t role = 0; role < 2; ++role) {
    std::array<const gl::Texture*, 2> attached{};
    for (std::size_t word = 0; word < words; ++word) {
      targets.texture[role][word] = gl::Texture(width, height);
      attached[word] = &targets.texture[role][word];
    }
    targets.framebuffer[role] =
        gl::Framebuffer(std::span<const gl::Texture* const>(attached.data(), words));
  }
  targets.width = width;
  targets.height = height;
  return targets;
}

std::uint64_t GlBitonicEngine::DrawStep(const NetworkStep& step, const Size& size,
                                        unsigned words) const {
  const bool tiles = DrawnAsTiles(step, size.width_log2, drawing_);
  const StepProgram& program = tiles ? tile_program_[words - 1] : program_[words - 1];
  program.program.Use();
  glUniform1ui(program.width_log2, size.width_log2);
  glUniform1ui(program.partner_mask, step.PartnerMask());
  glUniform1ui(program.distance, step.distance);
  if (tiles) return DrawTiles(step, size, program);
  glDrawArrays(GL_TRIANGLES, 0, 3);
  return 1;
}

std::uint64_t GlBitonicEngine::DrawTiles(const NetworkStep& step, const Size& size,
                                         const StepProgram& program) const {
  glUniform2f(program.target_size, static_cast<float>(size.width()),
              static_cast<float>(size.height()));
  std::array<BitonicTiles, 2> kinds;
  for (std::size_t kind = 0; kind < 2; ++kind) {
    kinds[kind] = TilesOf(step, size.width_log2, size.height_log2, drawing_, kind == 0);
  }
  const auto draw = [&](const BitonicTiles& tiles, std::uint32_t first, std::uint32_t count) {
    glUniform4ui(program.tile, tiles.width, tiles.height, tiles.x_first, tiles.y_first);
    glUniform2ui(program.group, tiles.group_columns, tiles.group_rows);
    glUniform2ui(program.group_size, tiles.group_width, tiles.group_height);
    glUniform1ui(program.columns, tiles.columns);
    glUniform1ui(program.first_tile, first);
    glDrawArraysInstanced(GL_TRIANGLE_STRIP, 0, 4, static_cast<GLsizei>(count));
  };
  if (drawing_.few_draw_calls) {
    for (const BitonicTiles& tiles : kinds) draw(tiles, 0, tiles.count());
    return 2;
  }
  for (std::uint32_t quad = 0; quad < kinds[0].count(); ++quad) {
    for (const BitonicTiles& tiles : kinds) draw(tiles, quad, 1);
  }
  return 2 * std::uint64_t{kinds[0].count()};
}

void GlBitonicEngine::Sort(Texels& texels) {
  const unsigned words = texels.low.empty() ? 1 : 2;
  const Size size = {(texels.log2_keys + 1) / 2, texels.log2_keys / 2};
  const int width = size.width();
  const int height = size.height();
  Targets& targets = TargetsFor(width, height, words);
  const std::array<std::uint32_t*, 2> data = {texels.high.data(), texels.low.data()};

  if (observer_) observer_("upload");
  for (unsigned word = 0; word < words; ++word) {
    targets.texture[0][word].Upload(width, height, data[word]);
  }
  gl::CheckGl("uploading windows to the GPU");

  if (observer_) observer_("draw");
  vertex_array_.Bind();
  glViewport(0, 0, width, height);
  unsigned from = 0;
  SortCounts counts;
  const std::uint64_t keys = std::uint64_t{4} << texels.log2_keys;
  const std::vector<NetworkStep> schedule = texels.sorted_halves
                                                ? BitonicMergeSchedule(texels.log2_keys)
                                                : BitonicSchedule(texels.log2_keys);
  for (const NetworkStep& step : schedule) {
    for (unsigned word = 0; word < words; ++word) targets.texture[from][word].BindToUnit(word);
    targets.framebuffer[1 - from].BindForDrawing();
    const std::uint64_t draw_calls = DrawStep(step, size, words);
    from = 1 - from;
    // Every fragment compares its own keys to its partner's: both are read, one is written.
    counts += {keys, 1, 0, draw_calls, 3 * sizeof(std::uint32_t) * words * keys};
  }
  texels.counts = counts;
  gl::CheckGl("drawing the steps of the network");

  if (observer_) observer_("read back");
  for (unsigned word = 0; word < words; ++word) {
    targets.framebuffer[from].Read(word, width, height, data[word]);
  }
  gl::CheckGl("reading sorted windows back from the GPU");
  gl::CheckNotReset("reading sorted windows back from the GPU");
}

}  // namespace tidemark::sort
