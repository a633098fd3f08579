// The periodic balanced sorting network by texture mapping and blending (Govindaraju, Raghuvanshi,
// Manocha (SIGMOD 2005), §4.4, routines 4.2 to 4.4) as plain data.
//
// n = 2^L keys pass through L equal stages of L steps each; the steps of a stage have blocks of
// 2^L, …, 4, 2 keys, and every key of a block is compared with its mirror image in the block: the
// lower half keeps the smaller keys. Key i lies at x = i mod W, y = i / W of a texture of
// W = 2^floor(L / 2) columns and H = 2^ceil(L / 2) rows. A step is drawn as quads over the halves
// of the blocks, whose texture coordinates run backwards over the other half, while blending keeps
// the smaller (or the larger) of the texture's and the frame buffer's key:
//
//   rows, block <= W               blocks, block > W
//   one row block is H rows high   a block is block / W rows
//   ┌────┬────┬────┬────┐          ┌───────────────────┐
//   │min │max │min │max │          │ min, mirrored in  │ block / W / 2 rows
//   │  ← │ →  │    │    │ H        ├─ x and in y ──────┤
//   │    │    │    │    │          │ max               │
//   └────┴────┴────┴────┘          └───────────────────┘
//
// Costs: n comparisons a step and channel, each pair twice, so n log^2 n a channel: 4 m log^2 m for
// four channels of m keys (§4.5). The paper merges the four sorted channels on the CPU, which makes
// n = 4 m one sequence; here the four are windows of their own, and stay so.
//
// Deviations: the quads of a step that keep the smaller keys are one draw call and those that keep
// the larger another, where routine 4.4 alternates for each block: they are disjoint and read what
// no quad of the step writes, so that their order does not matter.
#ifndef TIDEMARK_GPU_SORT_PBSN_PLAN_H_
#define TIDEMARK_GPU_SORT_PBSN_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpu/sort/sort_counts.h"

namespace tidemark::sort {

/// All keys at one block size.
struct PbsnStep {
  std::uint32_t stage = 0;       ///< 1 … L
  std::uint32_t log2_block = 0;  ///< L … 1
  friend bool operator==(const PbsnStep&, const PbsnStep&) = default;
};

struct PbsnSize {
  std::uint32_t width_log2 = 0;
  std::uint32_t height_log2 = 0;
};
/// The texture of 2^log2_keys texels (routine 4.3, line 2).
constexpr PbsnSize PbsnSizeOf(std::uint32_t log2_keys) {
  return {log2_keys / 2, (log2_keys + 1) / 2};
}

/// Equal quads in a row or a column: quad k lies `distance` texels behind quad k - 1.
struct PbsnQuads {
  // Quad 0, and the texture coordinates at its lower left and upper right corner.
  std::uint32_t x = 0;
  std::uint32_t y = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t from_x = 0;
  std::uint32_t from_y = 0;
  std::uint32_t to_x = 0;
  std::uint32_t to_y = 0;
  // Of both the quad and its texture coordinates.
  std::uint32_t distance_x = 0;
  std::uint32_t distance_y = 0;
  std::uint32_t count = 0;
  friend bool operator==(const PbsnQuads&, const PbsnQuads&) = default;
};

/// The largest L.
inline constexpr std::uint32_t kPbsnMaxLog2 = 24;

/// The L^2 steps that sort 2^log2_keys keys ascending, in order.
std::vector<PbsnStep> PbsnPlan(std::uint32_t log2_keys);

/// The quads of a step that keep the smaller keys, or the larger ones (routine 4.4).
PbsnQuads QuadsOf(const PbsnStep& step, const PbsnSize& size, bool smaller);

/// What sorting four channels costs, RGBA32F texels of 16 bytes: a blended texel is read from the
/// texture and from the frame buffer and written; at the end of a step the frame buffer is copied
/// to the texture, and the texture to the frame buffer at the beginning.
SortCounts PbsnCounts(std::uint32_t log2_keys);

/// Runs the plan on the CPU, quad by quad and texel by texel: the reference for the GPU.
/// REQUIRES: keys.size() is a power of two.
void RunPbsn(std::span<const PbsnStep> plan, std::span<std::uint32_t> keys);

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_PBSN_PLAN_H_
