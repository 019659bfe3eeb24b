// How operators outside this library put work on npu streams; docs/custom_operators.md has complete examples.
//
//   void scale(const at::Tensor& x, double factor, at::Tensor& out);           // the work, on the device's side
//   const npu::aten::Kernel<scale> kScale("example::scale", {"x", "factor", "out"});
//
//   at::Tensor scale_npu(const at::Tensor& x, double factor) {                 // the operator, registered for PrivateUse1
//     at::Tensor out = at::empty_like(x);
//     kScale(x, factor, out);                                                  // returns at once
//     return out;
//   }
#pragma once

#include <array>
#include <cstring>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "aten/ops/arguments.h"
#include "aten/ops/op_stats.h"

namespace npu::aten {

class NPU_API KernelBase {
 protected:
  KernelBase(const char* name, void (*run)(const TaskContext&, const void*), EngineMask engines);
  // TORCH_CHECK that what the kernel writes lies on npu: the task would write a copy of a host tensor.
  void check_output(std::string_view argument, const at::Tensor& tensor) const;
  void launch(ArgumentWriter& arguments) const;
  static void run(const TaskContext& context, const void* block, void (*body)(ArgumentReader&));

 private:
  const TaskInfo info_;
  OpCounters& counters_;
};

namespace detail {

template <class Function>
struct KernelSignature;
template <class... Parameters>
struct KernelSignature<void (*)(Parameters...)> {
  static constexpr bool kTakesContext = false;
  using Types = std::tuple<std::type_identity<Parameters>...>;
};
template <class... Parameters>
struct KernelSignature<void (*)(const TaskContext&, Parameters...)> {
  static constexpr bool kTakesContext = true;
  using Types = std::tuple<std::type_identity<Parameters>...>;
};

// What crosses as plain bytes.
template <class T>
concept PlainArgument = std::is_trivially_copyable_v<T> && (std::is_arithmetic_v<T> || std::is_enum_v<T> ||
                                                            (std::is_class_v<T> && std::is_aggregate_v<T>));

// How a kernel's parameter is passed by the caller and crosses to the task.
template <class Parameter>
struct KernelParameter {
  using Value = std::remove_cvref_t<Parameter>;
  static constexpr bool kIsOutput = std::is_same_v<Parameter, at::Tensor&>;
  static constexpr bool kIsTensorList = std::is_same_v<Value, std::vector<at::Tensor>>;
  static_assert(kIsOutput || !std::is_lvalue_reference_v<Parameter> ||
                    std::is_const_v<std::remove_reference_t<Parameter>>,
                "a kernel changes nothing but tensors it takes as at::Tensor&");
  using Given = std::conditional_t<kIsTensorList, at::TensorList, const Value&>;

  static void write(ArgumentWriter& arguments, Given value) {
    if constexpr (kIsOutput)
      arguments.write_output(value);
    else if constexpr (PlainArgument<Value>)
      std::memcpy(arguments.write_record({.kind = Record::Kind::kValue}, sizeof(Value)), &value, sizeof(Value));
    else
      arguments.write(value);
  }
  static Value read(ArgumentReader& arguments) {
    if constexpr (kIsOutput)
      return arguments.read_output();
    else if constexpr (PlainArgument<Value>)
      return arguments.read_plain<Value>();
    else
      return arguments.read<Value>();
  }
};

}  // namespace detail

// Work of a custom operator that can be queued: a function and what reports call it and its arguments.
//
// `function` returns nothing and takes, in any order,
//   const at::Tensor&  that it reads                        at::Tensor&                       that it writes
//   const std::vector<at::Tensor>&                          std::optional<at::Tensor>
//   at::Scalar, at::IntArrayRef, std::string_view           std::optional of int64_t, double, bool, at::Scalar
//   arithmetic types, enums, at::ScalarType, structs of them (trivially copyable aggregates)
// and, if it wants to cut itself into tiles that run on several cores, a const npu::TaskContext& before all others.
// It runs on the executing side, after earlier work of the stream, on a worker; tiles of it on any worker, with one OpenMP
// thread each. Its tensors are CPU tensors over the memory of the arguments, valid until it returns; it may call any
// operator of PyTorch on them, must not resize them or use npu tensors, and must take no lock that a launching or waiting
// thread may hold, Python's GIL included. What it throws becomes an error of the device, which the next synchronising call
// raises.
//
// A Kernel lives at namespace scope: tasks refer to it. Names are not copied.
template <auto function>
class Kernel final : KernelBase {
  using Signature = detail::KernelSignature<decltype(function)>;
  using Types = typename Signature::Types;
  static constexpr size_t kCount = std::tuple_size_v<Types>;
  using Sequence = std::make_index_sequence<kCount>;
  template <size_t i>
  using Parameter = detail::KernelParameter<typename std::tuple_element_t<i, Types>::type>;

 public:
  // `name` is the operator's full name, `arguments` name the parameters. `engines`: what the task occupies while it runs.
  Kernel(const char* name, const char* const (&arguments)[kCount], EngineMask engines = kVectorEngine)
      : KernelBase(name, run, engines), names_(make_names(arguments, Sequence())) {}

  // Queues the work on the current stream of the tensors' device and returns; op_stats() counts it as a call of `name`,
  // unless it is part of another operator. Values are copied; CPU tensors are taken as values when they have no dimensions.
  // The caller may drop the tensors at once; a tensor made on another stream needs record_stream, as everywhere.
  // Threads: any. Errors: TORCH_CHECK when no tensor or not every output lies on npu, when tensors lie
  // on different devices, or are not strided.
  template <class... Given>
  void operator()(const Given&... given) const {
    static_assert(sizeof...(Given) == kCount, "a kernel takes as many arguments as its function");
    ArgumentWriter arguments(names_.data());
    write(arguments, Sequence(), given...);
    launch(arguments);
  }

 private:
  template <size_t... i>
  static std::array<ArgumentName, kCount> make_names(const char* const (&names)[kCount], std::index_sequence<i...>) {
    return {ArgumentName{names[i], Parameter<i>::kIsOutput ? Operand::Access::kReadWrite : Operand::Access::kRead}...};
  }

  template <size_t... i, class... Given>
  void write(ArgumentWriter& arguments, std::index_sequence<i...>, const Given&... given) const {
    const auto write_one = [&]<class Written>(Written, const ArgumentName& name, const auto& value) {
      if constexpr (Written::kIsOutput) check_output(name.name, value);
      Written::write(arguments, value);
    };
    (write_one(Parameter<i>(), names_[i], given), ...);
  }

  static void run(const TaskContext& context, const void* block) { KernelBase::run(context, block, call); }
  static void call(ArgumentReader& arguments) { call(arguments, Sequence()); }
  template <size_t... i>
  static void call(ArgumentReader& arguments, std::index_sequence<i...>) {
    std::tuple<typename Parameter<i>::Value...> values{Parameter<i>::read(arguments)...};
    if constexpr (Signature::kTakesContext)
      function(arguments.context(), std::get<i>(values)...);
    else
      function(std::get<i>(values)...);
  }

  const std::array<ArgumentName, kCount> names_;
};

}  // namespace npu::aten
