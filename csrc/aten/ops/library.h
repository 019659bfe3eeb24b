// Route "library": the host runs an operator's C++ shape inference and allocates, the task calls PyTorch's CPU kernel on
// aliases of the device memory. Generated wrappers use this header; see README.md.
#pragma once

#include <ATen/core/TensorBody.h>
#include <ATen/TensorIterator.h>
#include <ATen/TensorMeta.h>

#include <array>
#include <initializer_list>
#include <optional>
#include <type_traits>
#include <vector>

#include "aten/ops/argument_checks.h"
#include "aten/ops/arguments.h"
#include "aten/ops/environment.h"
#include "aten/ops/op_stats.h"
#include "aten/ops/shape_rules.h"

namespace npu::aten {

enum class Variant : uint8_t { kFunctional, kInplace, kOut };

// Receives what shape inference decides about the outputs: allocates, checks or resizes them.
class OutputSet {
 public:
  const at::Tensor& get(int64_t index) const {
    const Slot& slot = slots_[index];
    return slot.given != nullptr && !slot.own.defined() ? *slot.given : slot.own;
  }
  at::Tensor take(int64_t index) { return std::move(slots_[index].own); }

  // `exact`: the kernel needs these strides; otherwise they are a hint for new outputs. Errors are PyTorch's, word by word.
  void set(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides, at::TensorOptions options, bool exact);

  void set(int64_t index, const TensorSpec& spec);

  // The memory format of outputs for which shape inference names no strides.
  void prefer(at::MemoryFormat format) { format_ = format; }

  // Takes over the sizes and strides that a CPU kernel has given its outputs; from now on given dtypes and sizes stand.
  void settle(const std::vector<at::Tensor>& outputs);

  // Copies results computed in place of a given tensor with other strides or of another dtype.
  void finish();

 protected:
  // `own` is a new output, or what stands in for `given` until finish().
  struct Slot {
    const at::Tensor* given = nullptr;
    at::Tensor own;
  };
  OutputSet(Variant variant, int64_t count) : variant_(variant), count_(count) {}

  bool unusual(int64_t index, const TensorSpec& spec) const;

  const Variant variant_;
  const int64_t count_;
  std::optional<at::MemoryFormat> format_;
  bool settled_ = false;
  Slot* slots_ = nullptr;  // set by the derived class, which owns them
};

template <size_t kCount>
class Outputs final : public OutputSet {
 public:
  Outputs() : OutputSet(Variant::kFunctional, kCount) { slots_ = storage_.data(); }
  Outputs(Variant variant, const std::array<const at::Tensor*, kCount>& given) : OutputSet(variant, kCount) {
    slots_ = storage_.data();
    for (size_t i = 0; i < kCount; ++i) storage_[i].given = given[i];
  }
  void set_all(const TensorSpec& spec) { set(0, spec); }
  void set_all(const TensorSpecs<kCount>& specs) {
    for (size_t i = 0; i < kCount; ++i) set(static_cast<int64_t>(i), specs[i]);
  }
  // Whether the CPU kernel has to be asked what becomes of a given output (given_outputs.h).
  bool unusual(const TensorSpec& spec) const { return OutputSet::unusual(0, spec); }
  bool unusual(const TensorSpecs<kCount>& specs) const {
    for (size_t i = 0; i < kCount; ++i)
      if (OutputSet::unusual(static_cast<int64_t>(i), specs[i])) return true;
    return false;
  }

  Outputs(const Outputs&) = delete;
  Outputs& operator=(const Outputs&) = delete;

 private:
  std::array<Slot, kCount> storage_;
};

// A structured operator on the host: its meta function, our outputs. For element-wise operators the object is the built
// TensorIterator once meta() has run.
template <class Meta, size_t kCount>
struct StructuredOp final : Meta {
  StructuredOp() = default;
  StructuredOp(Variant variant, const std::array<const at::Tensor*, kCount>& given) : outputs(variant, given) {}

  void set_output_strided(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides,
                          at::TensorOptions options) override {
    outputs.set(index, sizes, strides, options, /*exact=*/true);
    tell_iterator(index, sizes, strides, options);
  }
  void set_output_raw_strided(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides,
                              at::TensorOptions options) override {
    std::optional<c10::SmallVector<int64_t, 6>> of_copies;
    if constexpr (kIterates) of_copies = shapes::strides_from_copies(*this);
    outputs.set(index, sizes, of_copies ? *of_copies : strides, options, /*exact=*/false);
    tell_iterator(index, sizes, strides, options);
  }
  const at::Tensor& maybe_get_output(int64_t index) override { return outputs.get(index); }

  Outputs<kCount> outputs;

 private:
  static constexpr bool kIterates = std::is_base_of_v<at::TensorIteratorBase, Meta>;

  // Meta functions ask the iterator for the dtype of its output. On the CPU an output of another dtype has a temporary of
  // the common dtype, and the answer is that of the temporary.
  void tell_iterator(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides, at::TensorOptions options) {
    if constexpr (kIterates) {
      at::TensorIteratorBase::set_output_raw_strided(index, sizes, strides, options);
      if (this->common_dtype_ != at::ScalarType::Undefined)
        this->operands_[static_cast<size_t>(index)].current_dtype = this->common_dtype_;
    }
  }
};

// A new npu tensor without going through the dispatcher. Empty strides: contiguous, or the options' memory format.
at::Tensor allocate(at::IntArrayRef sizes, at::IntArrayRef strides, at::TensorOptions options);
at::Tensor allocate_like(const at::Tensor& tensor);  // contiguous, same sizes, dtype, device

// Throws the error CUDA throws when a tensor lies on another device than the first defined one, naming both and `method`.
struct NamedTensor {
  NamedTensor(const char* name, const at::Tensor& tensor) : name(name), tensor(&tensor) {}
  NamedTensor(const char* name, at::OptionalTensorRef tensor)
      : name(name), tensor(tensor.has_value() ? &*tensor : nullptr) {}
  NamedTensor(const char* name, const std::optional<at::Tensor>& tensor)
      : name(name), tensor(tensor ? &*tensor : nullptr) {}
  const char* name;
  const at::Tensor* tensor;  // null or undefined: not given
};
void check_same_device(const char* method, std::initializer_list<NamedTensor> tensors);
void check_same_device(const char* method, const char* name, at::ITensorListRef tensors);

// Warns, as PyTorch does, when a cast of `from` to the dtype of `to` loses imaginary parts, and says whether it does. The
// caller would not see a warning of the task.
bool warn_of_lost_parts(const at::Tensor& from, const at::Tensor& to);

// Runs body(reader) as the task of a block. The OpenMP width is the block's, or 1 for a kernel whose result would depend on
// which thread comes first.
template <bool serial = false, class Body>
void run_library_task(const TaskContext& context, const void* block, Body&& body) {
  const auto& header = *static_cast<const BlockHeader*>(block);
  const ThreadWidth width(serial ? 1 : static_cast<int>(header.width));
  std::optional<Silence> silence;
  if (header.silent) [[unlikely]]
    silence.emplace();
  ArgumentReader reader(context, block);
  body(reader);
  reader.finish();
}

// The two tasks one form of an operator may launch.
struct Tasks {
  TaskInfo iterator;
  TaskInfo library;
};

using TaskFunction = void (*)(const TaskContext&, const void*);

constexpr TaskInfo make_task(const char* name, TaskFunction run, EngineMask engines, uint8_t kernel_flags = 0) {
  return {name, run, engines, static_cast<uint8_t>(kInlineable | kUsesEnvironment | kernel_flags), visit_block};
}
constexpr Tasks make_tasks(const char* name, TaskFunction iterate, TaskFunction run, EngineMask engines,
                           uint8_t kernel_flags = 0) {
  return {make_task(name, iterate, engines), make_task(name, run, engines, kernel_flags)};
}

}  // namespace npu::aten
