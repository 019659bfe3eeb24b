#include "runtime/driver/sim/device_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/status.h"

namespace npu {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kCapacity = 64 * kMiB;

DeviceMemory make_memory() {
  return DeviceMemory(3, {.capacity_bytes = kCapacity, .window_bytes = 0, .unified = false});
}

char* engine_pointer(const DeviceMemory& memory, void* address) {
  return static_cast<char*>(address) + memory.window().engine_delta();
}

std::string message_of_free(DeviceMemory& memory, void* address) {
  try {
    memory.free(address);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidAddress);
    return error.what();
  }
  return "no error";
}

TEST(DeviceMemoryTest, HandsOutZeroedAlignedMemory) {
  DeviceMemory memory = make_memory();
  void* const address = memory.allocate(3 * kMiB);
  ASSERT_NE(address, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(address) % (2 * kMiB), 0u);
  EXPECT_EQ(engine_pointer(memory, address)[4 * kMiB - 1], 0);
  std::memset(engine_pointer(memory, address), 1, 4 * kMiB);
  memory.free(address);
  EXPECT_EQ(memory.allocate(3 * kMiB), address);
  EXPECT_EQ(engine_pointer(memory, address)[0], 0);
}

TEST(DeviceMemoryTest, CountsWholeGranules) {
  DeviceMemory memory = make_memory();
  void* const tiny = memory.allocate(0);
  void* const odd = memory.allocate(2 * kMiB + 1);
  EXPECT_EQ(memory.info().total_bytes, kCapacity);
  EXPECT_EQ(memory.info().free_bytes, kCapacity - 6 * kMiB);
  memory.free(tiny);
  memory.free(odd);
  EXPECT_EQ(memory.info().free_bytes, kCapacity);
}

TEST(DeviceMemoryTest, IsExhaustedAtItsCapacityAndNotBefore) {
  DeviceMemory memory = make_memory();
  void* const half = memory.allocate(kCapacity / 2);
  EXPECT_EQ(memory.allocate(kCapacity / 2 + 1), nullptr);
  EXPECT_EQ(memory.allocate(SIZE_MAX), nullptr);
  ASSERT_NE(memory.allocate(kCapacity / 2), nullptr);
  EXPECT_EQ(memory.allocate(1), nullptr);
  memory.free(half);
  EXPECT_NE(memory.allocate(kCapacity / 2), nullptr);
}

TEST(DeviceMemoryTest, ScatteredUseLeavesAllFreeMemoryUsable) {
  DeviceMemory memory = make_memory();
  std::vector<void*> blocks;
  while (void* address = memory.allocate(2 * kMiB)) blocks.push_back(address);
  ASSERT_EQ(blocks.size(), kCapacity / (2 * kMiB));
  for (size_t i = 0; i < blocks.size(); i += 2) memory.free(blocks[i]);
  EXPECT_NE(memory.allocate(kCapacity / 2), nullptr);
  EXPECT_EQ(memory.info().free_bytes, 0u);
}

TEST(DeviceMemoryTest, LocatesTheAllocationAroundAnAddress) {
  DeviceMemory memory = make_memory();
  char* const address = static_cast<char*>(memory.allocate(6 * kMiB));
  const MemoryLocation inside = memory.locate(address + 5 * kMiB);
  EXPECT_EQ(inside.kind, MemoryLocation::Kind::kDevice);
  EXPECT_EQ(inside.device, 3);
  EXPECT_EQ(inside.base, address);
  EXPECT_EQ(inside.bytes, 6 * kMiB);
  EXPECT_EQ(memory.locate(address + 6 * kMiB).base, nullptr);
  EXPECT_EQ(memory.locate(address + 6 * kMiB).kind, MemoryLocation::Kind::kDevice);
  EXPECT_EQ(memory.locate(&memory).kind, MemoryLocation::Kind::kUnknown);
  memory.free(address);
  EXPECT_EQ(memory.locate(address).base, nullptr);
}

TEST(DeviceMemoryTest, RefusesToFreeWhatIsNotAnAllocation) {
  DeviceMemory memory = make_memory();
  char* const address = static_cast<char*>(memory.allocate(4 * kMiB));
  EXPECT_NE(message_of_free(memory, address + 8).find("inside the allocation"), std::string::npos);
  EXPECT_NE(message_of_free(memory, address + 4 * kMiB).find("never allocated"), std::string::npos);
  EXPECT_NE(message_of_free(memory, &memory).find("never allocated"), std::string::npos);
  memory.free(address);
  EXPECT_NE(message_of_free(memory, address).find("freed before"), std::string::npos);
}

// A program of random calls, with one byte written to each granule, against a map of what is live.
void run_random_program(DeviceMemory& memory, unsigned seed, size_t share) {
  std::mt19937 random(seed);
  std::map<char*, size_t> live;
  size_t used = 0;
  for (int step = 0; step < 400; ++step) {
    const size_t bytes = (1 + random() % 4) * 2 * kMiB;
    if (random() % 2 == 0 && used + bytes <= share) {
      char* const address = static_cast<char*>(memory.allocate(bytes));
      ASSERT_NE(address, nullptr);
      for (size_t offset = 0; offset < bytes; offset += 2 * kMiB) {
        ASSERT_EQ(engine_pointer(memory, address)[offset], 0);
        engine_pointer(memory, address)[offset] = static_cast<char>(1 + seed);
      }
      live[address] = bytes;
      used += bytes;
    } else if (!live.empty()) {
      const auto victim = std::next(live.begin(), static_cast<long>(random() % live.size()));
      for (size_t offset = 0; offset < victim->second; offset += 2 * kMiB)
        ASSERT_EQ(engine_pointer(memory, victim->first)[offset], static_cast<char>(1 + seed));
      ASSERT_EQ(memory.locate(victim->first + victim->second - 1).base, victim->first);
      memory.free(victim->first);
      used -= victim->second;
      live.erase(victim);
    }
  }
  for (const auto& [address, bytes] : live) memory.free(address);
}

TEST(DeviceMemoryTest, ThreadsNeverShareAGranule) {
  DeviceMemory memory = make_memory();
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed)
    threads.emplace_back([&memory, seed] { run_random_program(memory, seed, kCapacity / 4); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(memory.info().free_bytes, kCapacity);
  EXPECT_NE(memory.allocate(kCapacity), nullptr);  // all ranges have merged again
}

}  // namespace
}  // namespace npu
