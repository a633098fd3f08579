// Adaptive bitonic sorting (Greß, Zachmann (GPU-ABiSort, 2006)) by fragment programs: the GL side
// of gl-abisort.
#ifndef TIDEMARK_GPU_SORT_GL_ABISORT_ENGINE_H_
#define TIDEMARK_GPU_SORT_GL_ABISORT_ENGINE_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gpu/gl/capabilities.h"
#include "gpu/gl/framebuffer.h"
#include "gpu/gl/program.h"
#include "gpu/gl/texture.h"
#include "gpu/gl/vertex_array.h"
#include "gpu/sort/abisort_plan.h"
#include "gpu/sort/gl_texel_engine.h"
#include "gpu/sort/stream_layout.h"

namespace tidemark::sort {

struct ABiSortForm {
  StreamLayout layout = StreamLayout::kZOrder;  ///< §6.2
  bool overlapped = true;                       ///< §5.4
  bool small_kernels = true;                    ///< §7
};

/// Runs the plan of abisort_plan.h: one draw call a stream operation, whose blocks are rectangles
/// of one instance each, and one more where the paper copies the pairs just written back to the
/// stream that is read (§6.1: a GPU may not read what it renders to). Nodes are RGBA32UI texels, a
/// pair of nodes one place of two textures, p and q RG32UI texels at the pair's place in two
/// textures that swap roles.
///
/// The four channels lie side by side in the stream, one behind the other, so that every operation
/// serves all of them at once.
///
/// Deviations from the paper: integer keys, 32-bit ones exact and 64-bit ones by high word, the low
/// words being fetched by id where high words are equal; indices are one-dimensional, since GPUs
/// have integer operations now, and mapped to the texture in the program; ids are given on the
/// device from the keys' places. Device memory: 76 bytes a key, 80 for 64-bit keys.
///
/// Thread: the one on which the context is current.
class GlABiSortEngine final : public TexelEngine {
 public:
  /// Throws gl::GlError.
  GlABiSortEngine(StepObserver observer, ABiSortForm form);

  const gl::Capabilities& capabilities() const override { return capabilities_; }
  std::uint32_t log2_keys_min() const override { return kABiSortMergeLog2; }
  std::uint32_t log2_keys_max() const override { return log2_keys_max_; }
  void Sort(Texels& texels) override;

 private:
  // A linked program and what is set before each of its draws; -1 where it does not use it.
  struct Kernel {
    gl::Program program;
    GLint rectangles = -1;
    GLint blocks = -1;
    GLint target_size = -1;
    GLint pairs_width_log2 = -1;
    GLint values_width_log2 = -1;
    GLint keys_width_log2 = -1;
    GLint nodes = -1;
    GLint level = -1;
    GLint alternating = -1;
    GLint subtrees = -1;
  };
  struct KernelsOfWidth {
    Kernel step;
    Kernel local_sort;
    Kernel merge;
  };
  // Sizes of the streams of the sort under way.
  struct Sizes {
    std::uint32_t log2_all = 0;
    std::uint32_t pairs_width_log2 = 0;
    std::uint32_t values_width_log2 = 0;
    std::uint32_t keys_width_log2 = 0;
    StreamRectangle trees;   // N pairs
    StreamRectangle pairs;   // N / 2 pairs
    StreamRectangle values;  // N / 8
    StreamRectangle keys;    // N / 4
  };
  struct Streams {
    Sizes sizes;
    bool wide = false;
    std::array<gl::Texture, 2> trees;                  // [even, odd]
    std::array<gl::Texture, 2> written;                // [even, odd]
    std::array<gl::Texture, 2> pq;                     // [role]
    std::array<std::array<gl::Texture, 4>, 2> values;  // [role][part]
    gl::Texture keys;
    gl::Texture low_words;
    gl::Framebuffer to_trees;
    std::array<gl::Framebuffer, 2> to_written;  // with pq of the role
    std::array<gl::Framebuffer, 2> to_values;
  };

  Kernel MakeKernel(const std::string& name, std::string_view source, bool compares,
                    bool wide) const;
  Sizes SizesOf(std::uint32_t log2_all) const;
  void MakeStreams(const Sizes& sizes, bool wide);
  void Upload(const Texels& texels, const Sizes& sizes);
  void BindInputs() const;
  void Run(const ABiSortOperation& operation, const Sizes& sizes, bool wide);
  void RunStep(const ABiSortOperation& operation, const Sizes& sizes, const Kernel& kernel);
  void Draw(const Kernel& kernel, const ABiSortOperation& operation, const Sizes& sizes,
            const StreamRectangle& target, std::span<const StreamRectangle> rectangles,
            std::span<const std::array<std::uint32_t, 4>> blocks);
  void ReadBack(Texels& texels, const Sizes& sizes, bool values);

  StepObserver observer_;
  const ABiSortForm form_;
  gl::Capabilities capabilities_;
  std::uint32_t log2_keys_max_ = 0;
  gl::VertexArray vertex_array_;
  Kernel load_;
  Kernel link_;
  Kernel relink_;
  Kernel copy_;
  Kernel traverse_;
  std::array<KernelsOfWidth, 2> kernels_;  // for keys of one word and of two
  Streams streams_;
  unsigned pq_role_ = 0;      // of the pq that the next step reads
  unsigned values_role_ = 0;  // of the values that the next kernel reads
  SortCounts drawn_;          // passes, copies and draw calls of the sort under way
};

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_GL_ABISORT_ENGINE_H_
