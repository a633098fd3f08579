// Messages and their bytes. The services take bytes from gRPC and parse them here: gRPC answers a
// request that it cannot parse with UNIMPLEMENTED and no word, and takes a streamed one for the end
// of the call.
#ifndef TIDEMARK_SERVER_RPC_MESSAGE_BYTES_H_
#define TIDEMARK_SERVER_RPC_MESSAGE_BYTES_H_

#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstddef>

#include "absl/status/status.h"

namespace tidemark::server {

/// Largest request of a call that is no push: 10,000 items of a few hundred bytes. Up to a thousand
/// of them may wait for the executor.
inline constexpr std::size_t kRequestBytesMax = std::size_t{4} << 20;

/// Errors: INVALID_ARGUMENT with its Refusal, naming the first text that is not UTF-8, or the
/// message's type if the bytes are malformed.
absl::Status ParseMessage(const grpc::ByteBuffer& bytes, google::protobuf::Message& message);
/// The same, and RESOURCE_EXHAUSTED above kRequestBytesMax.
absl::Status ParseRequest(const grpc::ByteBuffer& bytes, google::protobuf::Message& message);

/// What a request holds of memory: small items take more once they are parsed.
std::size_t HeldBytes(const grpc::ByteBuffer& bytes, const google::protobuf::Message& message);

/// Errors: RESOURCE_EXHAUSTED if it takes more than `bytes_max`; `bytes` is then unchanged.
absl::Status SerializeMessage(const google::protobuf::Message& message, std::size_t bytes_max,
                              grpc::ByteBuffer& bytes);
absl::Status CheckAnswerBytes(const google::protobuf::Message& message, std::size_t bytes_max);

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_RPC_MESSAGE_BYTES_H_
