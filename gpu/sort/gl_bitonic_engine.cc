#include "gpu/sort/gl_bitonic_engine.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "gpu/gl/gl_check.h"
#include "gpu/sort/network_schedule.h"
#include "tidemark_shaders.h"

namespace tidemark::sort {

GlBitonicEngine::StepProgram GlBitonicEngine::MakeProgram(std::string_view name,
                                                          std::string_view fragment_source,
                                                          bool two_words) {
  StepProgram out;
  out.program = gl::Program(name, shaders::kFullScreenVert, fragment_source);
  out.partner_mask = out.program.Uniform("partner_mask");
  out.distance = out.program.Uniform("distance");
  out.width_log2 = out.program.Uniform("width_log2");
  out.program.Use();
  if (two_words) {
    glUniform1i(out.program.Uniform("keys_high"), 0);
    glUniform1i(out.program.Uniform("keys_low"), 1);
  } else {
    glUniform1i(out.program.Uniform("keys"), 0);
  }
  return out;
}

GlBitonicEngine::GlBitonicEngine(StepObserver observer)
    : observer_(std::move(observer)), capabilities_(gl::ReadCapabilities()) {
  const auto edge_log2 = static_cast<std::uint32_t>(std::bit_width(
                             static_cast<unsigned>(capabilities_.texture_size_max))) -
                         1;
  log2_keys_max_ = std::min(2 * edge_log2, kMaxLog2Keys);
  program_[0] = MakeProgram("bitonic_step_u32", shaders::kBitonicStepU32Frag, false);
  program_[1] = MakeProgram("bitonic_step_u64", shaders::kBitonicStepU64Frag, true);
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

void GlBitonicEngine::Sort(Texels& texels) {
  const unsigned words = texels.low.empty() ? 1 : 2;
  const std::uint32_t width_log2 = (texels.log2_keys + 1) / 2;
  const int width = 1 << width_log2;
  const int height = 1 << (texels.log2_keys - width_log2);
  Targets& targets = TargetsFor(width, height, words);
  const std::array<std::uint32_t*, 2> data = {texels.high.data(), texels.low.data()};

  if (observer_) observer_("upload");
  for (unsigned word = 0; word < words; ++word) {
    targets.texture[0][word].Upload(width, height, data[word]);
  }
  gl::CheckGl("uploading windows to the GPU");

  if (observer_) observer_("draw");
  const StepProgram& step_program = program_[words - 1];
  step_program.program.Use();
  vertex_array_.Bind();
  glViewport(0, 0, width, height);
  glUniform1ui(step_program.width_log2, width_log2);
  unsigned from = 0;
  SortCounts counts;
  const std::uint64_t keys = std::uint64_t{4} << texels.log2_keys;
  for (const NetworkStep& step : BitonicSchedule(texels.log2_keys)) {
    for (unsigned word = 0; word < words; ++word) targets.texture[from][word].BindToUnit(word);
    targets.framebuffer[1 - from].BindForDrawing();
    glUniform1ui(step_program.partner_mask, step.PartnerMask());
    glUniform1ui(step_program.distance, step.distance);
    glDrawArrays(GL_TRIANGLES, 0, 3);
    from = 1 - from;
    // Every fragment compares its own keys to its partner's: both are read, one is written.
    counts += {keys, 1, 0, 1, 3 * sizeof(std::uint32_t) * words * keys};
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
