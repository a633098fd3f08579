// The table of what each call needs, against the contract: a call without a rule, or a name that no
// rule looks at, is found here. What the rules do over a real port: tests/e2e/access_test.cc.
#include "server/rpc/access_rules.h"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tidemark/v1/info.pb.h"
#include "tidemark/v1/ingest.pb.h"
#include "tidemark/v1/query.pb.h"
#include "tidemark/v1/streams.pb.h"
#include "tidemark/v1/subscriptions.pb.h"
#include "tidemark/v1/summary.pb.h"

namespace tidemark::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::MethodDescriptor;

std::vector<const MethodDescriptor*> AllMethods() {
  std::vector<const MethodDescriptor*> methods;
  for (const FileDescriptor* file :
       {v1::GetInfoRequest::descriptor()->file(), v1::PushRequest::descriptor()->file(),
        v1::QuantilesRequest::descriptor()->file(), v1::CreateStreamRequest::descriptor()->file(),
        v1::CreateSubscriptionRequest::descriptor()->file(),
        v1::ExportStreamRequest::descriptor()->file()}) {
    for (int i = 0; i < file->service_count(); ++i) {
      for (int j = 0; j < file->service(i)->method_count(); ++j) {
        methods.push_back(file->service(i)->method(j));
      }
    }
  }
  return methods;
}

// Paths of the fields by which a request names streams and subscriptions, two messages deep.
std::set<std::string> NamesIn(const Descriptor& message, const std::string& before = "") {
  static const std::set<std::string> kNames = {"stream", "stream_a", "stream_b",
                                               "name",   "from",     "subscription"};
  std::set<std::string> paths;
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor* const field = message.field(i);
    if (field->type() == FieldDescriptor::TYPE_STRING && kNames.contains(field->name())) {
      std::string path = before;
      path += field->name();  // GCC 12 warns wrongly of a sum
      paths.insert(std::move(path));
    } else if (field->type() == FieldDescriptor::TYPE_MESSAGE &&
               std::count(before.begin(), before.end(), '.') < 2) {
      std::string inside = before;
      inside += field->name();
      inside += '.';
      paths.merge(NamesIn(*field->message_type(), inside));
    }
  }
  return paths;
}

TEST(AccessRulesTest, EveryCallHasOneRuleAndEveryRuleACall) {
  std::set<std::string> methods;
  for (const MethodDescriptor* method : AllMethods()) {
    methods.insert(method->full_name());
    const RpcRule* const rule = FindRpcRule(*method->input_type());
    ASSERT_NE(rule, nullptr) << method->full_name();
    EXPECT_EQ(rule->method, method->full_name()) << "found by the name of its request";
  }
  std::set<std::string> ruled;
  for (const RpcRule& rule : RpcRules()) {
    EXPECT_TRUE(ruled.insert(std::string(rule.method)).second) << rule.method << " twice";
  }
  EXPECT_EQ(ruled, methods);
}

TEST(AccessRulesTest, EveryNameOfAStreamIsLookedAt) {
  for (const MethodDescriptor* method : AllMethods()) {
    const RpcRule* const rule = FindRpcRule(*method->input_type());
    ASSERT_NE(rule, nullptr);
    std::set<std::string> looked_at;
    for (const NamedStreams& named : rule->streams) looked_at.insert(std::string(named.path));
    std::set<std::string> expected = NamesIn(*method->input_type());
    if (rule->in_each_message) expected.erase("batch.stream");
    // What an exported file holds names where it came from, and nothing here.
    EXPECT_EQ(looked_at, expected) << method->full_name();
  }
}

TEST(AccessRulesTest, AMessageThatIsNoRequestHasNone) {
  EXPECT_EQ(FindRpcRule(*v1::Stream::descriptor()), nullptr);
  EXPECT_EQ(FindRpcRule(*v1::SumRange::descriptor()), nullptr);
}

class MayAskTest : public ::testing::Test {
 protected:
  MayAskTest() {
    const Policy::Sources none;
    const auto policy = Policy::Parse("[principal.anonymous]\nquery = [\"q*\"]\nadmin = [\"a*\"]\n",
                                      "rules.toml", none);
    EXPECT_TRUE(policy.ok()) << policy.status();
    guard_.Set(policy.value_or(nullptr));
  }
  Metrics metrics_{"test"};
  Guard guard_{metrics_, [] { return std::int64_t{0}; }};
  Caller caller_{&guard_, "grpc", {.token = {}, .certificate_names = {}, .loopback = true}};
};

TEST_F(MayAskTest, EveryNameMustBeAllowed) {
  v1::CompareRequest compare;
  compare.set_stream_a("q1");
  compare.set_stream_b("q2");
  EXPECT_TRUE(MayAsk(caller_, compare).ok());
  compare.set_stream_b("x");
  EXPECT_EQ(MayAsk(caller_, compare).code(), absl::StatusCode::kPermissionDenied);
  compare.set_stream_b("");
  EXPECT_FALSE(MayAsk(caller_, compare).ok());
  v1::MergeStreamsRequest merge;
  merge.set_stream("a");
  merge.add_from(std::string("q1"));  // GCC 12 warns wrongly of a literal
  merge.add_from(std::string("q2"));
  EXPECT_TRUE(MayAsk(caller_, merge).ok());
  merge.add_from(std::string("a"));
  EXPECT_FALSE(MayAsk(caller_, merge).ok());
  v1::WatchRequest watch;
  EXPECT_TRUE(MayAsk(caller_, watch).ok()) << "names nothing; refused for that";
  watch.mutable_sums()->set_stream("q");
  EXPECT_TRUE(MayAsk(caller_, watch).ok());
  watch.mutable_heavy_hitters()->set_stream("x");
  EXPECT_FALSE(MayAsk(caller_, watch).ok());
}

TEST_F(MayAskTest, ACallWithoutARuleIsRefused) {
  EXPECT_EQ(MayCall(caller_, *v1::Stream::descriptor()).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(MayAsk(caller_, v1::Stream()).code(), absl::StatusCode::kInternal);
}

TEST(BearerTokenTest, OnlyThatSchemeIsRead) {
  EXPECT_EQ(BearerToken("Bearer abc"), HashToken("abc"));
  EXPECT_EQ(BearerToken("bEARER abc"), HashToken("abc"));
  for (const char* other : {"abc", "Basic abc", "Bearer", "", "Bearerabc"}) {
    EXPECT_NE(BearerToken(other), HashToken("abc")) << other;
    EXPECT_NE(BearerToken(other), HashToken(other)) << other;
  }
}

}  // namespace
}  // namespace tidemark::server
