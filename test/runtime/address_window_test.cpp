#include "runtime/driver/sim/address_window.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>

#include "runtime/status.h"

namespace npu {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kGranule = AddressWindow::kGranuleBytes;

WindowOptions small_window() { return {.capacity_bytes = 8 * kMiB, .window_bytes = 0, .unified = false}; }

char* engine_pointer(const AddressWindow& window, size_t offset) {
  return reinterpret_cast<char*>(window.begin() + window.engine_delta() + offset);
}

// Whether this process has a page frame behind `address`.
bool is_resident(void* address) {
  unsigned char resident = 0;
  EXPECT_EQ(mincore(address, 4096, &resident), 0);
  return (resident & 1) != 0;
}

TEST(AddressWindowTest, IsFourTimesTheCapacityAndAligned) {
  AddressWindow window(small_window());
  EXPECT_EQ(window.bytes(), 32 * kMiB);
  EXPECT_EQ(window.begin() % kGranule, 0u);
  EXPECT_EQ(window.engine_delta() % kGranule, 0u);
  EXPECT_NE(window.engine_delta(), 0u);
}

TEST(AddressWindowTest, ContainsItsAddressesOnly) {
  AddressWindow window(small_window());
  const auto contains = [&](uintptr_t address) { return window.contains(reinterpret_cast<void*>(address)); };
  EXPECT_TRUE(contains(window.begin()));
  EXPECT_TRUE(contains(window.begin() + window.bytes() - 1));
  EXPECT_FALSE(contains(window.begin() + window.bytes()));
  EXPECT_FALSE(contains(window.begin() - 1));
  EXPECT_FALSE(contains(window.begin() + window.engine_delta()));
  EXPECT_FALSE(contains(0));
}

TEST(AddressWindowTest, CommittedEnginePagesHoldDataUntilDecommit) {
  AddressWindow window(small_window());
  char* const data = engine_pointer(window, kGranule);
  window.commit(kGranule, kGranule);
  EXPECT_EQ(data[kGranule - 1], 0);
  std::memset(data, 7, kGranule);
  EXPECT_TRUE(is_resident(data));
  window.decommit(kGranule, kGranule);
  EXPECT_FALSE(is_resident(data));
  window.commit(kGranule, kGranule);
  EXPECT_EQ(data[0], 0);
}

TEST(AddressWindowDeathTest, DeviceAddressesAlwaysFault) {
  AddressWindow window(small_window());
  window.commit(0, kGranule);
  volatile char* const device = reinterpret_cast<volatile char*>(window.begin());
  EXPECT_DEATH({ [[maybe_unused]] const char value = *device; }, "");
}

TEST(AddressWindowDeathTest, UncommittedEnginePagesFault) {
  AddressWindow window(small_window());
  volatile char* const engine = engine_pointer(window, 0);
  EXPECT_DEATH(*engine = 1, "");
}

TEST(AddressWindowTest, UnifiedMemoryHasOneRange) {
  AddressWindow window({.capacity_bytes = 8 * kMiB, .window_bytes = 0, .unified = true});
  EXPECT_EQ(window.engine_delta(), 0u);
  window.commit(0, kGranule);
  char* const shared = reinterpret_cast<char*>(window.begin());
  shared[5] = 42;
  EXPECT_EQ(shared[5], 42);
}

TEST(AddressWindowTest, TakesTheSizeThatIsAskedFor) {
  AddressWindow window({.capacity_bytes = 8 * kMiB, .window_bytes = 10 * kMiB, .unified = false});
  EXPECT_EQ(window.bytes(), 10 * kMiB);
}

TEST(AddressWindowTest, RefusesAWindowBelowTheCapacity) {
  try {
    AddressWindow window({.capacity_bytes = 8 * kMiB, .window_bytes = 4 * kMiB, .unified = false});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("NPU_SIM_WINDOW"), std::string::npos) << error.what();
  }
}

// Runs `body` in a child whose address space may grow by `more` bytes; its result is the child's exit status.
template <class Body>
int run_with_address_limit(size_t more, const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t limit = pages * static_cast<size_t>(sysconf(_SC_PAGESIZE)) + more;
    const rlimit value{limit, limit};
    setrlimit(RLIMIT_AS, &value);
    _exit(body());
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kAddressSpaceIsTaken = true;  // a sanitizer's shadow memory leaves no room for a limit
#else
constexpr bool kAddressSpaceIsTaken = false;
#endif

TEST(AddressWindowTest, ShrinksToTheCapacityUnderAnAddressLimit) {
  if (kAddressSpaceIsTaken) GTEST_SKIP() << "needs an address space without sanitizer shadow";
  EXPECT_EQ(run_with_address_limit(1100 * kMiB,
                                   [] {
                                     AddressWindow window(
                                         {.capacity_bytes = 512 * kMiB, .window_bytes = 0, .unified = false});
                                     return window.bytes() == 512 * kMiB ? 0 : 1;
                                   }),
            0);
}

TEST(AddressWindowTest, NamesTheLimitThatRefusesTheCapacity) {
  if (kAddressSpaceIsTaken) GTEST_SKIP() << "needs an address space without sanitizer shadow";
  EXPECT_EQ(run_with_address_limit(
                700 * kMiB,
                [] {
                  try {
                    AddressWindow window({.capacity_bytes = 512 * kMiB, .window_bytes = 0, .unified = false});
                  } catch (const Error& error) {
                    const std::string message = error.what();
                    return error.code() == ErrorCode::kLimit && message.find("ulimit -v") != std::string::npos &&
                                   message.find("NPU_SIM_MEMORY") != std::string::npos
                               ? 0
                               : 1;
                  }
                  return 2;
                }),
            0);
}

TEST(AddressWindowTest, IsAbsentInAForkedChild) {
  AddressWindow window(small_window());
  window.commit(0, kGranule);
  char* const data = engine_pointer(window, 0);
  data[0] = 1;
  const pid_t child = fork();
  if (child == 0) _exit(msync(data, 4096, MS_ASYNC) == 0 ? 1 : 0);  // ENOMEM: not mapped
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(data[0], 1);
}

}  // namespace
}  // namespace npu
