#include "runtime/blocking.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>

namespace npu {
namespace {

thread_local std::string t_calls;
int g_state = 0;

class BlockingTest : public testing::Test {
 protected:
  BlockingTest() { t_calls.clear(); }
  ~BlockingTest() override { set_blocking_hooks({}); }
};

BlockingHooks recording_hooks() {
  return {[]() -> void* {
            t_calls += "enter ";
            return &g_state;
          },
          [](void* state) { t_calls += state == &g_state ? "leave " : "leave-with-wrong-state "; },
          [] { t_calls += "poll "; }};
}

TEST_F(BlockingTest, WithoutHooksAWaitIsOnlyCounted) {
  const uint64_t before = host_waits_of_this_thread();
  {
    HostWait wait;
    wait.poll();
  }
  EXPECT_EQ(host_waits_of_this_thread(), before + 1);
  EXPECT_EQ(t_calls, "");
}

TEST_F(BlockingTest, HooksSurroundTheWait) {
  set_blocking_hooks(recording_hooks());
  {
    HostWait wait;
    wait.poll();
    wait.poll();
  }
  EXPECT_EQ(t_calls, "enter poll poll leave ");
}

TEST_F(BlockingTest, LeavesWhenPollEndsTheWait) {
  BlockingHooks hooks = recording_hooks();
  hooks.poll = [] { throw std::runtime_error("interrupted"); };
  set_blocking_hooks(hooks);
  const auto wait = [] {
    HostWait wait;
    wait.poll();
  };
  EXPECT_THROW(wait(), std::runtime_error);
  EXPECT_EQ(t_calls, "enter leave ");
}

TEST_F(BlockingTest, AWaitKeepsTheHooksItBeganWith) {
  set_blocking_hooks(recording_hooks());
  {
    HostWait wait;
    set_blocking_hooks({});
  }
  EXPECT_EQ(t_calls, "enter leave ");
}

TEST_F(BlockingTest, WaitsAreCountedForEachThread) {
  const uint64_t before = host_waits_of_this_thread();
  uint64_t other = 0;
  std::thread([&other] {
    HostWait first, second;
    other = host_waits_of_this_thread();
  }).join();
  EXPECT_EQ(other, 2u);
  EXPECT_EQ(host_waits_of_this_thread(), before);
}

}  // namespace
}  // namespace npu
