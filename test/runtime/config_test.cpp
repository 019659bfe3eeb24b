#include "runtime/config.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "runtime/status.h"

namespace npu {
namespace {

using Variables = std::map<std::string, std::string>;

Config read(const Variables& variables) {
  return read_config([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

// The message of the error that `variables` cause; empty when there is none.
std::string refusal(const Variables& variables) {
  try {
    read(variables);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "";
}

TEST(ConfigTest, DefaultsWhenNothingIsSet) {
  const Config config = read({});
  EXPECT_FALSE(config.visible_devices);
  EXPECT_FALSE(config.launch_blocking);
  EXPECT_TRUE(config.fault_report);
  EXPECT_EQ(config.log_level, LogLevel::kWarning);
  EXPECT_EQ(config.fallback, FallbackMode::kWarn);
  EXPECT_EQ(config.sim.devices, 2);
  EXPECT_EQ(config.sim.memory_bytes, 0u);
  EXPECT_TRUE(config.sim.inline_tasks);
}

TEST(ConfigTest, EveryVariableReachesItsField) {
  const Config config =
      read({{"NPU_VISIBLE_DEVICES", "1, 0"},  {"NPU_LAUNCH_BLOCKING", "1"},    {"NPU_LOG_LEVEL", "debug"},
            {"NPU_TRACEBACK", "true"},        {"NPU_FALLBACK", "error"},       {"NPU_FAULT_REPORT", "0"},
            {"NPU_HANG_REPORT_S", "2.5"},     {"NPU_EXIT_TIMEOUT_S", "0"},     {"NPU_SIM_DEVICES", "8"},
            {"NPU_SIM_MEMORY", "512M"},       {"NPU_SIM_WINDOW", "2G"},        {"NPU_SIM_WORKERS", "3"},
            {"NPU_SIM_CUBE_CORES", "4"},      {"NPU_SIM_VECTOR_CORES", "5"},   {"NPU_SIM_DMA_IN_ENGINES", "6"},
            {"NPU_SIM_DMA_OUT_ENGINES", "7"}, {"NPU_SIM_QUEUE_DEPTH", "64"},   {"NPU_SIM_INLINE", "false"},
            {"NPU_SIM_DETERMINISTIC", "1"},   {"NPU_SIM_UNIFIED_MEMORY", "1"}, {"NPU_SIM_TILE_ELEMENTS", "9"}});
  EXPECT_EQ(config.visible_devices, (std::vector<int>{1, 0}));
  EXPECT_TRUE(config.launch_blocking);
  EXPECT_EQ(config.log_level, LogLevel::kDebug);
  EXPECT_TRUE(config.traceback);
  EXPECT_EQ(config.fallback, FallbackMode::kError);
  EXPECT_FALSE(config.fault_report);
  EXPECT_EQ(config.hang_report_s, 2.5);
  EXPECT_EQ(config.exit_timeout_s, 0);
  EXPECT_EQ(config.sim.devices, 8);
  EXPECT_EQ(config.sim.memory_bytes, size_t{512} << 20);
  EXPECT_EQ(config.sim.window_bytes, size_t{2} << 30);
  EXPECT_EQ(config.sim.workers, 3);
  EXPECT_EQ(config.sim.cube_cores, 4);
  EXPECT_EQ(config.sim.vector_cores, 5);
  EXPECT_EQ(config.sim.dma_in_engines, 6);
  EXPECT_EQ(config.sim.dma_out_engines, 7);
  EXPECT_EQ(config.sim.queue_depth, 64);
  EXPECT_FALSE(config.sim.inline_tasks);
  EXPECT_TRUE(config.sim.deterministic);
  EXPECT_TRUE(config.sim.unified_memory);
  EXPECT_EQ(config.sim.tile_elements, 9);
}

TEST(ConfigTest, SizesTakeBinarySuffixes) {
  const auto memory = [](const char* text) { return read({{"NPU_SIM_MEMORY", text}}).sim.memory_bytes; };
  EXPECT_EQ(memory("4194304"), size_t{4} << 20);
  EXPECT_EQ(memory("4096K"), size_t{4} << 20);
  EXPECT_EQ(memory("1.5G"), size_t{1536} << 20);
  EXPECT_EQ(memory("1g"), size_t{1} << 30);
  EXPECT_EQ(memory("1T"), size_t{1} << 40);
}

TEST(ConfigTest, ValuesThatCannotBeUsedAreNamed) {
  const std::vector<std::pair<const char*, const char*>> bad = {
      {"NPU_SIM_DEVICES", "0"},      {"NPU_SIM_DEVICES", "65"},      {"NPU_SIM_DEVICES", "two"},
      {"NPU_SIM_DEVICES", "2x"},     {"NPU_SIM_MEMORY", "1M"},       {"NPU_SIM_MEMORY", "1Q"},
      {"NPU_SIM_MEMORY", "-1G"},     {"NPU_SIM_MEMORY", "G"},        {"NPU_SIM_MEMORY", "1GG"},
      {"NPU_SIM_QUEUE_DEPTH", "48"}, {"NPU_SIM_QUEUE_DEPTH", "8"},   {"NPU_LAUNCH_BLOCKING", "yes"},
      {"NPU_LOG_LEVEL", "loud"},     {"NPU_HANG_REPORT_S", "-1"},    {"NPU_HANG_REPORT_S", "soon"},
      {"NPU_FALLBACK", "maybe"},     {"NPU_VISIBLE_DEVICES", "0,0"}, {"NPU_VISIBLE_DEVICES", "a"},
      {"NPU_VISIBLE_DEVICES", "-3"}, {"NPU_VISIBLE_DEVICES", "0,,1"}};
  for (const auto& [name, value] : bad) {
    const std::string message = refusal({{name, value}});
    EXPECT_NE(message.find(std::string(name) + "=" + value), std::string::npos)
        << name << "=" << value << ": " << message;
    EXPECT_NE(message.find("expected"), std::string::npos) << message;
  }
}

TEST(ConfigTest, WhateverIsWrongWithAValueTheExpectationIsTheSame) {
  for (const char* value : {"8", "48", "70000", "many"})
    EXPECT_NE(refusal({{"NPU_SIM_QUEUE_DEPTH", value}}).find("expected a power of two from 16 to 65536"),
              std::string::npos)
        << value;
}

TEST(ConfigTest, EmptyMeansNotSetSaveForVisibleDevices) {
  EXPECT_EQ(read({{"NPU_SIM_DEVICES", ""}}).sim.devices, 2);
  EXPECT_EQ(read({{"NPU_VISIBLE_DEVICES", ""}}).visible_devices, std::vector<int>{});
}

TEST(ConfigTest, AliasesMeanTheSameAndMayNotContradict) {
  EXPECT_EQ(read({{"ASCEND_RT_VISIBLE_DEVICES", "1"}}).visible_devices, std::vector<int>{1});
  EXPECT_TRUE(read({{"ASCEND_LAUNCH_BLOCKING", "1"}}).launch_blocking);
  EXPECT_EQ(refusal({{"NPU_VISIBLE_DEVICES", "1"}, {"ASCEND_RT_VISIBLE_DEVICES", "1"}}), "");
  const std::string message = refusal({{"NPU_VISIBLE_DEVICES", "1"}, {"ASCEND_RT_VISIBLE_DEVICES", "0"}});
  EXPECT_NE(message.find("ASCEND_RT_VISIBLE_DEVICES=0"), std::string::npos) << message;
  EXPECT_NE(refusal({{"ASCEND_LAUNCH_BLOCKING", "maybe"}}).find("ASCEND_LAUNCH_BLOCKING=maybe"), std::string::npos);
}

TEST(ConfigTest, WindowMustHoldTheMemory) {
  const std::string message = refusal({{"NPU_SIM_MEMORY", "1G"}, {"NPU_SIM_WINDOW", "512M"}});
  EXPECT_NE(message.find("NPU_SIM_WINDOW"), std::string::npos) << message;
}

TEST(ConfigTest, UnknownVariablesNameTheNearest) {
  const std::vector<std::string> warnings =
      unknown_variables({"NPU_SIM_DEVICE", "NPU_LOGLEVEL", "NPU_SIM_MEMORY", "NPU_DEPS_DIR", "PATH"});
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_NE(warnings[0].find("NPU_SIM_DEVICES"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[1].find("NPU_LOG_LEVEL"), std::string::npos) << warnings[1];
}

TEST(ConfigDeathTest, ProcessConfigurationIsReadOnceAndABadOneThrowsEachTime) {
  const auto reads_once = [] {
    setenv("NPU_SIM_DEVICES", "none", 1);
    for (int i = 0; i < 2; ++i) {
      try {
        config();
        _exit(1);
      } catch (const Error&) {
      }
    }
    setenv("NPU_SIM_DEVICES", "5", 1);
    const int devices = config().sim.devices;
    setenv("NPU_SIM_DEVICES", "6", 1);
    _exit(devices == 5 && config().sim.devices == 5 ? 0 : 2);
  };
  EXPECT_EXIT(reads_once(), testing::ExitedWithCode(0), "");
}

TEST(ConfigDeathTest, UnknownVariablesAreReportedWhenTheEnvironmentIsRead) {
  const auto warns = [] {
    setenv("NPU_SIM_MEMRY", "1G", 1);
    config();
    _exit(0);
  };
  EXPECT_EXIT(warns(), testing::ExitedWithCode(0), "npu warning: .*NPU_SIM_MEMRY.*NPU_SIM_MEMORY");
}

}  // namespace
}  // namespace npu
