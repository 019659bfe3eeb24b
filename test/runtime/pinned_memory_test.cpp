#include "runtime/driver/sim/pinned_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "runtime/status.h"

namespace npu {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

size_t resident_pages(void* address, size_t bytes) {
  std::vector<unsigned char> pages((bytes + 4095) / 4096);
  EXPECT_EQ(mincore(address, bytes, pages.data()), 0);
  size_t count = 0;
  for (const unsigned char page : pages) count += page & 1;
  return count;
}

TEST(PinnedMemoryTest, PagesAreThereBeforeTheFirstUse) {
  PinnedMemory memory;
  for (const size_t bytes : {size_t{1}, size_t{5000}, 2 * kMiB, 5 * kMiB + 1}) {
    void* const address = memory.allocate(bytes);
    ASSERT_NE(address, nullptr);
    EXPECT_EQ(resident_pages(address, bytes), (bytes + 4095) / 4096) << bytes;
    memory.free(address);
  }
}

TEST(PinnedMemoryTest, IsKnownByAddressInsideEachBlock) {
  PinnedMemory memory;
  char* const small = static_cast<char*>(memory.allocate(100));
  char* const large = static_cast<char*>(memory.allocate(3 * kMiB));
  EXPECT_EQ(memory.locate(small + 99).base, small);
  EXPECT_EQ(memory.locate(small + 99).bytes, 100u);
  EXPECT_EQ(memory.locate(large + 2 * kMiB).base, large);
  EXPECT_EQ(memory.locate(large + 2 * kMiB).kind, MemoryLocation::Kind::kPinned);
  EXPECT_EQ(memory.locate(small + 100).kind, MemoryLocation::Kind::kUnknown);
  EXPECT_EQ(memory.locate(large + 3 * kMiB).kind, MemoryLocation::Kind::kUnknown);
  EXPECT_EQ(memory.locate(nullptr).kind, MemoryLocation::Kind::kUnknown);
  memory.free(small);
  EXPECT_EQ(memory.locate(small).kind, MemoryLocation::Kind::kUnknown);
}

TEST(PinnedMemoryTest, RefusesToFreeWhatIsNotABlock) {
  PinnedMemory memory;
  char* const address = static_cast<char*>(memory.allocate(100));
  EXPECT_THROW(memory.free(address + 1), Error);
  memory.free(address);
  try {
    memory.free(address);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidAddress);
    EXPECT_NE(std::string(error.what()).find("pinned"), std::string::npos);
  }
}

TEST(PinnedMemoryTest, ReturnsNullWhenTheMachineRefuses) {
  PinnedMemory memory;
  EXPECT_EQ(memory.allocate(SIZE_MAX), nullptr);
  EXPECT_EQ(memory.allocate(size_t{1} << 60), nullptr);
}

TEST(PinnedMemoryTest, ForkedChildrenMayRead) {
  PinnedMemory memory;
  char* const address = static_cast<char*>(memory.allocate(4 * kMiB));
  std::memset(address, 7, 4 * kMiB);
  const pid_t child = fork();
  if (child == 0) _exit(address[4 * kMiB - 1]);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(PinnedMemoryTest, LookupsRunBesideAllocations) {
  PinnedMemory memory;
  char* const stable = static_cast<char*>(memory.allocate(4096));
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop) ASSERT_EQ(memory.locate(stable + 4095).base, stable);
  });
  std::vector<std::thread> writers;
  for (int i = 0; i < 2; ++i) {
    writers.emplace_back([&] {
      for (int step = 0; step < 200; ++step) {
        void* const address = memory.allocate(8192);
        ASSERT_EQ(memory.locate(address).base, address);
        memory.free(address);
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  stop = true;
  reader.join();
}

}  // namespace
}  // namespace npu
