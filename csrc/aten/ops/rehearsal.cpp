#include "aten/ops/rehearsal.h"

#include <ATen/core/TensorBody.h>
#include <c10/util/Exception.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iterator>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "aten/ops/arguments.h"
#include "aten/ops/environment.h"

namespace npu::aten {
namespace {

// Estimates of linear algebra are far too low, being those of matrix products.
constexpr uint32_t kMaxCostNs = 2'000'000;
constexpr uint32_t kMaxMixedCostNs = kMaxCostNs / 32;

// Signatures that need no further rehearsal. Lock-free; when a neighbourhood is full, a newcomer takes its first place.
class Rehearsed {
 public:
  bool contains(Signature signature) const noexcept {
    const uint64_t value = signature.value();
    for (size_t i = 0; i < kNeighbours; ++i)
      if (slot(value, i).load(std::memory_order_relaxed) == value) return true;
    return false;
  }
  void insert(Signature signature) noexcept {
    const uint64_t value = signature.value();
    for (size_t i = 0; i < kNeighbours; ++i) {
      uint64_t empty = 0;
      if (slot(value, i).compare_exchange_strong(empty, value, std::memory_order_relaxed)) return;
    }
    slot(value, 0).store(value, std::memory_order_relaxed);
  }
  void clear() noexcept {
    for (auto& slot : slots_) slot.store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr size_t kSlots = size_t{1} << 14;
  static constexpr size_t kNeighbours = 8;

  std::atomic<uint64_t>& slot(uint64_t value, size_t i) const noexcept { return slots_[((value >> 32) + i) % kSlots]; }

  mutable std::array<std::atomic<uint64_t>, kSlots> slots_ = {};
};
Rehearsed rehearsed;

// Stretches of device memory that operands cover, and where each lies in the scratch memory, which holds zeros; but LAPACK
// counts pivots from 1 and trusts them.
class Stage final : public OperandVisitor {
 public:
  Stage(void* block, EngineMask engines) : ones_(engines == kMixedEngine) {
    auto& header = *static_cast<BlockHeader*>(block);
    Span* const span =
        header.has_span ? reinterpret_cast<Span*>(static_cast<std::byte*>(block) + header.bytes) - 1 : nullptr;
    if (span != nullptr) stretches_.push_back({span->begin, span->end, 0, span->end - span->begin});
    visit_block(block, *this);
    merge();
    // Pages that no kernel touches cost nothing. As aligned as tensors: some kernels use instructions that demand it.
    memory_.reset(static_cast<std::byte*>(std::calloc(bytes_ + kAlignment, 1)));
    if (memory_ == nullptr) return;
    begin_ = memory_.get() + kAlignment - reinterpret_cast<uintptr_t>(memory_.get()) % kAlignment;
    moving_ = true;
    visit_block(block, *this);
    if (span == nullptr) return;
    const auto begin = reinterpret_cast<uintptr_t>(moved(span->begin));
    *span = {begin, begin + (span->end - span->begin)};
  }
  explicit operator bool() const noexcept { return memory_ != nullptr; }

  void visit(const Operand& operand) override {
    const auto begin = reinterpret_cast<uintptr_t>(*operand.address);
    if (!moving_) return stretches_.push_back({begin, begin + operand.bytes, 0, room_for(operand)});
    *operand.address = moved(begin);
    if (ones_ && operand.dtype == dtype_name(at::kInt))
      std::fill_n(static_cast<int32_t*>(*operand.address), operand.bytes / sizeof(int32_t), 1);
  }

 private:
  struct Stretch {
    uintptr_t begin;
    uintptr_t end;
    size_t offset;
    size_t room;  // bytes
  };
  struct Free {
    void operator()(void* memory) const noexcept { std::free(memory); }
  };
  static constexpr size_t kAlignment = 64;
  static constexpr size_t kMargin = 4096;
  static constexpr size_t kLargestItem = 16;

  // Some kernels write an output without a look at its strides.
  static size_t room_for(const Operand& operand) {
    size_t elements = 1;
    for (int i = 0; i < operand.rank; ++i) elements *= static_cast<size_t>(operand.sizes[i]);
    return operand.strides == nullptr ? operand.bytes : std::max(operand.bytes, elements * kLargestItem);
  }

  // Overlapping operands become one stretch, so that they overlap in the scratch memory too.
  void merge() {
    std::sort(stretches_.begin(), stretches_.end(),
              [](const auto& a, const auto& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
    c10::SmallVector<Stretch, 8> merged;
    for (const Stretch& stretch : stretches_) {
      if (!merged.empty() && stretch.begin < merged.back().end)
        merged.back().end = std::max(merged.back().end, stretch.end);
      else
        merged.push_back(stretch);
      merged.back().room = std::max(merged.back().room, stretch.begin - merged.back().begin + stretch.room);
    }
    bytes_ = kMargin;
    for (Stretch& stretch : merged) {
      stretch.offset = bytes_ + stretch.begin % kAlignment;
      bytes_ += (stretch.room + 2 * kAlignment + kMargin) / kAlignment * kAlignment;
    }
    stretches_ = std::move(merged);
  }

  void* moved(uintptr_t address) const {
    const auto after = std::upper_bound(stretches_.begin(), stretches_.end(), address,
                                        [](uintptr_t value, const Stretch& stretch) { return value < stretch.begin; });
    const Stretch& stretch = *(after - 1);
    return begin_ + stretch.offset + (address - stretch.begin);
  }

  const bool ones_;
  bool moving_ = false;
  size_t bytes_ = 0;
  c10::SmallVector<Stretch, 8> stretches_;
  std::unique_ptr<std::byte, Free> memory_;
  std::byte* begin_ = nullptr;
};

// Whether the operands that a task reads differ in dtype, masks aside.
class MixedDtypes final : public OperandVisitor {
 public:
  explicit MixedDtypes(const void* block) { visit_block(const_cast<void*>(block), *this); }  // changes nothing
  explicit operator bool() const noexcept { return mixed_; }

  void visit(const Operand& operand) override {
    if (operand.access != Operand::Access::kRead || operand.dtype == dtype_name(at::kBool)) return;
    mixed_ |= first_ != nullptr && first_ != operand.dtype;
    first_ = operand.dtype;
  }

 private:
  const char* first_ = nullptr;
  bool mixed_ = false;
};

template <size_t kCount>
bool mentions(std::string_view message, const std::string_view (&texts)[kCount]) {
  return std::any_of(std::begin(texts), std::end(texts),
                     [&](std::string_view text) { return message.find(text) != std::string_view::npos; });
}

// How CPU kernels word what they miss in dtypes and overlap. No complaint about values or sizes says any of this.
// clang-format off
constexpr std::string_view kWordsOfSignatures[] = {
    "dtype", "calar type", "data type", "same type", "should be type", "result type", "of type", "converted to type",
    "floating point", "floating-point", "complex", "float tensor", "int8 tensor", "bool tensor", "must be Float",
    "must be Int32", "Promotion for uint16", "Unrecognized ScalarType", "to a single memory location", "Input type ("};

// clang-format on

// What kernels say of values, which are no zeros when the task runs.
constexpr std::string_view kWordsOfValues[] = {"`zero_point` must be between `quant_min` and `quant_max`"};

// Sizes, strides, options and numbers on top of what decides about dtypes: all of a block but where its operands lie.
Signature with_contents(Signature signature, const void* block) {
  const auto& header = *static_cast<const BlockHeader*>(block);
  const auto* word = reinterpret_cast<const uint64_t*>(static_cast<const std::byte*>(block) + sizeof(BlockHeader));
  const auto* const end = reinterpret_cast<const uint64_t*>(static_cast<const std::byte*>(block) + header.bytes);
  while (word < end) {
    const auto& record = *reinterpret_cast<const Record*>(word);
    const uint64_t* const next = word + record.bytes / sizeof(*word);
    if (record.kind != Record::Kind::kSpan) {
      signature.add(*word++);
      if (record.kind == Record::Kind::kTensor) ++word;  // its address
      while (word < next) signature.add(*word++);
    }
    word = next;
  }
  return signature;
}

// Keeps the warnings of the calling thread for a scope, instead of giving them; but those of sizes: zeros may give results
// of other sizes than the real values will.
class KeptWarnings final : c10::WarningHandler {
 public:
  KeptWarnings() : guard_(this) {}
  void process(const c10::Warning& warning) override {
    if (warning.msg().find("was resized") == std::string::npos) kept_.push_back(warning);
  }
  std::vector<c10::Warning> take() noexcept { return std::move(kept_); }

 private:
  std::vector<c10::Warning> kept_;
  const c10::WarningUtils::WarningHandlerGuard guard_;
};

// Runs the task; lets through what follows from the signature alone, or whatever the kernel says but for linear algebra's
// verdict on the values. Whether the kernel got past its checks.
bool perform(const TaskInfo& info, const void* block, bool all_errors) {
  const TaskEnvironmentScope environment((info.flags & kUsesEnvironment) != 0);
  try {
    info.run(TaskContext(), block);
    return true;
  } catch (const c10::NotImplementedError&) {
    throw;
  } catch (const c10::LinAlgError&) {
    return true;
  } catch (const c10::Error& error) {
    const std::string_view words = error.what_without_backtrace();
    if (all_errors ? !mentions(words, kWordsOfValues) : mentions(words, kWordsOfSignatures)) throw;
  } catch (const std::runtime_error& error) {
    if (std::string_view(error.what()).find("value cannot be converted to type ") != std::string_view::npos) throw;
  } catch (const std::exception&) {
  }
  return false;
}

}  // namespace

void forget_rehearsals() noexcept { rehearsed.clear(); }

bool rehearse(const TaskInfo& info, Signature signature, const void* block, size_t bytes, uint32_t cost_ns) {
  signature.add(reinterpret_cast<uintptr_t>(info.run));
  if (c10::WarningUtils::get_warnAlways()) [[unlikely]]
    signature.add(1);
  if (rehearsed.contains(signature)) [[likely]]
    return false;
  const bool is_long = cost_ns > (info.engines == kMixedEngine ? kMaxMixedCostNs : kMaxCostNs);
  if (is_long && !((info.flags & kOfOneDtype) != 0 && MixedDtypes(block))) return false;
  const Signature with_sizes = with_contents(signature, block);
  if (rehearsed.contains(with_sizes)) return false;
  const auto copy = std::make_unique<std::byte[]>(bytes);
  std::memcpy(copy.get(), block, bytes);
  reinterpret_cast<BlockHeader*>(copy.get())->width = 1;
  const Stage stage(copy.get(), info.engines);
  if (!stage) return false;
  const bool sizes_count = (info.flags & kChecksSizes) != 0;
  bool passed = false;
  std::exception_ptr refusal;
  std::vector<c10::Warning> warnings;
  {
    KeptWarnings kept;
    try {
      passed = perform(info, copy.get(), sizes_count);
    } catch (...) {
      refusal = std::current_exception();
    }
    warnings = kept.take();
  }
  for (const c10::Warning& warning : warnings) c10::warn(warning);
  if (refusal) std::rethrow_exception(refusal);
  if (!warnings.empty()) return true;
  rehearsed.insert(passed && !sizes_count ? signature : with_sizes);
  return false;
}

}  // namespace npu::aten
