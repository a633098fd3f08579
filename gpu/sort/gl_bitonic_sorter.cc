#include "gpu/sort/gl_bitonic_sorter.h"

#include <memory>

#include "gpu/sort/gl_bitonic_engine.h"

namespace tidemark::sort {

GlBitonicSorter::GlBitonicSorter(GlBitonicOptions options)
    : GlTexelSorter("gl-bitonic", TexelLayout::kInterleaved, options,
                    [](const StepObserver& observer) {
                      return std::make_shared<GlBitonicEngine>(observer);
                    }) {}

}  // namespace tidemark::sort
