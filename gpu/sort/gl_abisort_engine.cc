#include "gpu/sort/gl_abisort_engine.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "gpu/gl/gl_check.h"
#include "tidemark_shaders.h"

namespace tidemark::sort {
namespace {

// As in abisort_blocks.vert.glsl. A step of level j has at most (j + 1) / 2 blocks: stages k with
// step - j < k <= step / 2.
constexpr std::size_t kBlocksMax = 16;
static_assert((kABiSortMaxLog2 + 1) / 2 <= kBlocksMax);

// 2^22 keys a channel take 1.3 GB of device memory.
constexpr std::uint32_t kLog2KeysMax = 22;

// Texture units; a stream keeps its own.
constexpr unsigned kTreesUnit = 0;
constexpr unsigned kWrittenUnit = 2;
constexpr unsigned kPqUnit = 4;
constexpr unsigned kValuesUnit = 5;
constexpr unsigned kKeysUnit = 9;
constexpr unsigned kLowWordsUnit = 10;

int Int(std::uint32_t size) { return static_cast<int>(size); }

gl::Texture MakeTexture(const StreamRectangle& size,
                        gl::TexelFormat format = gl::TexelFormat::kUint4) {
  return {Int(size.width), Int(size.height), format};
}

bool WritesValues(ABiSortKernel kernel) {
  return kernel == ABiSortKernel::kLocalSort || kernel == ABiSortKernel::kTraverse ||
         kernel == ABiSortKernel::kMerge;
}

}  // namespace

GlABiSortEngine::Kernel GlABiSortEngine::MakeKernel(const std::string& name,
                                                    std::string_view source, bool compares,
                                                    bool wide) const {
  std::string text = "#version 330 core\n#define Z_ORDER ";
  text += form_.layout == StreamLayout::kZOrder ? "1" : "0";
  text += wide ? "\n#define WIDE 1\n" : "\n#define WIDE 0\n";
  text += shaders::kAbisortStreamPart;
  if (compares) text += shaders::kAbisortComparePart;
  text += source;
  Kernel kernel;
  kernel.program = gl::Program(name, shaders::kAbisortBlocksVert, text);
  const auto location = [&](const char* uniform) { return kernel.program.UniformIfUsed(uniform); };
  kernel.rectangles = kernel.program.Uniform("rectangles");
  kernel.target_size = kernel.program.Uniform("target_size");
  kernel.blocks = location("blocks");
  kernel.pairs_width_log2 = location("pairs_width_log2");
  kernel.values_width_log2 = location("values_width_log2");
  kernel.keys_width_log2 = location("keys_width_log2");
  kernel.nodes = location("nodes");
  kernel.level = location("level");
  kernel.alternating = location("alternating");
  kernel.subtrees = location("subtrees");
  kernel.program.Use();
  const auto sample = [&](const char* sampler, unsigned unit) {
    glUniform1i(location(sampler), static_cast<GLint>(unit));
  };
  sample("nodes_even", kTreesUnit);
  sample("nodes_odd", kTreesUnit + 1);
  sample("written_even", kWrittenUnit);
  sample("written_odd", kWrittenUnit + 1);
  sample("pq_in", kPqUnit);
  sample("values_0", kValuesUnit);
  sample("values_1", kValuesUnit + 1);
  sample("values_2", kValuesUnit + 2);
  sample("values_3", kValuesUnit + 3);
  sample("keys", kKeysUnit);
  sample("low_words", kLowWordsUnit);
  return kernel;
}

GlABiSortEngine::GlABiSortEngine(StepObserver observer, ABiSortForm form)
    : observer_(std::move(observer)), form_(form), capabilities_(gl::ReadCapabilities()) {
  const auto edge_log2 = static_cast<std::uint32_t>(std::bit_width(
                             static_cast<unsigned>(capabilities_.texture_size_max))) -
                         1;
  // Four channels in one stream, as many places as keys.
  log2_keys_max_ = std::min(2 * edge_log2 - 2, kLog2KeysMax);
  load_ = MakeKernel("abisort_load", shaders::kAbisortLoadFrag, false, false);
  link_ = MakeKernel("abisort_link", shaders::kAbisortLinkFrag, false, false);
  relink_ = MakeKernel("abisort_relink", shaders::kAbisortRelinkFrag, false, false);
  copy_ = MakeKernel("abisort_copy", shaders::kAbisortCopyFrag, false, false);
  traverse_ = MakeKernel("abisort_traverse", shaders::kAbisortTraverseFrag, false, false);
  for (const bool wide : {false, true}) {
    KernelsOfWidth& kernels = kernels_[wide ? 1 : 0];
    kernels.step = MakeKernel("abisort_step", shaders::kAbisortStepFrag, true, wide);
    kernels.local_sort =
        MakeKernel("abisort_local_sort", shaders::kAbisortLocalSortFrag, true, wide);
    kernels.merge = MakeKernel("abisort_merge", shaders::kAbisortMergeFrag, true, wide);
  }
  gl::CheckGl("setting up gl-abisort");
}

GlABiSortEngine::Sizes GlABiSortEngine::SizesOf(std::uint32_t log2_all) const {
  const std::uint32_t all = std::uint32_t{1} << log2_all;
  Sizes sizes;
  sizes.log2_all = log2_all;
  sizes.pairs_width_log2 = StreamWidthLog2(log2_all);
  sizes.values_width_log2 = StreamWidthLog2(log2_all - 3);
  sizes.keys_width_log2 = StreamWidthLog2(log2_all - 2);
  sizes.trees = RectangleOf(form_.layout, sizes.pairs_width_log2, 0, all);
  sizes.pairs = RectangleOf(form_.layout, sizes.pairs_width_log2, 0, all / 2);
  sizes.values = RectangleOf(form_.layout, sizes.values_width_log2, 0, all / 8);
  // Keys come row by row, whatever the layout.
  sizes.keys = RectangleOf(StreamLayout::kRowWise, sizes.keys_width_log2, 0, all / 4);
  return sizes;
}

void GlABiSortEngine::MakeStreams(const Sizes& sizes, bool wide) {
  // Streams only grow: fewer keys use a corner of them.
  if (streams_.sizes.log2_all >= sizes.log2_all && (streams_.wide || !wide)) return;
  Sizes largest = sizes;
  if (streams_.sizes.log2_all > sizes.log2_all) largest = streams_.sizes;
  wide = wide || streams_.wide;
  streams_ = Streams{};
  for (std::size_t i = 0; i < 2; ++i) {
    streams_.trees[i] = MakeTexture(largest.trees);
    streams_.written[i] = MakeTexture(largest.pairs);
    streams_.pq[i] = MakeTexture(largest.pairs, gl::TexelFormat::kUint2);
    for (gl::Texture& part : streams_.values[i]) part = MakeTexture(largest.values);
  }
  streams_.keys = MakeTexture(largest.keys);
  if (wide) streams_.low_words = MakeTexture(largest.keys);
  const auto framebuffer = [](std::initializer_list<const gl::Texture*> targets) {
    return gl::Framebuffer(std::span<const gl::Texture* const>(targets.begin(), targets.size()));
  };
  streams_.to_trees = framebuffer({&streams_.trees[0], &streams_.trees[1]});
  for (std::size_t role = 0; role < 2; ++role) {
    streams_.to_written[role] =
        framebuffer({&streams_.written[0], &streams_.written[1], &streams_.pq[role]});
    auto& values = streams_.values[role];
    streams_.to_values[role] = framebuffer({&values[0], &values[1], &values[2], &values[3]});
  }
  streams_.sizes = largest;
  streams_.wide = wide;
}

void GlABiSortEngine::Upload(const Texels& texels, const Sizes& sizes) {
  streams_.keys.Upload(Int(sizes.keys.width), Int(sizes.keys.height), texels.high.data());
  if (!texels.low.empty()) {
    streams_.low_words.Upload(Int(sizes.keys.width), Int(sizes.keys.height), texels.low.data());
  }
}

void GlABiSortEngine::BindInputs() const {
  for (unsigned i = 0; i < 2; ++i) {
    streams_.trees[i].BindToUnit(kTreesUnit + i);
    streams_.written[i].BindToUnit(kWrittenUnit + i);
  }
  streams_.keys.BindToUnit(kKeysUnit);
  streams_.low_words.BindToUnit(kLowWordsUnit);
}

void GlABiSortEngine::Draw(const Kernel& kernel, const ABiSortOperation& operation,
                           const Sizes& sizes, const StreamRectangle& target,
                           std::span<const StreamRectangle> rectangles,
                           std::span<const std::array<std::uint32_t, 4>> blocks) {
  std::array<std::uint32_t, 4 * kBlocksMax> corners{};
  for (std::size_t i = 0; i < rectangles.size(); ++i) {
    const StreamRectangle& rectangle = rectangles[i];
    corners[4 * i] = rectangle.at.x;
    corners[4 * i + 1] = rectangle.at.y;
    corners[4 * i + 2] = rectangle.width;
    corners[4 * i + 3] = rectangle.height;
  }
  const auto count = static_cast<GLsizei>(rectangles.size());
  kernel.program.Use();
  glViewport(0, 0, Int(target.width), Int(target.height));
  glUniform4uiv(kernel.rectangles, count, corners.data());
  glUniform4uiv(kernel.blocks, static_cast<GLsizei>(blocks.size()), blocks[0].data());
  glUniform2f(kernel.target_size, static_cast<float>(target.width),
              static_cast<float>(target.height));
  glUniform1ui(kernel.pairs_width_log2, sizes.pairs_width_log2);
  glUniform1ui(kernel.values_width_log2, sizes.values_width_log2);
  glUniform1ui(kernel.keys_width_log2, sizes.keys_width_log2);
  glUniform1ui(kernel.nodes, std::uint32_t{1} << sizes.log2_all);
  glUniform1ui(kernel.level, operation.level);
  glUniform1ui(kernel.alternating, operation.alternating ? 1 : 0);
  glUniform1ui(kernel.subtrees, operation.instances / 2);
  glDrawArraysInstanced(GL_TRIANGLE_STRIP, 0, 4, count);
  ++drawn_.draw_calls;
}

void GlABiSortEngine::RunStep(const ABiSortOperation& operation, const Sizes& sizes,
                              const Kernel& kernel) {
  std::vector<StreamRectangle> rectangles;
  std::vector<std::array<std::uint32_t, 4>> blocks;
  for (const ABiSortBlock& block : operation.blocks) {
    rectangles.push_back(
        RectangleOf(form_.layout, sizes.pairs_width_log2, block.first, block.pairs));
    blocks.push_back({block.first, block.previous, block.next, block.stage | block.phase << 8});
  }
  streams_.pq[pq_role_].BindToUnit(kPqUnit);
  pq_role_ = 1 - pq_role_;
  streams_.to_written[pq_role_].BindForDrawing();
  Draw(kernel, operation, sizes, sizes.pairs, rectangles, blocks);
  if (!operation.copied_back) return;
  streams_.to_trees.BindForDrawing();
  Draw(copy_, operation, sizes, sizes.trees, rectangles, blocks);
  ++drawn_.copies;
}

void GlABiSortEngine::Run(const ABiSortOperation& operation, const Sizes& sizes, bool wide) {
  const KernelsOfWidth& kernels = kernels_[wide ? 1 : 0];
  ++drawn_.passes;
  if (operation.kernel == ABiSortKernel::kStep) {
    RunStep(operation, sizes, kernels.step);
    return;
  }
  const std::uint32_t pairs = std::uint32_t{1} << (sizes.log2_all - 1);
  if (WritesValues(operation.kernel)) {
    for (unsigned part = 0; part < 4; ++part) {
      streams_.values[values_role_][part].BindToUnit(kValuesUnit + part);
    }
    values_role_ = 1 - values_role_;
    streams_.to_values[values_role_].BindForDrawing();
    const Kernel& kernel = operation.kernel == ABiSortKernel::kLocalSort  ? kernels.local_sort
                           : operation.kernel == ABiSortKernel::kTraverse ? traverse_
                                                                          : kernels.merge;
    Draw(kernel, operation, sizes, sizes.values, {{sizes.values}}, {{{0, 0, 0, 0}}});
    return;
  }
  // The second half of the trees' stream: the trees in order.
  for (unsigned part = 0; part < 4; ++part) {
    streams_.values[values_role_][part].BindToUnit(kValuesUnit + part);
  }
  streams_.to_trees.BindForDrawing();
  const StreamRectangle in_order = RectangleOf(form_.layout, sizes.pairs_width_log2, pairs, pairs);
  const Kernel& kernel = operation.kernel == ABiSortKernel::kLoad   ? load_
                         : operation.kernel == ABiSortKernel::kLink ? link_
                                                                    : relink_;
  Draw(kernel, operation, sizes, sizes.trees, {{in_order}}, {{{pairs, 0, 0, 0}}});
}

// Values are (key word, id), two to a texel; nodes are (key word, id, sons).
void GlABiSortEngine::ReadBack(Texels& texels, const Sizes& sizes, bool values) {
  const StreamRectangle& size = values ? sizes.values : sizes.pairs;
  const gl::Framebuffer& from =
      values ? streams_.to_values[values_role_] : streams_.to_written[pq_role_];
  const std::uint32_t width_log2 = values ? sizes.values_width_log2 : sizes.pairs_width_log2;
  const std::uint32_t targets = values ? 4 : 2;
  const std::uint32_t keys_a_texel = values ? 2 : 1;
  const std::uint32_t keys_a_place = targets * keys_a_texel;
  const std::uint32_t places = size.width * size.height;
  const std::vector<std::uint32_t> low = std::move(texels.low);
  texels.low.assign(low.size(), 0);
  std::vector<std::uint32_t> read(std::size_t{4} * places);
  for (std::uint32_t target = 0; target < targets; ++target) {
    from.Read(target, Int(size.width), Int(size.height), read.data());
    gl::CheckGl("reading sorted windows back from the GPU");
    for (std::uint32_t place = 0; place < places; ++place) {
      const StreamPoint at = PointOf(form_.layout, width_log2, place);
      const std::uint32_t* texel = &read[4 * (std::size_t{at.y} * size.width + at.x)];
      for (std::uint32_t i = 0; i < keys_a_texel; ++i) {
        const std::size_t to = std::size_t{keys_a_place} * place + keys_a_texel * target + i;
        const std::uint32_t id = texel[2 * i + 1];
        texels.high[to] = texel[2 * i];
        if (low.empty()) continue;
        if (id >= low.size()) throw gl::GlError("checking the ids of sorted windows failed");
        texels.low[to] = low[id];
      }
    }
  }
}

void GlABiSortEngine::Sort(Texels& texels) {
  const bool wide = !texels.low.empty();
  ABiSortShape shape;
  shape.log2_keys = texels.log2_keys;
  shape.log2_windows = texels.log2_channels;
  shape.overlapped = form_.overlapped;
  shape.small_kernels = form_.small_kernels;
  const std::vector<ABiSortOperation> plan = ABiSortPlan(shape);
  const Sizes sizes = SizesOf(shape.log2_all());
  MakeStreams(sizes, wide);

  if (observer_) observer_("upload");
  Upload(texels, sizes);
  gl::CheckGl("uploading windows to the GPU");

  if (observer_) observer_("draw");
  drawn_ = SortCounts{};
  vertex_array_.Bind();
  BindInputs();
  for (const ABiSortOperation& operation : plan) Run(operation, sizes, wide);
  gl::CheckGl("drawing the stream operations");

  if (observer_) observer_("read back");
  ReadBack(texels, sizes, WritesValues(plan.back().kernel));
  gl::CheckNotReset("reading sorted windows back from the GPU");
  texels.counts = CountsOf(plan);
  texels.counts.passes = drawn_.passes;
  texels.counts.copies = drawn_.copies;
  texels.counts.draw_calls = drawn_.draw_calls;
}

}  // namespace tidemark::sort
