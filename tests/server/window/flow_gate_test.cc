// Backpressure: nobody who waits is forgotten, whatever the timing.
#include "server/window/flow_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "server/window/call_back.h"

namespace tidemark::server {
namespace {

TEST(FlowGate, SaturatesAtTheLimitAndRingsAtThreeQuarters) {
  FlowGate gate(100);
  EXPECT_FALSE(gate.saturated());
  gate.Enter(100);
  EXPECT_TRUE(gate.saturated());
  int rung = 0;
  gate.WhenReady([&] { ++rung; });
  gate.Leave(24);
  EXPECT_FALSE(gate.saturated());
  EXPECT_EQ(rung, 0);
  gate.Leave(1);
  EXPECT_EQ(rung, 1);
  gate.Leave(75);
  EXPECT_EQ(rung, 1) << "once";
}

TEST(FlowGate, CallsAtOnceWhenThereIsRoom) {
  FlowGate gate(100);
  int rung = 0;
  gate.WhenReady([&] { ++rung; });
  EXPECT_EQ(rung, 1);
}

TEST(FlowGate, CloseReleasesEveryone) {
  FlowGate gate(1);
  gate.Enter(10);
  int rung = 0;
  gate.WhenReady([&] { ++rung; });
  gate.WhenReady([&] { ++rung; });
  gate.Close();
  EXPECT_EQ(rung, 2);
  EXPECT_FALSE(gate.saturated());
  gate.WhenReady([&] { ++rung; });
  EXPECT_EQ(rung, 3);
}

// Calls that are cancelled while the sorters are behind.
TEST(FlowGate, WhoHasGoneIsForgottenAndOthersAreCalled) {
  FlowGate gate(1);
  gate.Enter(10);
  int rung = 0;
  const auto stays = std::make_shared<int>(0);
  gate.WhenReady(OfAsker<>{stays, [&] { ++rung; }});
  gate.WhenReady([&] { ++rung; });
  for (std::size_t i = 0; i < 10 * GoneAskers::kLeast; ++i) {
    const auto goes = std::make_shared<int>(0);
    gate.WhenReady(OfAsker<>{goes, [] {}});
    ASSERT_LE(gate.waiting(), GoneAskers::kLeast);
  }
  gate.Leave(10);
  EXPECT_EQ(rung, 2);
  EXPECT_EQ(gate.waiting(), 0u);
}

TEST(FlowGate, NoWaiterIsLostUnderContention) {
  FlowGate gate(8);
  std::atomic<int> waits{0};
  std::atomic<int> rung{0};
  std::vector<std::thread> sources;
  for (int s = 0; s < 4; ++s) {
    sources.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) {
        gate.Enter(3);
        if (gate.saturated()) {
          ++waits;
          gate.WhenReady([&] { ++rung; });
        }
        gate.Leave(3);
      }
    });
  }
  for (std::thread& source : sources) source.join();
  EXPECT_EQ(gate.keys(), 0u);
  gate.WhenReady([] {});  // rings whoever registered between the last Leave and the end
  EXPECT_EQ(rung.load(), waits.load());
}

}  // namespace
}  // namespace tidemark::server
