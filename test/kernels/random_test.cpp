#include "kernels/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "kernels/random_types.h"

namespace npu::kernels {
namespace {

constexpr int64_t kMany = 200'000;

template <class T>
std::vector<T> fill(Distribution distribution, DType dtype, double a, double b = 0, int64_t base = 0,
                    uint64_t range = 0, RandomState state = {1, 0}, int64_t numel = kMany) {
  std::vector<T> out(static_cast<size_t>(numel));
  const RandomFillArguments arguments{out.data(), numel, dtype, distribution, state, a, b, base, range, {}};
  kRandomFill[static_cast<size_t>(distribution)].run(TaskContext(), &arguments);
  return out;
}

std::vector<float> sample(Sampler sampler, float a, float b = 0) {
  const std::vector<float> first(kMany, a), second(kMany, b);
  std::vector<float> out(kMany);
  const RandomSampleArguments arguments{out.data(),      first.data(), second.data(), kMany,
                                        DType::kFloat32, sampler,      {1, 0},        {}};
  kRandomSample[static_cast<size_t>(sampler)].run(TaskContext(), &arguments);
  return out;
}

template <class T>
void expect_moments(const std::vector<T>& values, double mean, double deviation) {
  const double n = static_cast<double>(values.size());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  double squares = 0;
  for (const T value : values) squares += std::pow(static_cast<double>(value) - sum / n, 2);
  const double five_sigma = 5 * deviation / std::sqrt(n);
  EXPECT_NEAR(sum / n, mean, five_sigma);
  EXPECT_NEAR(std::sqrt(squares / n), deviation, 0.03 * deviation);
}

TEST(HalfTest, EveryFloat16SurvivesTheWayThroughFloat) {
  EXPECT_EQ(to_float(Float16{0x3c00}), 1.0f);
  EXPECT_EQ(to_float(Float16{0x7bff}), 65504.0f);
  EXPECT_EQ(to_float(Float16{0x8001}), -0x1p-24f);
  EXPECT_TRUE(std::isinf(to_float(Float16{0xfc00})));
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = to_float(Float16{static_cast<uint16_t>(bits)});
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(to_float(to_float16(value))));
    else
      EXPECT_EQ(to_float16(value).bits, bits);
  }
}

TEST(HalfTest, FloatsBetweenTwoFloat16RoundToTheNearerOne) {
  for (uint16_t bits = 0; bits < 0x7bff; ++bits) {
    const auto next = static_cast<uint16_t>(bits + 1);
    const float low = to_float(Float16{bits}), high = to_float(Float16{next}), middle = low + (high - low) / 2;
    EXPECT_EQ(to_float16(middle).bits, bits % 2 == 0 ? bits : next) << "a tie goes to the even one";
    EXPECT_EQ(to_float16(std::nextafter(middle, low)).bits, bits);
    EXPECT_EQ(to_float16(-std::nextafter(middle, high)).bits, next | 0x8000);
  }
  EXPECT_EQ(to_float16(65519.9f).bits, 0x7bff);
  EXPECT_EQ(to_float16(65520.0f).bits, 0x7c00);
}

// Known answers of the published generator, from its authors' test suite (kat_vectors of Random123).
TEST(PhiloxTest, KnownAnswers) {
  EXPECT_EQ(philox(0, {0, 0, 0, 0}), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~uint64_t{0}, {~0u, ~0u, ~0u, ~0u}), (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomTest, EqualPlacesGiveEqualNumbersAndOthersDoNot) {
  const auto first = fill<float>(Distribution::kUniform, DType::kFloat32, 0, 1);
  EXPECT_EQ(first, fill<float>(Distribution::kUniform, DType::kFloat32, 0, 1));
  EXPECT_NE(first, fill<float>(Distribution::kUniform, DType::kFloat32, 0, 1, 0, 0, {2, 0}));
  EXPECT_NE(first, fill<float>(Distribution::kUniform, DType::kFloat32, 0, 1, 0, 0, {1, kRandomStep}));
}

TEST(RandomTest, NumbersDoNotDependOnHowManyAreDrawn) {
  for (const Distribution distribution : {Distribution::kUniform, Distribution::kExponential, Distribution::kCauchy}) {
    const auto many = fill<double>(distribution, DType::kFloat64, 1, 2);
    const auto few = fill<double>(distribution, DType::kFloat64, 1, 2, 0, 0, {1, 0}, 1001);
    EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin()));
  }
}

TEST(RandomTest, UniformStaysInsideItsBounds) {
  const auto values = fill<float>(Distribution::kUniform, DType::kFloat32, -2, 3);
  EXPECT_GE(*std::min_element(values.begin(), values.end()), -2);
  EXPECT_LT(*std::max_element(values.begin(), values.end()), 3);
  expect_moments(values, 0.5, 5 / std::sqrt(12.0));
}

TEST(RandomTest, UniformOf16BitsNeverReachesItsEnd) {
  const auto values = fill<BFloat16>(Distribution::kUniform, DType::kBFloat16, 0, 1);
  for (const BFloat16 value : values) ASSERT_LT(value.bits, 0x3f80);  // 1.0
}

TEST(RandomTest, Moments) {
  expect_moments(fill<float>(Distribution::kNormal, DType::kFloat32, 1, 2), 1, 2);
  expect_moments(fill<double>(Distribution::kNormal, DType::kFloat64, -3, 0.5), -3, 0.5);
  expect_moments(fill<double>(Distribution::kExponential, DType::kFloat64, 4), 0.25, 0.25);
  expect_moments(fill<int64_t>(Distribution::kGeometric, DType::kInt64, 0.25), 4, std::sqrt(0.75) / 0.25);
  expect_moments(fill<uint8_t>(Distribution::kBernoulli, DType::kUInt8, 0.3), 0.3, std::sqrt(0.21));
  expect_moments(fill<int32_t>(Distribution::kInteger, DType::kInt32, 0, 0, -10, 21), 0,
                 std::sqrt((21.0 * 21 - 1) / 12));
}

TEST(RandomTest, MomentsOfSamplers) {
  for (const float rate : {0.5f, 7.0f, 40.0f, 1000.0f})
    expect_moments(sample(Sampler::kPoisson, rate), rate, std::sqrt(rate));
  for (const float shape : {0.3f, 1.0f, 9.0f})
    expect_moments(sample(Sampler::kStandardGamma, shape), shape, std::sqrt(shape));
  for (const float p : {0.05f, 0.4f, 0.9f})
    expect_moments(sample(Sampler::kBinomial, 60, p), 60.0 * p, std::sqrt(60.0 * p * (1 - p)));
}

TEST(RandomTest, SamplersOfNothingGiveNothing) {
  EXPECT_EQ(sample(Sampler::kPoisson, 0)[0], 0);
  EXPECT_EQ(sample(Sampler::kBinomial, 5, 0)[0], 0);
  EXPECT_EQ(sample(Sampler::kBinomial, 5, 1)[0], 5);
}

TEST(RandomTest, ExponentialIsNeverZero) {
  const auto values = fill<float>(Distribution::kExponential, DType::kFloat32, 1, 0, 0, 0, {3, 0}, 1 << 20);
  EXPECT_GT(*std::min_element(values.begin(), values.end()), 0);
}

TEST(RandomTest, FullRangeHasBothSigns) {
  const auto values = fill<int64_t>(Distribution::kInteger, DType::kInt64, 0, 0, INT64_MIN, 0);
  const auto negative = std::count_if(values.begin(), values.end(), [](int64_t value) { return value < 0; });
  EXPECT_NEAR(static_cast<double>(negative), kMany / 2.0, 5 * std::sqrt(kMany / 4.0));
}

TEST(RandomTest, DropoutKeepsAndScales) {
  const std::vector<float> in(kMany, 3);
  std::vector<float> out(kMany);
  std::vector<uint8_t> mask(kMany);
  DropoutArguments arguments{
      out.data(), reinterpret_cast<bool*>(mask.data()), in.data(), kMany, DType::kFloat32, 0.25, {1, 0}, {}};
  kDropout.run(TaskContext(), &arguments);
  expect_moments(mask, 0.75, std::sqrt(0.75 * 0.25));
  for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], mask[i] != 0 ? 4.0f : 0.0f);
  arguments.p = 1;
  kDropout.run(TaskContext(), &arguments);
  EXPECT_EQ(std::set<float>(out.begin(), out.end()), std::set<float>{0});
}

TEST(RandomTest, PermutationHasEveryNumberOnce) {
  std::vector<int64_t> order(1000);
  const PermutationArguments arguments{order.data(), 1000, DType::kInt64, {1, 0}};
  kPermutation.run(TaskContext(), &arguments);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(order[static_cast<size_t>(i)], i);
}

}  // namespace
}  // namespace npu::kernels
