#include "runtime/fault_report.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "fake_driver.h"
#include "runtime/driver/sim/device_memory.h"
#include "runtime/memory/caching_allocator.h"

namespace npu {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

void touch(const void* address) { [[maybe_unused]] const char value = *static_cast<const volatile char*>(address); }

// Every signal ends in a child of its own; the parent has no handler.
class FaultReportDeathTest : public testing::Test {
 protected:
  FaultReportDeathTest() { GTEST_FLAG_SET(death_test_style, "fast"); }

  DeviceMemory memory_{3, {.capacity_bytes = 16 * kMiB, .window_bytes = 0, .unified = false}};
  char* const address_ = static_cast<char*>(memory_.allocate(4 * kMiB));
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// The sanitizer's own handler comes next and ends the process with an exit status of its own.
bool died(int status) { return !WIFEXITED(status) || WEXITSTATUS(status) != 0; }
const auto kDiesBySegv = died, kDiesByFpe = died;
const char* const kSilence = "Sanitizer";
#else
const char* const kSilence = "^$";
const auto kDiesBySegv = testing::KilledBySignal(SIGSEGV), kDiesByFpe = testing::KilledBySignal(SIGFPE);
#endif

TEST_F(FaultReportDeathTest, HostAccessNamesDeviceAllocationAndRemedy) {
  const auto access = [&] {
    install_fault_report();
    touch(address_ + 100);
  };
  EXPECT_EXIT(access(), kDiesBySegv,
              "SIGSEGV: host code touched 0x[0-9a-f]+, memory of npu:3: 100 bytes into the allocation at 0x[0-9a-f]+ "
              "\\(4194304 bytes\\)(.|\n)*tensor.cpu\\(\\)");
}

TEST_F(FaultReportDeathTest, DevicesAreCalledWhatProgramsCallThem) {
  memory_.show_as(1);
  const auto access = [&] {
    install_fault_report();
    touch(address_);
  };
  EXPECT_EXIT(access(), kDiesBySegv, "memory of npu:1: 0 bytes into");
}

TEST_F(FaultReportDeathTest, FreedAndUnusedMemoryAreToldApart) {
  const auto freed = [&] {
    install_fault_report();
    memory_.free(address_);
    touch(address_ + kMiB);
  };
  EXPECT_EXIT(freed(), kDiesBySegv, "1048576 bytes into the freed allocation");
  const auto unused = [&] {
    install_fault_report();
    touch(address_ + 8 * kMiB);
  };
  EXPECT_EXIT(unused(), kDiesBySegv, "nothing was ever allocated there");
}

TEST_F(FaultReportDeathTest, BlocksOfTheCachingAllocatorAreNamed) {
  FakeDriver driver(16 * kMiB);
  FakeQueue queue;
  CachingAllocator allocator(driver, 0, 0, false);
  allocator.allocate(1000, queue, 5);
  Block* const block = allocator.allocate(3000, queue, 5);
  const auto access = [&] {
    install_fault_report();
    touch(static_cast<char*>(block->address) + 40);
  };
  EXPECT_EXIT(access(), kDiesBySegv,
              "memory of npu:0: 40 bytes into the block at 0x[0-9a-f]+ \\(3000 bytes, stream 5\\), 1064 bytes into the "
              "allocation at 0x[0-9a-f]+ \\(2097152 bytes\\)");
  allocator.free(block);
  EXPECT_EXIT(access(), kDiesBySegv, "40 bytes into the freed block at 0x[0-9a-f]+ \\(3000 bytes, stream 5\\), 1064");
}

TEST_F(FaultReportDeathTest, UnknownBlocksLeaveTheAllocation) {
  const auto access = [&] {
    install_fault_report();
    add_fault_blocks({[](const void*, uintptr_t) noexcept { return BlockHistory{}; }, this});
    touch(address_ + 100);
  };
  EXPECT_EXIT(access(), kDiesBySegv, "memory of npu:3: 100 bytes into the allocation at");
}

TEST_F(FaultReportDeathTest, TaskOutsideItsOperandsIsNamed) {
  const auto overrun = [&] {
    install_fault_report();
    const CurrentTask task{3, 7, 42, "aten::add.Tensor"};
    set_current_task(&task);
    touch(address_ + 4 * kMiB + memory_.window().engine_delta());
  };
  EXPECT_EXIT(overrun(), kDiesBySegv,
              "a task touched 0x[0-9a-f]+, memory of npu:3(.|\n)*outside its operands(.|\n)*"
              "npu:3 stream 7 ran task 42, aten::add.Tensor");
}

TEST_F(FaultReportDeathTest, OtherFatalSignalsNameTheTask) {
  const auto divide = [] {
    install_fault_report();
    const CurrentTask task{0, 0, 5, "aten::div.Tensor"};
    set_current_task(&task);
    raise(SIGFPE);
  };
  EXPECT_EXIT(divide(), kDiesByFpe, "SIGFPE while npu:0 stream 0 ran task 5, aten::div.Tensor");
}

TEST_F(FaultReportDeathTest, FaultsElsewhereStaySilentAndDie) {
  const auto null = [] {
    install_fault_report();
    volatile uintptr_t nowhere = 8;
    touch(reinterpret_cast<const void*>(nowhere));
  };
  EXPECT_EXIT(null(), kDiesBySegv, kSilence);
}

TEST_F(FaultReportDeathTest, PreviousHandlerGetsTheSignal) {
  const auto chained = [&] {
    struct sigaction action{};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = [](int, siginfo_t*, void*) { _exit(77); };
    sigaction(SIGSEGV, &action, nullptr);
    install_fault_report();
    install_fault_report();
    touch(address_);
  };
  EXPECT_EXIT(chained(), testing::ExitedWithCode(77), "host code touched");
}

TEST_F(FaultReportDeathTest, RemovedRegionsAreForgotten) {
  const auto forgotten = [&] {
    install_fault_report();
    remove_fault_regions(&memory_);
    touch(address_);
  };
  EXPECT_EXIT(forgotten(), kDiesBySegv, kSilence);
}

TEST(CurrentTaskTest, IsEachThreadsOwn) {
  const CurrentTask task{0, 1, 2, "aten::mm"};
  set_current_task(&task);
  std::thread([] { EXPECT_EQ(current_task(), nullptr); }).join();
  EXPECT_EQ(current_task(), &task);
  set_current_task(nullptr);
}

}  // namespace
}  // namespace npu
