// Definitions as bytes: there and back, cut off, changed.
#include "server/durability/definition.h"

#include <gtest/gtest.h>

#include <string>

namespace tidemark::server {
namespace {

StreamSettings Unusual() {
  StreamSettings settings;
  settings.type = ValueType::kIpv6;
  settings.quantile_epsilon = 0.25;
  settings.frequency_epsilon = 0.125;
  settings.payload = PayloadType::kWeight;
  settings.quantile_form = QuantileKind::kTail;
  settings.tail_epsilon = 0.0625;
  settings.frequencies = false;
  settings.sums = true;
  settings.sliding = {.values_max = 1'000'003, .time_max_us = 60'000'001, .epsilon = 0.03};
  settings.hierarchy = {
      .prefix_lengths = {0, 32, 64, 128}, .depth = 7, .separator = '/', .root_last = true};
  return settings;
}

TEST(Definition, ThereAndBack) {
  for (const StreamSettings& settings : {StreamSettings{}, Unusual()}) {
    for (const std::string& name : {std::string("a"), std::string(4096, 'n')}) {
      const absl::StatusOr<Definition> back = DecodeDefinition(EncodeDefinition(name, settings));
      ASSERT_TRUE(back.ok()) << back.status();
      EXPECT_EQ(back->name, name);
      EXPECT_EQ(back->settings, settings);
    }
  }
}

TEST(Definition, OtherLengthsAreRefused) {
  const std::string bytes = EncodeDefinition("a name", Unusual());
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeDefinition(bytes.substr(0, cut)).status())) << cut;
  }
  EXPECT_TRUE(absl::IsDataLoss(DecodeDefinition(bytes + '\0').status()));
}

TEST(Definition, LaterVersionsAreNamed) {
  std::string bytes = EncodeDefinition("a", {});
  bytes[0] = 2;
  EXPECT_TRUE(absl::IsFailedPrecondition(DecodeDefinition(bytes).status()));
  bytes[0] = 0;
  EXPECT_TRUE(absl::IsDataLoss(DecodeDefinition(bytes).status()));
}

TEST(Definition, UnknownTypesAreRefused) {
  const std::string bytes = EncodeDefinition("a", {});
  for (const std::size_t at : {1, 2, 3, 4}) {  // type, payload, form, flags
    std::string changed = bytes;
    changed[at] = 99;
    EXPECT_TRUE(absl::IsDataLoss(DecodeDefinition(changed).status())) << at;
  }
}

}  // namespace
}  // namespace tidemark::server
