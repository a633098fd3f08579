#include "server/rpc/batch_reader.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "server/rpc/convert.h"
#include "server/window/concat.h"

namespace tidemark::server {
namespace {

static_assert(std::endian::native == std::endian::little,
              "packed values are little-endian and read in place");

// The type that the values of a batch have by themselves; nullopt for packed bytes, which say
// nothing.
std::optional<ValueType> OwnType(const v1::Batch& batch) {
  switch (batch.values_case()) {
    case v1::Batch::kFloat64:
      return ValueType::kFloat64;
    case v1::Batch::kFloat32:
      return ValueType::kFloat32;
    case v1::Batch::kInt64:
      return ValueType::kInt64;
    case v1::Batch::kUint64:
      return ValueType::kUint64;
    case v1::Batch::kUint32:
      return ValueType::kUint32;
    case v1::Batch::kIpv4:
      return ValueType::kIpv4;
    case v1::Batch::kString:
      return ValueType::kString;
    case v1::Batch::kPacked:
    case v1::Batch::VALUES_NOT_SET:
      break;
  }
  return std::nullopt;
}

PayloadType PayloadOf(const v1::Batch& batch) {
  switch (batch.payloads_case()) {
    case v1::Batch::kWeights:
      return PayloadType::kWeight;
    case v1::Batch::kY:
      return PayloadType::kY;
    case v1::Batch::PAYLOADS_NOT_SET:
      break;
  }
  return PayloadType::kNone;
}

template <class Repeated>
std::span<const std::byte> BytesOf(const Repeated& values) {
  return {reinterpret_cast<const std::byte*>(values.data()),
          static_cast<std::size_t>(values.size()) * sizeof(*values.data())};
}

std::span<const std::byte> PayloadBytesOf(const v1::Batch& batch) {
  switch (PayloadOf(batch)) {
    case PayloadType::kWeight:
      return BytesOf(batch.weights().values());
    case PayloadType::kY:
      return BytesOf(batch.y().values());
    case PayloadType::kNone:
      break;
  }
  return {};
}

// Values that a batch holds; at least 1, so that an empty or malformed one counts.
double ValuesOf(const v1::Batch& batch) {
  const auto count = [&batch]() -> std::size_t {
    switch (batch.values_case()) {
      case v1::Batch::kFloat64:
        return static_cast<std::size_t>(batch.float64().values_size());
      case v1::Batch::kFloat32:
        return static_cast<std::size_t>(batch.float32().values_size());
      case v1::Batch::kInt64:
        return static_cast<std::size_t>(batch.int64().values_size());
      case v1::Batch::kUint64:
        return static_cast<std::size_t>(batch.uint64().values_size());
      case v1::Batch::kUint32:
        return static_cast<std::size_t>(batch.uint32().values_size());
      case v1::Batch::kIpv4:
        return static_cast<std::size_t>(batch.ipv4().values_size());
      case v1::Batch::kString:
        return static_cast<std::size_t>(batch.string().values_size());
      case v1::Batch::kPacked: {
        const auto type = ValueTypeFromNumber(static_cast<std::uint32_t>(batch.type()));
        const std::size_t bytes = type ? PackedBytes(*type) : 0;
        return batch.packed().size() / (bytes > 0 ? bytes : sizeof(double));
      }
      case v1::Batch::VALUES_NOT_SET:
        break;
    }
    return 0;
  }();
  return static_cast<double>(std::max<std::size_t>(1, count));
}

// Bytes of a batch's values in framed TCP, so that one limit means the same in both protocols.
std::uint64_t ValueBytes(const v1::Batch& batch) {
  switch (batch.values_case()) {
    case v1::Batch::kFloat64:
      return BytesOf(batch.float64().values()).size();
    case v1::Batch::kFloat32:
      return BytesOf(batch.float32().values()).size();
    case v1::Batch::kInt64:
      return BytesOf(batch.int64().values()).size();
    case v1::Batch::kUint64:
      return BytesOf(batch.uint64().values()).size();
    case v1::Batch::kUint32:
      return BytesOf(batch.uint32().values()).size();
    case v1::Batch::kIpv4:
      return BytesOf(batch.ipv4().values()).size();
    case v1::Batch::kPacked:
      return batch.packed().size();
    case v1::Batch::kString: {
      std::uint64_t bytes = 0;
      for (const std::string& item : batch.string().values()) {
        bytes += sizeof(std::uint32_t) + item.size();
      }
      return bytes;
    }
    case v1::Batch::VALUES_NOT_SET:
      break;
  }
  return 0;
}

constexpr std::size_t kProducerIdBytes = 16;
// No stream's name is as long (limits.max_name_bytes): what is refused for it needs no more of it.
constexpr std::size_t kNameBytesKept = 8192;

absl::StatusOr<ProducerBatch> FromOf(const v1::Batch& batch) {
  const std::string& id = batch.producer();
  if (id.empty() && batch.number() == 0) return ProducerBatch{};
  const bool named = id.size() == kProducerIdBytes && ProducerId(id) != ProducerBatch{}.producer;
  if (!named || batch.number() == 0) {
    return WithRefusal(absl::InvalidArgumentError(Concat(
                           "a batch with a producer of ", id.size(), " bytes and the number ",
                           batch.number(), "; expected 16 bytes, not all 0, and a number from 1")),
                       Refusal::kProducer);
  }
  return ProducerBatch{ProducerId(id), batch.number()};
}

}  // namespace

absl::Status BatchReader::SelectStream(const v1::Batch& batch, bool reopen, Attempt& what) {
  const absl::StatusOr<std::optional<ValueType>> declared = FromProto(batch.type());
  if (!declared.ok()) return WithRefusal(declared.status(), Refusal::kTypeMismatch);
  const std::optional<ValueType> own = OwnType(batch);
  if (own && *declared && *own != **declared) {
    return WithRefusal(
        absl::InvalidArgumentError(Concat("the batch declares ", ValueTypeName(**declared),
                                          " and holds ", ValueTypeName(*own))),
        Refusal::kTypeMismatch);
  }
  const std::optional<ValueType> value_type = own ? own : *declared;
  const PayloadType payload = PayloadOf(batch);
  if (!value_type && payload != PayloadType::kNone) {
    return WithRefusal(absl::InvalidArgumentError(
                           "a batch with weights or y must say the type of its values; expected "
                           "`type`, or typed values"),
                       Refusal::kTypeMismatch);
  }
  const auto type = value_type ? std::optional(ElementType(*value_type, payload)) : std::nullopt;
  if (batch.stream().empty() && name_.empty()) {
    what = Attempt::kOpen;
    return absl::InvalidArgumentError("the first batch of a call must name its stream");
  }
  // From here on no name means this stream, whatever comes of it: values that were meant for it
  // must not go to one before it.
  if (!batch.stream().empty() && batch.stream() != name_) {
    name_ = batch.stream().substr(0, kNameBytesKept);
    stream_.reset();
  }
  // From before the question: what changes meanwhile is found by the next batch.
  const std::uint64_t version = caller_.Version();
  if (!stream_ || version != asked_version_) {
    if (absl::Status status = caller_.MayOver(Role::kIngest, name_); !status.ok()) {
      stream_.reset();  // asked again by the next batch
      return status;
    }
    asked_version_ = version;
  }
  if (!stream_ || reopen) {
    absl::StatusOr<StreamHandle> stream = sink_.Open(name_, type);
    if (!stream.ok()) {
      what = Attempt::kOpen;
      stream_.reset();
      return stream.status();
    }
    stream_ = *std::move(stream);
    return absl::OkStatus();
  }
  if (type && sink_.TypeOf(stream_) != *type) {
    return absl::FailedPreconditionError(Concat("stream \"", name_, "\" holds ",
                                                ElementTypeName(sink_.TypeOf(stream_)), ", not ",
                                                ElementTypeName(*type)));
  }
  return absl::OkStatus();
}

AppendResult BatchReader::AppendValues(const v1::Batch& batch, const BatchStamp& stamp) {
  const bool pairs = PayloadOf(batch) != PayloadType::kNone;
  const auto append = [&](std::span<const std::byte> values) {
    return pairs ? sink_.AppendPairs(stream_, values, PayloadBytesOf(batch), stamp)
                 : sink_.AppendPacked(stream_, values, stamp);
  };
  switch (batch.values_case()) {
    case v1::Batch::kFloat64:
      return append(BytesOf(batch.float64().values()));
    case v1::Batch::kFloat32:
      return append(BytesOf(batch.float32().values()));
    case v1::Batch::kInt64:
      return append(BytesOf(batch.int64().values()));
    case v1::Batch::kUint64:
      return append(BytesOf(batch.uint64().values()));
    case v1::Batch::kUint32:
      return append(BytesOf(batch.uint32().values()));
    case v1::Batch::kIpv4:
      return append(BytesOf(batch.ipv4().values()));
    case v1::Batch::kPacked:
      return append(std::as_bytes(std::span(batch.packed())));
    case v1::Batch::kString: {
      const std::vector<std::string_view> items(batch.string().values().begin(),
                                                batch.string().values().end());
      return pairs ? sink_.AppendStringPairs(stream_, items, PayloadBytesOf(batch), stamp)
                   : sink_.AppendStrings(stream_, items, stamp);
    }
    case v1::Batch::VALUES_NOT_SET:
      break;
  }
  return {.status = absl::InvalidArgumentError("a batch has no values field set")};
}

AppendResult BatchReader::Append(const v1::Batch& batch, RecordedTime time) {
  AppendResult result;
  if (const std::uint64_t bytes = ValueBytes(batch) + PayloadBytesOf(batch).size();
      bytes > batch_bytes_max_) {
    CountRefused(batch, "frame_too_large");
    result.status = absl::ResourceExhaustedError(
        Concat("a batch of ", bytes, " bytes is too large; expected at most ", batch_bytes_max_));
    return result;
  }
  Attempt what = Attempt::kBatch;
  const absl::StatusOr<ProducerBatch> from = FromOf(batch);
  for (const bool reopen : {false, true}) {
    result = AppendResult{.status = from.ok() ? SelectStream(batch, reopen, what) : from.status()};
    if (!result.status.ok()) break;
    result = AppendValues(batch, {time, *from});
    if (result.status.code() != absl::StatusCode::kNotFound) break;
  }
  if (result.duplicate) {
    metrics_.source(Source::kGrpc).duplicates.Increment();
  } else if (result.status.ok()) {
    SourceMetrics& source = metrics_.source(Source::kGrpc);
    source.batches.Increment();
    source.values.Increment(static_cast<double>(result.accepted));
    source.bytes.Increment(static_cast<double>(batch.ByteSizeLong()));
    if (result.refused > 0) {
      metrics_.Refused(Source::kGrpc, "nan").Increment(static_cast<double>(result.refused));
    }
  } else {
    CountRefused(batch, ReasonOf(result.status, what));
  }
  return result;
}

void BatchReader::CountRefused(const v1::Batch& batch, std::string_view reason) {
  const auto values = ValuesOf(batch);
  metrics_.Refused(Source::kGrpc, reason).Increment(values);
  if (stream_ && (batch.stream().empty() || batch.stream() == name_)) {
    sink_.CountRefused(stream_, static_cast<std::uint64_t>(values));
  }
}

}  // namespace tidemark::server
