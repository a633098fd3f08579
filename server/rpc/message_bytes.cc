#include "server/rpc/message_bytes.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <algorithm>
#include <string>
#include <vector>

#include "server/window/concat.h"
#include "server/window/refusal.h"
#include "server/window/text_rules.h"

namespace tidemark::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;
using Traits = grpc::SerializationTraits<Message>;

// What is wrong with the first text in the bytes of a `type` that is not UTF-8; OK if there is
// none. The messages of tidemark.v1 do not nest in themselves, so that the depth is bounded.
absl::Status FindBadText(const Descriptor& type, const std::string& bytes) {
  UnknownFieldSet fields;
  if (!fields.ParseFromString(bytes)) return absl::OkStatus();
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& field = fields.field(i);
    const FieldDescriptor* known = type.FindFieldByNumber(field.number());
    if (known == nullptr || field.type() != UnknownField::TYPE_LENGTH_DELIMITED) continue;
    const std::string& content = field.length_delimited();
    if (known->type() == FieldDescriptor::TYPE_STRING) {
      const std::size_t at = FindInvalidUtf8(content);
      if (at == std::string::npos) continue;
      // A text alone is a name, one of many an item.
      return WithRefusal(
          absl::InvalidArgumentError(Concat(known->name(), " \"", Printable(content),
                                            "\" is not UTF-8: bad byte at offset ", at)),
          known->is_repeated() ? Refusal::kBadUtf8 : Refusal::kBadName);
    }
    if (known->type() == FieldDescriptor::TYPE_MESSAGE) {
      absl::Status status = FindBadText(*known->message_type(), content);
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

std::string Flat(const grpc::ByteBuffer& bytes) {
  std::vector<grpc::Slice> slices;
  std::string flat;
  if (!bytes.Dump(&slices).ok()) return flat;
  for (const grpc::Slice& slice : slices) {
    flat.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return flat;
}

}  // namespace

absl::Status ParseMessage(const grpc::ByteBuffer& bytes, Message& message) {
  grpc::ByteBuffer consumed(bytes);  // shares the bytes
  if (Traits::Deserialize(&consumed, &message).ok()) return absl::OkStatus();
  absl::Status status = FindBadText(*message.GetDescriptor(), Flat(bytes));
  if (!status.ok()) return status;
  return WithRefusal(
      absl::InvalidArgumentError(Concat("a message of ", bytes.Length(), " bytes is no ",
                                        message.GetTypeName(), ": its bytes are malformed")),
      Refusal::kBadFrame);
}

absl::Status ParseRequest(const grpc::ByteBuffer& bytes, Message& message) {
  if (bytes.Length() > kRequestBytesMax) {
    return absl::ResourceExhaustedError(
        Concat("the request has ", bytes.Length(), " bytes; expected at most ", kRequestBytesMax));
  }
  return ParseMessage(bytes, message);
}

std::size_t HeldBytes(const grpc::ByteBuffer& bytes, const Message& message) {
  return std::max<std::size_t>(bytes.Length(), message.SpaceUsedLong());
}

absl::Status CheckAnswerBytes(const Message& message, std::size_t bytes_max) {
  const std::size_t bytes = message.ByteSizeLong();
  if (bytes <= bytes_max) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      Concat("the answer takes ", bytes, " bytes, more than the ", bytes_max,
             " of one message; ask for less at once: a smaller limit, a larger support, fewer "
             "items, a smaller page"));
}

absl::Status SerializeMessage(const Message& message, std::size_t bytes_max,
                              grpc::ByteBuffer& bytes) {
  if (absl::Status status = CheckAnswerBytes(message, bytes_max); !status.ok()) return status;
  grpc::ByteBuffer fresh;  // gRPC aborts if it is to fill one that holds something
  bool own = false;
  const grpc::Status status = Traits::Serialize(message, &fresh, &own);
  if (!status.ok()) return absl::InternalError(status.error_message());
  bytes.Swap(&fresh);
  return absl::OkStatus();
}

}  // namespace tidemark::server
