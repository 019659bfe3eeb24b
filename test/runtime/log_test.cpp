#include "runtime/log.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace npu {
namespace {

class LogTest : public testing::Test {
 protected:
  ~LogTest() override { set_log_level(LogLevel::kWarning); }
};

TEST_F(LogTest, LetsTheLevelAndWorsePass) {
  set_log_level(LogLevel::kInfo);
  EXPECT_TRUE(log_enabled(LogLevel::kError));
  EXPECT_TRUE(log_enabled(LogLevel::kInfo));
  EXPECT_FALSE(log_enabled(LogLevel::kDebug));
}

TEST_F(LogTest, WritesOnePrefixedLine) {
  testing::internal::CaptureStderr();
  log(LogLevel::kWarning, "something is odd");
  log(LogLevel::kDebug, "not shown");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "npu warning: something is odd\n");
}

TEST_F(LogTest, LinesOfThreadsDoNotMix) {
  testing::internal::CaptureStderr();
  std::vector<std::thread> threads;
  for (char letter = 'a'; letter < 'e'; ++letter)
    threads.emplace_back([letter] {
      for (int i = 0; i < 50; ++i) log(LogLevel::kError, std::string(100, letter));
    });
  for (std::thread& thread : threads) thread.join();
  std::istringstream lines(testing::internal::GetCapturedStderr());
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    ASSERT_EQ(line.size(), 111u) << line;
    EXPECT_EQ(line, "npu error: " + std::string(100, line.back()));
  }
  EXPECT_EQ(count, 200);
}

}  // namespace
}  // namespace npu
