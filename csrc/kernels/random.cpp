#include "kernels/random.h"

#include <algorithm>
#include <limits>

#include "kernels/random_types.h"
#include "kernels/tile.h"

namespace npu::kernels {
namespace {

constexpr size_t kElementBytes = 8;  // sets the tile; the work of an element, not its size, matters
constexpr int64_t kTileUnit = 4;     // the most elements that share a block of random numbers

// One uniform number of [0, 1) with as many digits as T has; `bits` are random.
template <class T, class Bits>
ComputeType<T> unit(Bits bits) {
  constexpr int kDigits = std::is_same_v<T, BFloat16>  ? 8
                          : std::is_same_v<T, Float16> ? 11
                          : sizeof(Bits) == 4          ? 24
                                                       : 53;
  return static_cast<ComputeType<T>>(bits >> (8 * sizeof(Bits) - kDigits)) /
         static_cast<ComputeType<T>>(uint64_t{1} << kDigits);
}

// One uniform number of (0, 1].
template <class Compute, class Bits>
Compute positive_unit(Bits bits) {
  constexpr int kDigits = sizeof(Bits) == 4 ? 24 : 53;
  return static_cast<Compute>((bits >> (8 * sizeof(Bits) - kDigits)) + 1) /
         static_cast<Compute>(uint64_t{1} << kDigits);
}

// Floating types of up to 32 bits take one word an element; others two, so that every digit is random.
template <class T>
inline constexpr bool kWide = !(std::is_same_v<T, float> || kIsHalf<T>);
template <class T>
using Bits = std::conditional_t<kWide<T>, uint64_t, uint32_t>;

// Calls element(i, bits) for i in [begin, end); begin is a multiple of the elements in a block.
template <class T, class Element>
void for_each_bits(const RandomState& state, int64_t begin, int64_t end, const Element& element) {
  constexpr int kPerBlock = kWide<T> ? 2 : 4;
  for (int64_t i = begin; i < end; i += kPerBlock) {
    const PhiloxBlock block = philox(state, static_cast<uint64_t>(i / kPerBlock));
    for (int lane = 0; lane < kPerBlock && i + lane < end; ++lane) {
      if constexpr (kWide<T>)
        element(i + lane, word64(block, lane));
      else
        element(i + lane, block[static_cast<size_t>(lane)]);
    }
  }
}

// Box and Muller: two uniform numbers make two normal ones.
template <class T, class Store>
void fill_normal(const RandomState& state, int64_t begin, int64_t end, const Store& store) {
  using Compute = ComputeType<T>;
  Bits<T> first = 0;
  for_each_bits<T>(state, begin, end, [&](int64_t i, Bits<T> bits) {
    if (i % 2 == 0) first = bits;
    if (i % 2 == 0 && i + 1 < end) return;
    const Bits<T> second = i % 2 == 0 ? 0 : bits;
    const Compute radius = std::sqrt(Compute{-2} * std::log(positive_unit<Compute>(first)));
    const Compute angle = Compute{2} * std::numbers::pi_v<Compute> * unit<Compute>(second);
    store(i - i % 2, radius * std::cos(angle));
    if (i % 2 == 1) store(i, radius * std::sin(angle));
  });
}

template <class T>
void fill_floating(const RandomFillArguments& fill, T* out, int64_t begin, int64_t end) {
  using Compute = ComputeType<T>;
  const auto a = static_cast<Compute>(fill.a);
  const auto b = static_cast<Compute>(fill.b);
  const auto each = [&](const auto& value) {
    for_each_bits<T>(fill.state, begin, end, [&](int64_t i, Bits<T> bits) { out[i] = convert<T>(value(bits)); });
  };
  switch (fill.distribution) {
    case Distribution::kUniform:
      return each([&](Bits<T> bits) {
        const Compute x = unit<T>(bits) * (b - a) + a;
        return load(convert<T>(x)) < b ? x : a;  // rounding must not reach the open end
      });
    case Distribution::kExponential:
      return each([&](Bits<T> bits) {
        return std::max(-std::log(positive_unit<Compute>(bits)), std::numeric_limits<Compute>::epsilon() / 2) / a;
      });
    case Distribution::kCauchy:
      return each([&](Bits<T> bits) {
        return a + b * std::tan(std::numbers::pi_v<Compute> * (positive_unit<Compute>(bits) - Compute{0.5}));
      });
    case Distribution::kNormal:
      return fill_normal<T>(fill.state, begin, end, [&](int64_t i, Compute x) { out[i] = convert<T>(x * b + a); });
    default:
      return fill_normal<T>(fill.state, begin, end,
                            [&](int64_t i, Compute x) { out[i] = convert<T>(std::exp(x * b + a)); });
  }
}

// Distributions over whole numbers fill every type.
template <class T>
void fill_whole(const RandomFillArguments& fill, T* out, int64_t begin, int64_t end) {
  const auto each = [&](const auto& value) {
    for_each_bits<uint64_t>(fill.state, begin, end,
                            [&](int64_t i, uint64_t bits) { out[i] = convert<T>(value(bits)); });
  };
  switch (fill.distribution) {
    case Distribution::kGeometric:
      return each([scale = 1 / std::log1p(-fill.a)](uint64_t bits) {
        return std::max(1.0, std::ceil(std::log(positive_unit<double>(bits)) * scale));
      });
    case Distribution::kBernoulli: return each([&](uint64_t bits) { return unit<double>(bits) < fill.a; });
    default:
      return each([&](uint64_t bits) {
        const uint64_t x =
            fill.range == 0 ? bits : static_cast<uint64_t>((static_cast<unsigned __int128>(bits) * fill.range) >> 64);
        return static_cast<int64_t>(static_cast<uint64_t>(fill.base) + x);
      });
  }
}

bool is_whole(Distribution distribution) { return distribution >= Distribution::kGeometric; }

void run_fill(const TaskContext& context, const void* arguments) {
  const auto& fill = *static_cast<const RandomFillArguments*>(arguments);
  void* out = context.translate(fill.out);
  const auto fill_tile = [&](int64_t begin, int64_t count) {
    const int64_t end = begin + count;
    if (is_whole(fill.distribution))
      with_type(fill.dtype, [&](auto type) { fill_whole(fill, static_cast<decltype(type)*>(out), begin, end); });
    else
      with_floating(fill.dtype, [&](auto type) { fill_floating(fill, static_cast<decltype(type)*>(out), begin, end); });
  };
  for_each_tile(context, fill.numel, kElementBytes, fill_tile, kTileUnit);
}

void visit_fill(void* arguments, OperandVisitor& visitor) {
  auto& fill = *static_cast<RandomFillArguments*>(arguments);
  visit_operand(visitor, "self", Operand::Access::kWrite, fill.out, fill.dtype, fill.shape, fill.numel);
}

constexpr TaskInfo fill_info(const char* name) {
  return {.name = name, .run = run_fill, .engines = kRngEngine, .flags = kInlineable, .visit = visit_fill};
}
}  // namespace

constexpr TaskInfo kRandomFill[] = {fill_info("aten::uniform_"),    fill_info("aten::normal_"),
                                    fill_info("aten::log_normal_"), fill_info("aten::exponential_"),
                                    fill_info("aten::cauchy_"),     fill_info("aten::geometric_"),
                                    fill_info("aten::bernoulli_"),  fill_info("aten::random_")};

}  // namespace npu::kernels
