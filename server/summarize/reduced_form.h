// What summaries take of a sorted window in place of the window, where that is all they look at: a
// device that sorted it then gives back that alone.
#ifndef TIDEMARK_SERVER_SUMMARIZE_REDUCED_FORM_H_
#define TIDEMARK_SERVER_SUMMARIZE_REDUCED_FORM_H_

#include <cstdint>
#include <vector>

#include "summaries/key_weight.h"

namespace tidemark::server {

/// What is to be kept of a window. Neither: the window whole.
struct ReducedNeeds {
  /// The samples are the keys of ranks stride, 2 * stride, ... (from 1 on); 0: none are needed.
  std::uint64_t sample_stride = 0;
  bool items = false;

  bool any() const { return sample_stride != 0 || items; }
};

template <class Key>
struct ReducedForm {
  std::uint64_t count = 0;  ///< keys of the window; 0: there is no reduced form
  Key smallest = 0;
  std::vector<Key> samples;
  std::vector<KeyWeight<Key>> items;  ///< ascending, all of the window's
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_SUMMARIZE_REDUCED_FORM_H_
