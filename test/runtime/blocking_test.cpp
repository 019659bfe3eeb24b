#include "runtime/blocking.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>

namespace npu {
namespace {

thread_local std::string t_calls;
thread_local std::string t_causes;
int g_state = 0;

class BlockingTest : public testing::Test {
 protected:
  BlockingTest() {
    t_calls.clear();
    t_causes.clear();
    set_host_wait_listener([](const char* cause) { t_causes += std::string(cause) + ' '; });
  }
  ~BlockingTest() override {
    set_blocking_hooks({});
    set_host_wait_listener(nullptr);
  }
};

BlockingHooks recording_hooks() {
  return {[]() -> void* {
            t_calls += "enter ";
            return &g_state;
          },
          [](void* state) { t_calls += state == &g_state ? "leave " : "leave-with-wrong-state "; },
          [] { t_calls += "poll "; }};
}

TEST_F(BlockingTest, WithoutHooksAWaitOnlyTellsItsCause) {
  notify_host_wait();
  {
    HostWait wait;
    wait.poll();
  }
  EXPECT_EQ(t_causes, "synchronize ");
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

TEST_F(BlockingTest, TheInnermostCauseIsTold) {
  const WaitCause outer("outer");
  {
    const WaitCause inner("inner");
    notify_host_wait();
  }
  notify_host_wait();
  EXPECT_EQ(t_causes, "inner outer ");
}

TEST_F(BlockingTest, CausesAreThoseOfTheWaitingThread) {
  const WaitCause cause("mine");
  std::string other;
  std::thread([&other] {
    notify_host_wait();
    other = t_causes;
  }).join();
  EXPECT_EQ(other, "synchronize ");
  EXPECT_EQ(t_causes, "");
}

}  // namespace
}  // namespace npu
