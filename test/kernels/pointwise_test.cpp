#include "kernels/pointwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu.h"

namespace npu::kernels {
namespace {

// Every table this machine can run, so that the older ones stay tested on new machines.
struct NamedLoops {
  std::string name;
  const PointwiseLoops* loops;
};
std::vector<NamedLoops> all_loops() {
  std::vector<NamedLoops> result = {{"generic", &kGenericLoops}};
#if defined(__x86_64__)
  if (isa() >= Isa::kAvx2) result.push_back({"avx2", &kAvx2Loops});
  if (isa() >= Isa::kAvx512) result.push_back({"avx512", &kAvx512Loops});
#endif
  return result;
}

constexpr int64_t kCounts[] = {1, 3, 16, 17, 63, 64, 65, 1000};

template <class T>
std::vector<T> random_values(int64_t count, int seed) {
  std::mt19937_64 engine(seed);
  std::vector<T> values(count);
  for (T& value : values) {
    if constexpr (std::is_floating_point_v<T>)
      value = static_cast<T>(static_cast<int64_t>(engine()) >> 40) / 1000;
    else
      value = static_cast<T>(engine());
  }
  return values;
}

// Runs one operation with every table, length, alignment and kind of store, and compares bit by bit.
template <class T, class Reference>
void expect_pointwise(PointwiseOp op, DType dtype, bool takes_other, Number number, Reference reference) {
  for (const auto& [name, loops] : all_loops())
    for (const int64_t count : kCounts)
      for (const bool streaming : {false, true})
        for (const int64_t offset : {0, 1}) {
          const auto self = random_values<T>(count + offset, 1), other = random_values<T>(count + offset, 2);
          std::vector<T> out(count + offset + 1, T(7));
          loops->pointwise[static_cast<int>(op)][static_cast<int>(dtype)](
              {out.data() + offset, self.data() + offset, takes_other ? other.data() + offset : nullptr, count, number,
               streaming});
          for (int64_t i = offset; i < count + offset; ++i) {
            const T expected = reference(self[i], other[i]);
            ASSERT_EQ(std::memcmp(&out[i], &expected, sizeof(T)), 0)
                << name << " count " << count << " at " << i << ": " << +out[i] << " instead of " << +expected;
          }
          ASSERT_EQ(out.back(), T(7)) << name << " wrote past the end";
        }
}

template <class T>
T wrap(uint64_t bits) {
  return static_cast<T>(bits);
}

template <class T>
void expect_integer_arithmetic(DType dtype) {
  const Number three = {.integer = 3};
  const auto u = [](T x) { return static_cast<uint64_t>(x); };
  expect_pointwise<T>(PointwiseOp::kAdd, dtype, true, {}, [&](T a, T b) { return wrap<T>(u(a) + u(b)); });
  expect_pointwise<T>(PointwiseOp::kSub, dtype, true, {}, [&](T a, T b) { return wrap<T>(u(a) - u(b)); });
  expect_pointwise<T>(PointwiseOp::kAddScaled, dtype, true, three, [&](T a, T b) { return wrap<T>(u(a) + 3 * u(b)); });
  expect_pointwise<T>(PointwiseOp::kMul, dtype, true, {}, [&](T a, T b) { return wrap<T>(u(a) * u(b)); });
  expect_pointwise<T>(PointwiseOp::kMulNumber, dtype, false, three, [&](T a, T) { return wrap<T>(3 * u(a)); });
  expect_pointwise<T>(PointwiseOp::kAddNumber, dtype, false, three, [&](T a, T) { return wrap<T>(3 + u(a)); });
  expect_pointwise<T>(PointwiseOp::kNeg, dtype, false, {}, [&](T a, T) { return wrap<T>(-u(a)); });
  expect_pointwise<T>(PointwiseOp::kRelu, dtype, false, {}, [](T a, T) { return a < T(0) ? T(0) : a; });
}

TEST(PointwiseTest, IntegersWrap) {
  expect_integer_arithmetic<int64_t>(DType::kInt64);
  expect_integer_arithmetic<int32_t>(DType::kInt32);
  expect_integer_arithmetic<int16_t>(DType::kInt16);
  expect_integer_arithmetic<int8_t>(DType::kInt8);
  expect_integer_arithmetic<uint8_t>(DType::kUInt8);
}

template <class T>
void expect_floating_arithmetic(DType dtype) {
  const Number tenth = {.real = 0.1};
  const T t = static_cast<T>(0.1);
  expect_pointwise<T>(PointwiseOp::kAdd, dtype, true, {}, [](T a, T b) { return a + b; });
  expect_pointwise<T>(PointwiseOp::kSub, dtype, true, {}, [](T a, T b) { return a - b; });
  expect_pointwise<T>(PointwiseOp::kMul, dtype, true, {}, [](T a, T b) { return a * b; });
  expect_pointwise<T>(PointwiseOp::kDiv, dtype, true, {}, [](T a, T b) { return a / b; });
  expect_pointwise<T>(PointwiseOp::kAddNumber, dtype, false, tenth, [=](T a, T) { return a + t; });
  expect_pointwise<T>(PointwiseOp::kMulNumber, dtype, false, tenth, [=](T a, T) { return a * t; });
  expect_pointwise<T>(PointwiseOp::kDivNumber, dtype, false, tenth, [=](T a, T) { return a / t; });
  expect_pointwise<T>(PointwiseOp::kNeg, dtype, false, {}, [](T a, T) { return -a; });
  expect_pointwise<T>(PointwiseOp::kRelu, dtype, false, {}, [](T a, T) { return a < 0 ? T(0) : a; });
}

TEST(PointwiseTest, FloatsMatchScalarArithmetic) {
  expect_floating_arithmetic<float>(DType::kFloat32);
  expect_floating_arithmetic<double>(DType::kFloat64);
}

TEST(PointwiseTest, ScaledAddRoundsOnce) {
  if (isa() == Isa::kGeneric) GTEST_SKIP() << "this processor has no fused multiply-add";
  const float self = 1, other = 1 + std::numeric_limits<float>::epsilon();
  float out;
  PointwiseArguments arguments{&out, &self, &other, 1, {.real = 0.3}, PointwiseOp::kAddScaled, DType::kFloat32, {}};
  kAdd.run(TaskContext(), &arguments);
  EXPECT_EQ(out, std::fma(other, 0.3f, self));
}

TEST(PointwiseTest, ReluKeepsNanAndNegativeZero) {
  const float self[] = {std::numeric_limits<float>::quiet_NaN(), -0.0f, -1.0f, -std::numeric_limits<float>::infinity()};
  for (const auto& [name, loops] : all_loops()) {
    float out[4];
    loops->pointwise[static_cast<int>(PointwiseOp::kRelu)][static_cast<int>(DType::kFloat32)](
        {out, self, nullptr, 4, {}, false});
    EXPECT_TRUE(std::isnan(out[0])) << name;
    EXPECT_TRUE(std::signbit(out[1])) << name;
    EXPECT_EQ(out[2], 0) << name;
    EXPECT_EQ(out[3], 0) << name;
  }
}

// All halves through float and back, in every table: the conversions are exact, and rounding is checked by addition.
TEST(PointwiseTest, HalvesSurviveTheTripThroughFloat) {
  for (const DType half : {DType::kFloat16, DType::kBFloat16})
    for (const auto& [name, loops] : all_loops()) {
      std::vector<uint16_t> self(65536), back(65536);
      std::vector<float> wide(65536);
      for (size_t i = 0; i < self.size(); ++i) self[i] = static_cast<uint16_t>(i);
      const int h = static_cast<int>(half), f = static_cast<int>(DType::kFloat32);
      loops->cast[h][f](wide.data(), self.data(), 65536);
      loops->cast[f][h](back.data(), wide.data(), 65536);
      for (size_t i = 0; i < self.size(); ++i) {
        if (std::isnan(wide[i])) continue;
        ASSERT_EQ(back[i], self[i]) << name << " " << to_string(half);
      }
    }
}

TEST(PointwiseTest, HalvesRoundToNearestEven) {
  // 2049 and 2051 lie between two halves; 65520 rounds to infinity; 2^-25 is half of the smallest half.
  const float values[] = {2049, 2051, 65519, 65520, std::ldexp(1.0f, -25), std::ldexp(1.5f, -25), -2049};
  const uint16_t expected[] = {0x6800, 0x6802, 0x7bff, 0x7c00, 0x0000, 0x0001, 0xe800};
  for (const auto& [name, loops] : all_loops()) {
    uint16_t out[7];
    loops->cast[static_cast<int>(DType::kFloat32)][static_cast<int>(DType::kFloat16)](out, values, 7);
    for (int i = 0; i < 7; ++i) EXPECT_EQ(out[i], expected[i]) << name << " of " << values[i];
  }
}

TEST(PointwiseTest, CastsTruncateAndTestForZero) {
  const float self[] = {2.9f, -2.9f, 0.0f, 300.0f, std::numeric_limits<float>::quiet_NaN()};
  int32_t integers[5];
  uint8_t booleans[5];
  CastArguments arguments{integers, self, 4, DType::kInt32, DType::kFloat32, {}};
  kCast.run(TaskContext(), &arguments);
  EXPECT_EQ(std::vector<int32_t>(integers, integers + 4), (std::vector<int32_t>{2, -2, 0, 300}));
  arguments = {booleans, self, 5, DType::kBool, DType::kFloat32, {}};
  kCast.run(TaskContext(), &arguments);
  EXPECT_EQ(std::vector<uint8_t>(booleans, booleans + 5), (std::vector<uint8_t>{1, 1, 0, 1, 1}));
  EXPECT_FALSE(supports_cast(DType::kFloat32, DType::kInt8));
  EXPECT_TRUE(supports_cast(DType::kInt64, DType::kInt8));
}

TEST(PointwiseTest, FillRepeatsTheElementFromAnyStart) {
  for (const auto& [name, loops] : all_loops())
    for (const bool streaming : {false, true})
      for (const int64_t count : {1, 3, 7, 100, 1000})
        for (const int64_t offset : {0, 1, 3}) {
          std::vector<int32_t> out(count + offset + 1, 1);
          const int32_t pattern[] = {-5, -5, -5, -5};
          loops->fill(out.data() + offset, pattern, count * 4, streaming);
          for (int64_t i = 0; i < count; ++i) ASSERT_EQ(out[offset + i], -5) << name << " at " << i << " of " << count;
          ASSERT_EQ(out.back(), 1) << name;
        }
}

TEST(PointwiseTest, FillWritesOneElementOfEachDtype) {
  FillArguments arguments;
  set_pattern(arguments, DType::kFloat16, {.real = 1.5});
  EXPECT_EQ(std::memcmp(arguments.pattern, "\x00\x3e\x00\x3e", 4), 0);
  set_pattern(arguments, DType::kInt64, {.integer = -2});
  EXPECT_EQ(arguments.pattern[0], 0xfe);
  EXPECT_EQ(arguments.pattern[15], 0xff);
  set_pattern(arguments, DType::kBool, {.integer = 256});
  EXPECT_EQ(arguments.pattern[0], 1);
}

// Longer than one tile and than the streaming limit.
TEST(PointwiseTest, LargeOperandsAreCutIntoTilesWithoutGaps) {
  const auto count = static_cast<int64_t>(streaming_bytes() / sizeof(float)) + 12345;
  std::vector<float> self(count), out(count);
  for (int64_t i = 0; i < count; ++i) self[i] = static_cast<float>(i % 1000);
  PointwiseArguments arguments{out.data(), self.data(), self.data(), count, {}, PointwiseOp::kAdd, DType::kFloat32, {}};
  kAdd.run(TaskContext(), &arguments);
  for (int64_t i = 0; i < count; ++i) ASSERT_EQ(out[i], 2 * self[i]) << "at " << i;
}

TEST(PointwiseTest, VisitorSeesOperandsAndMayMoveThem) {
  struct Collect final : OperandVisitor {
    std::vector<std::string> seen;
    void visit(const Operand& operand) override {
      seen.push_back(std::string(operand.name) + " " + operand.dtype + " " + std::to_string(operand.rank) + " " +
                     std::to_string(operand.bytes));
      *operand.address = nullptr;
    }
  } collect;
  float value = 0;
  PointwiseArguments arguments{&value, &value, nullptr, 6, {}, PointwiseOp::kRelu, DType::kFloat32, {}};
  const int64_t sizes[] = {2, 3};
  arguments.shape.set(sizes, 2, 6);
  kRelu.visit(&arguments, collect);
  EXPECT_EQ(collect.seen, (std::vector<std::string>{"self float32 2 24", "out float32 2 24"}));
  EXPECT_EQ(arguments.out, nullptr);
}

}  // namespace
}  // namespace npu::kernels
