// An operator's arguments as a task carries them: one block of bytes that is built on the submitting thread's stack and
// read by the thread that runs the task.
//
// A block is a header and one record for each schema argument, in order, outputs last. Records describe themselves, so one
// visitor lists the operands of every operator. A tensor becomes its device address, dtype, sizes and strides (no tensor
// crosses threads); the value of a CPU tensor is copied into the block, so the program may change or free it at once.
//
// Writing and reading must use the same order and types:
//   ArgumentWriter arguments(kNames);             ArgumentReader in(context, block);
//   arguments.write(self);                        const at::Tensor self = in.read<at::Tensor>();
//   arguments.write(alpha);                       const at::Scalar alpha = in.read<at::Scalar>();
//   arguments.write_output(out);                  at::Tensor out = in.read_output();
//   arguments.launch(kTask);                      at::cpu::add_outf(self, other, alpha, out);
#pragma once

#include <ATen/core/IListRef.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/util/OptionalArrayRef.h>
#include <c10/util/SmallVector.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "aten/ops/rehearsal.h"
#include "runtime/stream.h"
#include "runtime/task.h"

namespace npu::aten {

// Name and use of one schema argument; a static array of them describes the records of a block.
struct ArgumentName {
  const char* name;
  Operand::Access access = Operand::Access::kRead;
};

// One self-describing piece of a block, followed by its payload, padded to 8 bytes.
struct Record {
  enum class Kind : uint8_t { kNone, kTensor, kHostTensor, kSame, kScalar, kValue, kList, kTensorList, kPlan, kSpan };
  enum Flag : uint8_t { kContiguous = 1, kConjugate = 2, kNegative = 4, kWrappedNumber = 8 };
  Kind kind = Kind::kNone;
  int8_t dtype = 0;  // at::ScalarType of a tensor or scalar
  uint8_t rank = 0;
  uint8_t flags = 0;
  uint32_t bytes = sizeof(uint64_t);  // with this header and the padding
};
static_assert(sizeof(Record) == 8);

struct BlockHeader {
  const ArgumentName* names = nullptr;
  uint32_t bytes = 0;     // of the whole block
  uint16_t width = 1;     // OpenMP threads of the task, from its shapes alone
  bool has_span = false;  // the last record is a Span
  bool silent = false;    // of a library task: the host has given the warnings of the kernel
};

// The memory of operands that overlap. The task sees those that begin in it as parts of one storage, which is how PyTorch
// recognises overlap.
struct Span {
  uintptr_t begin = 0;  // device addresses
  uintptr_t end = 0;
  bool contains(uintptr_t address) const noexcept { return address >= begin && address < end; }
};

// Whether a new kind of call is run once on the submitting thread, to find what its kernel refuses; see rehearsal.h.
enum class Rehearsal : bool { kNo, kYes };

// How a CPU tensor with dimensions may be passed among npu tensors. 0-dim CPU tensors count as numbers and always may.
enum class HostTensors : uint8_t { kRefuse, kCopyValue };

class NPU_API ArgumentWriter {
 public:
  explicit ArgumentWriter(const ArgumentName* names, HostTensors host_tensors = HostTensors::kRefuse);
  ArgumentWriter(const ArgumentWriter&) = delete;
  ArgumentWriter& operator=(const ArgumentWriter&) = delete;

  // Errors: TORCH_CHECK when a tensor lies on another device than the ones before, naming both.
  void write(const at::Tensor& tensor);
  void write(const std::optional<at::Tensor>& tensor) { tensor ? write(*tensor) : write_none(); }
  void write(at::OptionalTensorRef tensor) { tensor.has_value() ? write(*tensor) : write_none(); }
  void write(at::TensorList tensors);
  void write(const at::ITensorListRef& tensors);
  void write(const at::IOptTensorListRef& tensors);
  void write(const c10::List<std::optional<at::Tensor>>& tensors) { write(at::IOptTensorListRef(tensors)); }
  void write(const at::Scalar& scalar);
  void write(at::OptionalScalarRef scalar) { scalar.has_value() ? write(scalar.get()) : write_none(); }
  void write(at::ArrayRef<at::Scalar> scalars);
  void write(at::IntArrayRef values) { write_list(values.data(), values.size(), sizeof(int64_t)); }
  void write(at::OptionalIntArrayRef values) { values.has_value() ? write(*values) : write_none(); }
  void write(at::ArrayRef<double> values) { write_list(values.data(), values.size(), sizeof(double)); }
  template <size_t kCount>
  void write(const std::array<bool, kCount>& values) {
    write_list(values.data(), values.size(), sizeof(bool));
  }
  void write(std::string_view text) { write_list(text.data(), text.size(), 1); }
  template <class T, std::enable_if_t<std::is_arithmetic_v<T> || std::is_enum_v<T>, int> = 0>
  void write(T value) {
    static_assert(sizeof(T) <= sizeof(uint64_t));
    write_value(&value, sizeof(T));
  }
  template <class T>
  void write(const std::optional<T>& value) {
    value ? write(*value) : write_none();
  }

  // The value of a 0-dim CPU tensor as an operand of `dtype`, converted as the CPU converts it.
  void write_number(const at::Tensor& value, at::ScalarType dtype);

  // An output the task writes. If it is one of the tensors written before, the reader sees one tensor, as the kernel would.
  void write_output(const at::Tensor& tensor);

  // Whether tensors may still differ in dtype is the operator's business; this one is the block's: raw space for a record.
  void* write_record(Record record, size_t payload_bytes);

  void set_silent() noexcept { silent_ = true; }  // the host has given the warnings of the kernel

  // Queues the task on the current stream of the device of the tensors. Errors: as PyTorch's exception types; what the
  // CPU kernel refuses (rehearsal.h) as its own, unless the task is not to be rehearsed.
  void launch(const TaskInfo& info, Rehearsal rehearsal = Rehearsal::kYes);

  int64_t elements() const noexcept { return elements_; }  // summed over all tensors

 private:
  void write_none() { write_record({}, 0); }
  void write_value(const void* value, size_t bytes);
  void write_list(const void* data, size_t count, size_t item_bytes);
  void write_device_tensor(const at::Tensor& tensor);
  void write_host_tensor(const at::Tensor& tensor);
  void check_device(const at::Tensor& tensor);
  void grow(size_t bytes);
  const ArgumentName& name() const noexcept { return names_[in_list_ ? argument_ - 1 : argument_]; }
  void add_to_signature(uint64_t word);
  void note_memory(const at::Tensor& tensor);
  bool write_span();
  void note_overflows();

  static constexpr size_t kStackBytes = 1024;
  alignas(16) std::byte stack_[kStackBytes];
  std::unique_ptr<std::byte[]> heap_;
  std::byte* data_ = stack_;
  size_t capacity_ = kStackBytes;
  size_t size_ = sizeof(BlockHeader);
  const ArgumentName* const names_;
  const HostTensors host_tensors_;
  c10::DeviceIndex device_ = -1;  // of the npu tensors so far
  int argument_ = 0;              // top-level records so far
  bool in_list_ = false;
  bool has_plan_ = false;
  bool silent_ = false;
  int64_t elements_ = 0;

  struct Seen {
    const c10::TensorImpl* impl;  // null in a list
    int argument;
    bool written;
    uintptr_t begin = 0;  // device addresses; none for a value that was copied
    uintptr_t end = 0;
  };
  c10::SmallVector<Seen, 8> seen_;
  Signature signature_;
  uint64_t last_word_ = 0;                   // of it
  uint64_t dtypes_ = 0;                      // a bit for each at::ScalarType among the tensors
  c10::SmallVector<at::Scalar, 2> numbers_;  // those that do not fit every dtype
};

// Reads a block in the executing thread, with addresses translated. Everything it returns is valid while the task runs.
class NPU_API ArgumentReader {
 public:
  ArgumentReader(const TaskContext& context, const void* block);
  ArgumentReader(const ArgumentReader&) = delete;
  ArgumentReader& operator=(const ArgumentReader&) = delete;

  template <class T>
  T read();
  // A value that was written as plain bytes: one record of its size.
  template <class T>
  T read_plain() {
    static_assert(std::is_trivially_copyable_v<T>);
    ++argument_;
    T value;
    std::memcpy(&value, &next() + 1, sizeof(value));
    return value;
  }
  at::Tensor read_output();
  void finish();  // after the kernel: a result it left as a lazy conjugate or negative becomes plain memory

  const TaskContext& context() const noexcept { return context_; }
  const Record& next();  // the record at the cursor, then moves on

 private:
  at::Tensor alias(const Record& record);
  at::Tensor host_value(const Record& record);
  at::Tensor read_tensor();

  const TaskContext& context_;
  const std::byte* cursor_;
  int argument_ = 0;
  Span span_;
  c10::Storage span_storage_;
  c10::SmallVector<std::pair<int, at::Tensor>, 6> seen_;
  c10::SmallVector<std::pair<at::Tensor, uint8_t>, 4> outputs_;  // with the lazy bits they came with
};

// Lists the operands of any block.
NPU_API void visit_block(void* block, OperandVisitor& visitor);

// Record::kConjugate and kNegative of a tensor whose memory is not yet conjugated or negated.
uint8_t lazy_bits(const at::TensorBase& tensor);

// "float32" and so on, never freed.
const char* dtype_name(at::ScalarType dtype);

// A CPU tensor over memory that someone else owns. `record_flags` holds the lazy bits of the original.
at::Tensor make_alias(void* data, at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType dtype,
                      uint8_t record_flags = 0);

template <> at::Tensor ArgumentReader::read();
template <> std::optional<at::Tensor> ArgumentReader::read();
template <> std::vector<at::Tensor> ArgumentReader::read();
template <> c10::List<std::optional<at::Tensor>> ArgumentReader::read();
template <> at::Scalar ArgumentReader::read();
template <> std::optional<at::Scalar> ArgumentReader::read();
template <> std::vector<at::Scalar> ArgumentReader::read();
template <> at::IntArrayRef ArgumentReader::read();
template <> at::OptionalIntArrayRef ArgumentReader::read();
template <> at::ArrayRef<double> ArgumentReader::read();
template <> std::optional<at::ArrayRef<double>> ArgumentReader::read();
template <> std::array<bool, 2> ArgumentReader::read();
template <> std::array<bool, 3> ArgumentReader::read();
template <> std::string_view ArgumentReader::read();
template <> std::optional<std::string_view> ArgumentReader::read();
template <> int64_t ArgumentReader::read();
template <> std::optional<int64_t> ArgumentReader::read();
template <> double ArgumentReader::read();
template <> std::optional<double> ArgumentReader::read();
template <> bool ArgumentReader::read();
template <> std::optional<bool> ArgumentReader::read();
template <> at::ScalarType ArgumentReader::read();
template <> std::optional<at::ScalarType> ArgumentReader::read();
template <> std::optional<at::MemoryFormat> ArgumentReader::read();

}  // namespace npu::aten
