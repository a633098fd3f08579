// What a store's files hold as JSON, a line for each thing: the contract of `tidemark store dump`.
// Numbers and values as in json.h.
#ifndef TIDEMARK_CLIENT_TOOL_STORE_JSON_H_
#define TIDEMARK_CLIENT_TOOL_STORE_JSON_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "client/tool/json.h"
#include "server/store/log_format.h"
#include "server/store/snapshot_file.h"
#include "server/store/store_check.h"

namespace tidemark::tool {

/// Bytes that are no definition: {"error": ...}.
Json DefinitionToJson(std::string_view bytes);
Json ToJson(const store::SnapshotInfo& snapshot);
/// The blob of a snapshot: a stream with its definition, or the next stream's id.
Json BlobToJson(const store::SnapshotInfo& snapshot, std::string_view name, std::string_view blob);
/// `values`: those of a batch, too, and what travels beside them.
Json RecordToJson(std::uint64_t segment, std::uint64_t offset, const store::RecordHeader& header,
                  std::string_view body, bool values);
Json ToJson(const store::StoreReport& report);

}  // namespace tidemark::tool

#endif  // TIDEMARK_CLIENT_TOOL_STORE_JSON_H_
