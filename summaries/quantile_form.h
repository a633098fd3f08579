// The two forms of a quantile summary behind one set of methods, so that a stream can hold either
// by configuration.
//
// kHistogram (quantile_summary.h): an exponential histogram of sampled windows. A window costs
// less,
//   the memory is tens of times as large; windows of a power of two keys, whole.
// kCompact (compact_quantiles.h): one array of elements with rank bounds. Windows of any size,
// whole
//   or as digests; the tail form.
// Measured side by side in docs/measurements.md.
#ifndef TIDEMARK_SUMMARIES_QUANTILE_FORM_H_
#define TIDEMARK_SUMMARIES_QUANTILE_FORM_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "summaries/compact_quantiles.h"
#include "summaries/quantile_summary.h"

namespace tidemark {

enum class QuantileFormKind : std::uint8_t { kHistogram, kCompact };

/// Thread and ownership: as the form that it holds.
template <class Key>
class QuantileForm {
 public:
  /// Errors: throws std::invalid_argument unless 0 < epsilon <= 0.5, and for an end that the form
  /// does not have.
  QuantileForm(QuantileFormKind kind, double epsilon, TailEnd end = TailEnd::kNone)
      : form_(Make(kind, epsilon, end)) {}

  QuantileFormKind kind() const { return static_cast<QuantileFormKind>(form_.index()); }

  /// `sorted`: ascending; of a size that the form takes.
  void AddWindow(std::span<const Key> sorted) {
    std::visit([&](auto& form) { form.AddWindow(sorted); }, form_);
  }

  /// The stride of a digest that the form takes in place of a window of `count` keys, with the same
  /// result; none where it needs the window sorted.
  std::optional<std::uint64_t> DigestStride(std::uint64_t count) const {
    const auto* compact = std::get_if<CompactQuantiles<Key>>(&form_);
    return compact != nullptr ? compact->DigestStride(count) : std::nullopt;
  }
  /// Errors: throws std::logic_error if the form takes no digests.
  void AddDigest(const WindowDigest<Key>& digest) {
    auto* compact = std::get_if<CompactQuantiles<Key>>(&form_);
    if (compact == nullptr) throw std::logic_error("a quantile histogram takes whole windows");
    compact->AddDigest(digest);
  }

  /// The stride of samples (QuantileSummary::AddSamples) that the form takes in place of a window
  /// of `count` keys, with the same result; none where it needs the window.
  /// REQUIRES: count is a power of two.
  std::optional<std::uint64_t> SampleStride(std::uint64_t count) const {
    const auto* histogram = std::get_if<QuantileSummary<Key>>(&form_);
    return histogram != nullptr ? std::optional(histogram->SampleStride(count)) : std::nullopt;
  }
  /// Errors: as QuantileSummary::AddSamples; throws std::logic_error if the form takes no samples.
  void AddSamples(std::uint64_t count, Key smallest, std::span<const Key> samples) {
    auto* histogram = std::get_if<QuantileSummary<Key>>(&form_);
    if (histogram == nullptr) throw std::logic_error("a compact quantile summary takes no samples");
    histogram->AddSamples(count, smallest, samples);
  }

  /// Errors: throws std::invalid_argument if the forms, their epsilons or ends differ.
  void Merge(const QuantileForm& other) {
    if (kind() != other.kind()) {
      throw std::invalid_argument(
          "a quantile histogram and a compact quantile summary cannot be merged");
    }
    std::visit([&]<class Form>(Form& form) { form.Merge(std::get<Form>(other.form_)); }, form_);
  }

  /// The end of finer ranks: none for a histogram.
  TailEnd end() const {
    const auto* compact = std::get_if<CompactQuantiles<Key>>(&form_);
    return compact == nullptr ? TailEnd::kNone : compact->end();
  }
  double epsilon() const {
    return std::visit([](const auto& form) { return form.epsilon(); }, form_);
  }
  std::uint64_t count() const {
    return std::visit([](const auto& form) { return form.count(); }, form_);
  }
  bool exact() const {
    return std::visit([](const auto& form) { return form.exact(); }, form_);
  }
  std::size_t bytes() const {
    return std::visit([](const auto& form) { return form.bytes(); }, form_);
  }
  QuantileSnapshot<Key> Snapshot() const {
    return std::visit([](const auto& form) { return form.Snapshot(); }, form_);
  }
  std::string Serialize() const {
    return std::visit([](const auto& form) { return form.Serialize(); }, form_);
  }
  /// Of either form: each begins with a magic of its own.
  static QuantileForm Deserialize(std::string_view bytes) {
    if (bytes.starts_with("TMQS")) return QuantileForm(QuantileSummary<Key>::Deserialize(bytes));
    return QuantileForm(CompactQuantiles<Key>::Deserialize(bytes));
  }

 private:
  using Form = std::variant<QuantileSummary<Key>, CompactQuantiles<Key>>;  // as QuantileFormKind

  explicit QuantileForm(Form form) : form_(std::move(form)) {}

  static Form Make(QuantileFormKind kind, double epsilon, TailEnd end) {
    if (kind == QuantileFormKind::kCompact) return CompactQuantiles<Key>(epsilon, end);
    if (end != TailEnd::kNone) {
      throw std::invalid_argument("a quantile histogram has no end of finer ranks");
    }
    return QuantileSummary<Key>(epsilon);
  }

  Form form_;
};

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_QUANTILE_FORM_H_
