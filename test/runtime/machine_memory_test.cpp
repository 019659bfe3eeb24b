#include "runtime/machine_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace npu {
namespace {

constexpr size_t kMiB = size_t{1} << 20, kGiB = size_t{1} << 30;

// A folder that looks like the /proc and /sys of a machine with 8 GiB.
class MachineMemoryTest : public testing::Test {
 protected:
  MachineMemoryTest() {
    root_ = testing::TempDir() + "machine_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
    write("/proc/meminfo", "MemTotal:        8388608 kB\nMemFree:         1234 kB\n");
  }
  ~MachineMemoryTest() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  std::string root_;
};

TEST_F(MachineMemoryTest, IsTheMachinesWithoutGroups) { EXPECT_EQ(machine_memory(root_), 8 * kGiB); }

TEST_F(MachineMemoryTest, LowestLimitOfTheGroupAndItsParentsCounts) {
  write("/proc/self/cgroup", "0::/box/job\n");
  write("/sys/fs/cgroup/box/job/memory.max", "max\n");
  write("/sys/fs/cgroup/box/memory.max", "3221225472\n");
  EXPECT_EQ(machine_memory(root_), 3 * kGiB);
}

TEST_F(MachineMemoryTest, RootGroupIsWhereContainersSeeTheirLimit) {
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/memory.max", "2147483648\n");
  EXPECT_EQ(machine_memory(root_), 2 * kGiB);
}

TEST_F(MachineMemoryTest, ReadsVersion1Groups) {
  write("/proc/self/cgroup", "7:cpu,cpuacct:/job\n5:memory:/job\n");
  write("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1073741824\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(machine_memory(root_), kGiB);
}

TEST_F(MachineMemoryTest, HasAnAnswerWhenNothingCanBeRead) { EXPECT_EQ(machine_memory(root_ + "/absent"), 4 * kGiB); }

TEST(DefaultDeviceMemoryTest, IsAQuarterInWholeSteps) {
  EXPECT_EQ(default_device_memory(24 * kGiB - 1), 5 * kGiB);
  EXPECT_EQ(default_device_memory(4 * kGiB), kGiB);
  EXPECT_EQ(default_device_memory(4 * kGiB - 1), 768 * kMiB);
  EXPECT_EQ(default_device_memory(512 * kMiB), 256 * kMiB);
}

}  // namespace
}  // namespace npu
