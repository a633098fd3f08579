// The gl-compute sorters that its tests share. For *_gl_test.cc.
#ifndef TIDEMARK_TESTS_GPU_GL_COMPUTE_CASES_H_
#define TIDEMARK_TESTS_GPU_GL_COMPUTE_CASES_H_

#include <gtest/gtest.h>

#include <iostream>
#include <memory>
#include <string>

#include "gpu/sort/gl_compute_sorter.h"

namespace tidemark::sort::testing {

inline GlComputeOptions Software() {
  GlComputeOptions options;
  options.allow_software = true;
  return options;
}

/// Blocks of 2^8 32-bit and 2^7 64-bit keys, of 2^6 with payloads: windows of a few hundred keys go
/// through block and strided passes, of a few thousand through several strided passes a stage.
inline GlComputeOptions SmallBlocks() {
  GlComputeOptions options = Software();
  options.overrides.shared_bytes = 1024;
  return options;
}

inline GlComputeOptions SmallBlocksWithoutBufferStorage() {
  GlComputeOptions options = SmallBlocks();
  options.overrides.buffer_storage = false;
  return options;
}

/// One sorter of each kind for the tests that do not break it: a context takes up to 140 ms to
/// open. Fails, rather than skips, where none can be opened.
class GlComputeSorters : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    try {
      device_ = std::make_unique<GlComputeSorter>(Software());
      small_ = std::make_unique<GlComputeSorter>(SmallBlocks());
      masked_ = std::make_unique<GlComputeSorter>(SmallBlocksWithoutBufferStorage());
      std::cout << "GL: " << device_->gl().vendor << ", " << device_->gl().renderer << ", "
                << device_->gl().version << ", block 2^" << device_->shape({32, false}).block_log2
                << '\n';
    } catch (const SorterError& error) {
      why_not_ = error.what();
    }
  }
  static void TearDownTestSuite() {
    device_.reset();
    small_.reset();
    masked_.reset();
  }
  void SetUp() override {
    ASSERT_NE(masked_, nullptr)
        << "these tests need an EGL driver with OpenGL 4.3, Mesa's software rasteriser will do "
           "(Debian: libegl1 libegl-mesa0 libgl1-mesa-dri libopengl0): "
        << why_not_;
  }
  /// With blocks as large as the device allows.
  static GlComputeSorter& device() { return *device_; }
  static GlComputeSorter& small() { return *small_; }
  /// With small blocks and without buffer storage.
  static GlComputeSorter& masked() { return *masked_; }

 private:
  static inline std::unique_ptr<GlComputeSorter> device_;
  static inline std::unique_ptr<GlComputeSorter> small_;
  static inline std::unique_ptr<GlComputeSorter> masked_;
  static inline std::string why_not_;
};

}  // namespace tidemark::sort::testing

#endif  // TIDEMARK_TESTS_GPU_GL_COMPUTE_CASES_H_
