#include "kernels/copy.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "kernels/cpu.h"

namespace npu::kernels {
namespace {

std::vector<unsigned char> counting(size_t bytes) {
  std::vector<unsigned char> values(bytes);
  for (size_t i = 0; i < bytes; ++i) values[i] = static_cast<unsigned char>(i * 31 + (i >> 8));
  return values;
}

TEST(CopyTest, CopiesEverySizeAndAlignment) {
  const size_t large = streaming_bytes();
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{4097}, large, large + 77})
    for (const size_t to_offset : {0, 1, 33})
      for (const size_t from_offset : {0, 7}) {
        const auto from = counting(bytes + from_offset);
        std::vector<unsigned char> to(bytes + to_offset + 1, 0xaa);
        copy_bytes(to.data() + to_offset, from.data() + from_offset, bytes);
        ASSERT_TRUE(std::equal(from.begin() + from_offset, from.end(), to.begin() + to_offset)) << bytes;
        ASSERT_EQ(to.back(), 0xaa);
      }
}

TEST(CopyTest, CopyOntoItselfIsFine) {
  auto memory = counting(100);
  copy_bytes(memory.data(), memory.data(), memory.size());
  EXPECT_EQ(memory, counting(100));
}

TEST(CopyTest, TasksCopyAcrossTiles) {
  const auto from = counting((3 << 20) + 5);
  for (const TaskInfo* info : {&kCopyIn, &kCopyInAsync, &kCopyOut, &kCopyOutAsync, &kCopyWithin}) {
    std::vector<unsigned char> to(from.size());
    const CopyArguments arguments{to.data(), from.data(), from.size()};
    info->run(TaskContext(), &arguments);
    EXPECT_EQ(to, from);
  }
}

TEST(CopyTest, OverlappingCopiesNeverRunOnTheHost) {
  EXPECT_EQ(kCopyInAsync.flags & kInlineable, 0);
  EXPECT_EQ(kCopyOutAsync.flags & kInlineable, 0);
  EXPECT_EQ(kCopyIn.engines, kDmaInEngine);
  EXPECT_EQ(kCopyOut.engines, kDmaOutEngine);
}

}  // namespace
}  // namespace npu::kernels
