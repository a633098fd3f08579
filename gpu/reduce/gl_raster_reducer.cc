#include "gpu/reduce/gl_raster_reducer.h"

#include <algorithm>
#include <cassert>
#include <string_view>
#include <utility>

#include "gpu/gl/gl_check.h"
#include "tidemark_shaders.h"

namespace tidemark::reduce {
namespace {

constexpr std::size_t kHigh = 0, kEnd = 1, kLow = 2;

gl::Program Make(std::string_view name, std::string_view fragment,
                 std::initializer_list<const char*> samplers,
                 std::string_view vertex = shaders::kFullScreenVert) {
  gl::Program program(name, vertex, fragment);
  program.Use();
  GLint unit = 0;
  for (const char* sampler : samplers) glUniform1i(program.Uniform(sampler), unit++);
  return program;
}

void Set(const gl::Program& program, const char* uniform, std::uint32_t value) {
  glUniform1ui(program.Uniform(uniform), value);
}

// Words of the first `count` texels, of each channel as many as it has.
std::array<std::vector<std::uint32_t>, kReducedChannels> ReadWords(
    const gl::Framebuffer& framebuffer, unsigned target, std::uint32_t width_log2,
    const std::array<std::uint32_t, kReducedChannels>& counts) {
  const std::uint32_t most = *std::max_element(counts.begin(), counts.end());
  const std::uint32_t width = std::uint32_t{1} << width_log2;
  const std::uint32_t rows = (most + width - 1) >> width_log2;
  std::vector<std::uint32_t> texels(std::size_t{rows} * width * kReducedChannels);
  if (rows > 0) {
    framebuffer.Read(target, static_cast<int>(width), static_cast<int>(rows), texels.data());
  }
  std::array<std::vector<std::uint32_t>, kReducedChannels> words;
  for (std::size_t c = 0; c < kReducedChannels; ++c) {
    words[c].resize(counts[c]);
    for (std::size_t i = 0; i < counts[c]; ++i) words[c][i] = texels[kReducedChannels * i + c];
  }
  return words;
}

}  // namespace

GlRasterReducer::GlRasterReducer(std::function<void(std::string_view)> observer)
    : observer_(std::move(observer)),
      unwanted_(Make("reduce_unwanted", shaders::kReduceUnwantedFrag, {"keys_high", "keys_low"})),
      scan_step_(Make("reduce_scan_step", shaders::kReduceScanStepFrag, {"sums"})),
      block_sum_(Make("reduce_block_sums", shaders::kReduceBlockSumsFrag, {"sums"})),
      gather_(Make("reduce_gather", shaders::kReduceGatherFrag, {"keys_high", "keys_low", "sums"})),
      lines_(Make("reduce_lines", shaders::kReduceLinesFrag,
                  {"reduced_high", "reduced_end", "reduced_low", "block_sums"},
                  shaders::kReduceLinesVert)),
      samples_(Make("reduce_samples", shaders::kReduceSamplesFrag, {"keys_high", "keys_low"})) {
  gl::CheckGl("setting up the raster reducer");
}

void GlRasterReducer::Provide(Target& target, Shape shape, std::size_t words) {
  const int width = 1 << shape.width_log2, height = 1 << shape.height_log2;
  if (width <= target.width && height <= target.height && words == target.words) return;
  target = Target{};
  std::array<const gl::Texture*, 3> attached{};
  for (std::size_t word = 0; word < words; ++word) {
    target.texture[word] = gl::Texture(width, height);
    attached[word] = &target.texture[word];
  }
  target.framebuffer = gl::Framebuffer(std::span<const gl::Texture* const>(attached.data(), words));
  target.width = width;
  target.height = height;
  target.words = words;
}

void GlRasterReducer::Draw(const Target& target, Shape shape) {
  target.framebuffer.BindForDrawing();
  glViewport(0, 0, 1 << shape.width_log2, 1 << shape.height_log2);
  glDrawArrays(GL_TRIANGLES, 0, 3);
}

// Keys of 32 bits have one texture, which then stands for both words.
void GlRasterReducer::BindKeys(const SortedTexels& windows, unsigned unit) {
  windows.high->BindToUnit(unit);
  (windows.low != nullptr ? windows.low : windows.high)->BindToUnit(unit + 1);
}

std::size_t GlRasterReducer::Scan(std::array<Target, 2>& sums, Shape shape,
                                  std::uint32_t block_log2, ScanMethod method) {
  scan_step_.Use();
  Set(scan_step_, "block_mask", (std::uint32_t{1} << block_log2) - 1);
  Set(scan_step_, "width_log2", shape.width_log2);
  std::size_t from = 0;
  for (const ScanPass& pass : ScanSchedule(method, block_log2)) {
    Set(scan_step_, "distance", pass.distance);
    Set(scan_step_, "which", static_cast<std::uint32_t>(pass.active));
    sums[from].texture[0].BindToUnit(0);
    Draw(sums[1 - from], shape);
    from = 1 - from;
  }
  return from;
}

void GlRasterReducer::Gather(const SortedTexels& windows, const gl::Texture& sums,
                             std::uint32_t block_log2, bool improved) {
  gather_.Use();
  BindKeys(windows, 0);
  sums.BindToUnit(2);
  Set(gather_, "block_log2", block_log2);
  Set(gather_, "width_log2", windows.width_log2);
  glUniform1i(gather_.Uniform("improved"), improved ? 1 : 0);
  Draw(found_, {windows.width_log2, windows.height_log2});
}

void GlRasterReducer::Concatenate(const gl::Texture& block_sums, Shape blocks,
                                  std::uint32_t block_log2, Shape shape, std::size_t words) {
  lines_.Use();
  found_.texture[kHigh].BindToUnit(0);
  found_.texture[kEnd].BindToUnit(1);
  found_.texture[words > kLow ? kLow : kHigh].BindToUnit(2);
  block_sums.BindToUnit(3);
  Set(lines_, "blocks_width_log2", blocks.width_log2);
  Set(lines_, "block_log2", block_log2);
  Set(lines_, "width_log2", shape.width_log2);
  Set(lines_, "height_log2", shape.height_log2);
  moved_.framebuffer.BindForDrawing();
  glViewport(0, 0, 2 << shape.width_log2, 1 << shape.height_log2);
  const auto vertices = static_cast<GLsizei>(4U << (blocks.width_log2 + blocks.height_log2));
  for (int c = 0; c < static_cast<int>(kReducedChannels); ++c) {
    glColorMask(c == 0, c == 1, c == 2, c == 3);
    glUniform1i(lines_.Uniform("channel"), c);
    glDrawArrays(GL_LINES, 0, vertices);
  }
  glColorMask(GL_TRUE, GL_TRUE, GL_TRUE, GL_TRUE);
}

ReducedWords GlRasterReducer::ReadRuns(const Target& target, Shape shape,
                                       const std::array<std::uint32_t, kReducedChannels>& counts,
                                       bool wide) {
  ReducedWords words;
  words.high = ReadWords(target.framebuffer, kHigh, shape.width_log2, counts);
  words.end = ReadWords(target.framebuffer, kEnd, shape.width_log2, counts);
  if (wide) words.low = ReadWords(target.framebuffer, kLow, shape.width_log2, counts);
  gl::CheckGl("reading runs back from the GPU");
  gl::CheckNotReset("reading runs back from the GPU");
  return words;
}

ReducedWords GlRasterReducer::Runs(const SortedTexels& windows, const RasterReduction& how) {
  const Shape shape{windows.width_log2, windows.height_log2};
  const std::uint32_t log2_keys = shape.width_log2 + shape.height_log2;
  // A line wraps around once at most.
  const std::uint32_t block_log2 =
      how.by_blocks ? std::min(how.block_log2, shape.width_log2) : log2_keys;
  const bool wide = windows.low != nullptr;
  const std::size_t words = wide ? 3 : 2;
  const std::uint32_t log2_blocks = log2_keys - block_log2;
  const Shape blocks{(log2_blocks + 1) / 2, log2_blocks / 2};
  for (Target& sums : sums_) Provide(sums, shape, 1);
  for (Target& sums : block_sums_) Provide(sums, blocks, 1);
  Provide(found_, shape, words);
  Provide(moved_, shape, words);

  Observe("sum inside blocks");
  vertex_array_.Bind();
  unwanted_.Use();
  BindKeys(windows, 0);
  Set(unwanted_, "width_log2", shape.width_log2);
  glUniform4ui(unwanted_.Uniform("lengths"), windows.lengths[0], windows.lengths[1],
               windows.lengths[2], windows.lengths[3]);
  Draw(sums_[0], shape);
  const gl::Texture& sums = sums_[Scan(sums_, shape, block_log2, how.scan)].texture[0];
  Observe("search");
  Gather(windows, sums, block_log2, how.by_blocks);

  Observe("sum of blocks");
  block_sum_.Use();
  sums.BindToUnit(0);
  Set(block_sum_, "block_log2", block_log2);
  Set(block_sum_, "width_log2", shape.width_log2);
  Set(block_sum_, "blocks_width_log2", blocks.width_log2);
  Draw(block_sums_[0], blocks);
  const Target& block_sums = block_sums_[Scan(block_sums_, blocks, log2_blocks, how.scan)];
  Observe("lines");
  if (how.by_blocks) Concatenate(block_sums.texture[0], blocks, block_log2, shape, words);
  gl::CheckGl("drawing the reduction");

  Observe("read back");
  // The last block's sum says how many elements are left: only they are read.
  std::vector<std::uint32_t> texels(kReducedChannels << log2_blocks);
  block_sums.framebuffer.Read(0, 1 << blocks.width_log2, 1 << blocks.height_log2, texels.data());
  std::array<std::uint32_t, kReducedChannels> counts{};
  for (std::size_t c = 0; c < kReducedChannels; ++c) {
    counts[c] = (std::uint32_t{1} << log2_keys) - texels[texels.size() - kReducedChannels + c];
  }
  return ReadRuns(how.by_blocks ? moved_ : found_, shape, counts, wide);
}

ReducedWords GlRasterReducer::Samples(const SortedTexels& windows, const SamplePlaces& places) {
  assert(places.stride > 0);
  const bool wide = windows.low != nullptr;
  std::array<std::uint32_t, kReducedChannels> counts{};
  for (std::size_t c = 0; c < kReducedChannels; ++c) counts[c] = places.Count(windows.lengths[c]);
  const std::uint32_t most = *std::max_element(counts.begin(), counts.end());
  Shape shape{windows.width_log2, 0};
  while ((std::uint32_t{1} << (shape.width_log2 + shape.height_log2)) < most) ++shape.height_log2;
  Provide(sampled_, shape, wide ? 2 : 1);

  vertex_array_.Bind();
  samples_.Use();
  BindKeys(windows, 0);
  Set(samples_, "first", places.first);
  Set(samples_, "stride", places.stride);
  Set(samples_, "width_log2", windows.width_log2);
  Set(samples_, "last", (std::uint32_t{1} << (windows.width_log2 + windows.height_log2)) - 1);
  Draw(sampled_, shape);
  gl::CheckGl("drawing samples");
  ReducedWords words;
  words.high = ReadWords(sampled_.framebuffer, 0, shape.width_log2, counts);
  if (wide) words.low = ReadWords(sampled_.framebuffer, 1, shape.width_log2, counts);
  gl::CheckGl("reading samples back from the GPU");
  gl::CheckNotReset("reading samples back from the GPU");
  return words;
}

}  // namespace tidemark::reduce
