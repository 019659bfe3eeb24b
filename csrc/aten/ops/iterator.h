// Route "iterator": element-wise operators whose operands all have one dtype. The host builds a TensorIterator, a compact
// plan of it crosses (collapsed sizes, byte strides), and the task hands PyTorch's CPU stub an iterator without tensors.
#pragma once

#include <ATen/native/DispatchStub.h>
#include <ATen/TensorIterator.h>

#include "aten/ops/arguments.h"
#include "aten/ops/library.h"

namespace npu::aten {

// What the operator's CPU stub expects: outputs of the inputs' dtype or bool, and perhaps only floating inputs.
enum class OutputType : uint8_t { kSame, kBool };
struct StubRule {
  OutputType output = OutputType::kSame;
  bool floating_only = false;
};

// Writes the operands and the plan of `iterator`, outputs first. False, with nothing written, when it is no case for this
// route: mixed dtypes, lazy bits, no elements, or a number among half-precision tensors (CPU keeps its full precision).
bool write_plan(at::TensorIteratorBase& iterator, StubRule rule, ArgumentWriter& arguments);

// The executing side of a plan.
class Plan {
 public:
  explicit Plan(ArgumentReader& reader);  // reads the records that write_plan wrote

  // Calls a CPU stub on the whole, or on tiles cut along the outermost dimension, by shape alone.
  template <class Function, class Type, class... Args>
  void run(at::native::DispatchStub<Function, Type>& stub, const Args&... args) const {
    context_.parallel_for(tiles_, [&](int64_t tile) {
      const ThreadWidth single(1);
      TileIterator iterator(*this, tile);
      if constexpr (std::is_invocable_v<Function, at::TensorIteratorBase&, const Args&...>) {
        stub(at::kCPU, iterator, args...);
      } else {
        at::TensorIterator copy(iterator);
        stub(at::kCPU, copy, args...);
      }
    });
  }

 private:
  static constexpr int kMaxOperands = 6;
  friend bool write_plan(at::TensorIteratorBase&, StubRule, ArgumentWriter&);

  struct TileIterator final : at::TensorIteratorBase {
    TileIterator(const Plan& plan, int64_t tile);
    const at::Tensor& maybe_get_output(int64_t index) override { return tensor(static_cast<int>(index)); }
  };

  const TaskContext& context_;
  int operands_ = 0;
  int outputs_ = 0;
  at::ScalarType common_dtype_ = at::ScalarType::Undefined;
  std::array<char*, kMaxOperands> addresses_ = {};
  std::array<at::ScalarType, kMaxOperands> dtypes_ = {};
  at::IntArrayRef sizes_;             // collapsed, innermost dimension first
  const int64_t* strides_ = nullptr;  // bytes; operand after operand
  int64_t tiles_ = 1;
  int64_t tile_length_ = 0;  // along the outermost dimension
};

}  // namespace npu::aten
