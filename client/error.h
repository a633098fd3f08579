// How the client library says that a call did not succeed: it throws Error.
#ifndef TIDEMARK_CLIENT_ERROR_H_
#define TIDEMARK_CLIENT_ERROR_H_

#include <stdexcept>
#include <string>
#include <string_view>

namespace tidemark::client {

/// The codes of google.rpc.Code, which are gRPC's.
enum class Code : int {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

/// "NOT_FOUND", ...; "CODE_n" for a number without a name.
std::string CodeName(Code code);

/// A call that was refused, or that did not reach the daemon. what() is the daemon's own message,
/// or for kUnavailable and kDeadlineExceeded one that names the address. The library tries no call
/// again but pushes that ask for it (AcknowledgedPushOptions::retry_for): kUnavailable may be
/// retried by the caller, after a pause. A query is safe to repeat; another push is not, because
/// batches before the error stay.
class Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Code code() const { return code_; }

 private:
  Code code_;
};

}  // namespace tidemark::client

#endif  // TIDEMARK_CLIENT_ERROR_H_
