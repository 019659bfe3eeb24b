#include <ATen/core/TensorBody.h>
#include <ATen/EmptyTensor.h>

#include <array>
#include <cstring>

#include "aten/ops/arguments.h"

#include <c10/util/strides.h>

namespace npu::aten {
namespace {

const std::byte* payload_of(const Record& record) { return reinterpret_cast<const std::byte*>(&record + 1); }
const int64_t* words_of(const Record& record) { return reinterpret_cast<const int64_t*>(&record + 1); }

template <class T>
T value_of(const Record& record) {
  T value;
  std::memcpy(&value, payload_of(record), sizeof(value));
  return value;
}

template <class T>
at::ArrayRef<T> list_of(const Record& record) {
  return {reinterpret_cast<const T*>(payload_of(record) + sizeof(int64_t)), static_cast<size_t>(words_of(record)[0])};
}

template <size_t kCount>
std::array<bool, kCount> flags_of(const Record& record) {
  std::array<bool, kCount> flags;
  std::memcpy(flags.data(), payload_of(record) + sizeof(int64_t), kCount);
  return flags;
}

at::Scalar scalar_of(const Record& record) {
  switch (static_cast<at::ScalarType>(record.dtype)) {
    case at::kComplexDouble: return value_of<c10::complex<double>>(record);
    case at::kDouble: return value_of<double>(record);
    case at::kUInt64: return value_of<uint64_t>(record);
    case at::kBool: return value_of<int64_t>(record) != 0;
    default: return value_of<int64_t>(record);
  }
}

// Where a visitor's loop stands: the sizes and strides of one tensor record.
struct TensorView {
  explicit TensorView(const Record& record)
      : sizes(words_of(record) + 1, record.rank),
        strides(record.flags & Record::kContiguous ? nullptr : words_of(record) + 1 + record.rank) {}
  at::IntArrayRef sizes;
  const int64_t* strides;
};

size_t extent_bytes(const TensorView& view, size_t item_bytes) {
  if (view.strides == nullptr) return at::detail::computeStorageNbytesContiguous(view.sizes, item_bytes);
  return at::detail::computeStorageNbytes(view.sizes, {view.strides, view.sizes.size()}, item_bytes);
}

void visit_tensor(Record& record, const ArgumentName& argument, OperandVisitor& visitor) {
  const TensorView view(record);
  const auto dtype = static_cast<at::ScalarType>(record.dtype);
  Operand operand;
  operand.name = argument.name;
  operand.access = argument.access;
  operand.address = reinterpret_cast<void**>(&record + 1);
  operand.dtype = dtype_name(dtype);
  operand.rank = record.rank;
  operand.sizes = view.sizes.data();
  operand.strides = view.strides;
  operand.bytes = extent_bytes(view, c10::elementSize(dtype));
  visitor.visit(operand);
}

}  // namespace

const char* dtype_name(at::ScalarType dtype) {
  static const auto& names = *[] {
    auto* table = new std::array<std::string, static_cast<size_t>(at::ScalarType::NumOptions)>;
    for (size_t i = 0; i + 1 < table->size(); ++i)
      (*table)[i] = c10::getDtypeNames(static_cast<at::ScalarType>(i)).first;
    return table;
  }();
  return names[static_cast<size_t>(dtype)].c_str();
}

at::Tensor make_alias(void* data, at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType dtype,
                      uint8_t record_flags) {
  const size_t bytes = at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(dtype));
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, at::DataPtr(data, c10::Device(at::kCPU)), nullptr,
                       /*resizable=*/false);
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), c10::scalarTypeToTypeMeta(dtype));
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(sizes, strides);
  if (record_flags & Record::kConjugate) tensor._set_conj(true);
  if (record_flags & Record::kNegative) tensor._set_neg(true);
  if (record_flags & Record::kWrappedNumber) impl->set_wrapped_number(true);
  return tensor;
}

uint8_t lazy_bits(const at::TensorBase& tensor) {
  return static_cast<uint8_t>((tensor.is_conj() ? Record::kConjugate : 0) | (tensor.is_neg() ? Record::kNegative : 0));
}

void visit_block(void* block, OperandVisitor& visitor) {
  const auto& header = *static_cast<const BlockHeader*>(block);
  auto* cursor = static_cast<std::byte*>(block) + sizeof(BlockHeader);
  auto* const end = static_cast<std::byte*>(block) + header.bytes;
  const ArgumentName* name = header.names;
  for (int64_t in_list = 0; cursor < end;) {
    auto& record = *reinterpret_cast<Record*>(cursor);
    cursor += record.bytes;
    if (record.kind == Record::Kind::kTensor) visit_tensor(record, *name, visitor);
    if (record.kind == Record::Kind::kTensorList) in_list = words_of(record)[0] + 1;
    if (in_list > 0) --in_list;
    if (in_list == 0 && record.kind != Record::Kind::kPlan && record.kind != Record::Kind::kSpan) ++name;
  }
}

ArgumentReader::ArgumentReader(const TaskContext& context, const void* block)
    : context_(context), cursor_(static_cast<const std::byte*>(block) + sizeof(BlockHeader)) {
  const auto& header = *static_cast<const BlockHeader*>(block);
  if (!header.has_span) return;
  std::memcpy(&span_, static_cast<const std::byte*>(block) + header.bytes - sizeof(span_), sizeof(span_));
  void* data = context.translate(reinterpret_cast<void*>(span_.begin));
  span_storage_ = c10::Storage(c10::Storage::use_byte_size_t(), span_.end - span_.begin,
                               at::DataPtr(data, c10::Device(at::kCPU)), nullptr, /*resizable=*/false);
}

const Record& ArgumentReader::next() {
  const auto& record = *reinterpret_cast<const Record*>(cursor_);
  cursor_ += record.bytes;
  return record;
}

at::Tensor ArgumentReader::alias(const Record& record) {
  const TensorView view(record);
  const auto address = static_cast<uintptr_t>(words_of(record)[0]);
  void* data = context_.translate(reinterpret_cast<void*>(address));
  const auto dtype = static_cast<at::ScalarType>(record.dtype);
  at::Tensor tensor = view.strides != nullptr
                          ? make_alias(data, view.sizes, {view.strides, view.sizes.size()}, dtype, record.flags)
                          : make_alias(data, view.sizes, c10::contiguous_strides(view.sizes), dtype, record.flags);
  if (span_.contains(address)) {
    tensor.unsafeGetTensorImpl()->set_storage_keep_dtype(span_storage_);
    tensor.unsafeGetTensorImpl()->set_storage_offset(static_cast<int64_t>((address - span_.begin) / tensor.itemsize()));
  }
  return tensor;
}

// The value lies in the block itself. Kernels only read it.
at::Tensor ArgumentReader::host_value(const Record& record) {
  const at::IntArrayRef sizes(words_of(record), record.rank);
  void* data = const_cast<int64_t*>(words_of(record) + record.rank);
  if (static_cast<at::ScalarType>(record.dtype) == at::kComplexDouble) {
    // Records are aligned to 8 bytes, complex doubles need 16.
    at::Tensor aligned = at::detail::empty_cpu(sizes, at::kComplexDouble);
    std::memcpy(aligned.mutable_data_ptr(), data, aligned.nbytes());
    if (record.flags & Record::kWrappedNumber) aligned.unsafeGetTensorImpl()->set_wrapped_number(true);
    return aligned;
  }
  return make_alias(data, sizes, c10::contiguous_strides(sizes), static_cast<at::ScalarType>(record.dtype),
                    record.flags);
}

at::Tensor ArgumentReader::read_tensor() {
  const Record& record = next();
  switch (record.kind) {
    case Record::Kind::kTensor: return alias(record);
    case Record::Kind::kHostTensor: return host_value(record);
    case Record::Kind::kSame:
      for (const auto& [argument, tensor] : seen_)
        if (argument == words_of(record)[0]) return tensor;
      [[fallthrough]];
    default: return {};
  }
}

template <>
at::Tensor ArgumentReader::read() {
  at::Tensor tensor = read_tensor();
  seen_.emplace_back(argument_++, tensor);
  return tensor;
}

at::Tensor ArgumentReader::read_output() {
  ++argument_;
  at::Tensor tensor = read_tensor();
  if (tensor.defined()) outputs_.emplace_back(tensor, lazy_bits(tensor));
  return tensor;
}

void ArgumentReader::finish() {
  for (auto& [tensor, bits] : outputs_) {
    const auto changed = static_cast<uint8_t>(bits ^ lazy_bits(tensor));
    if (changed == 0) continue;
    tensor._set_conj(false);
    tensor._set_neg(false);
    if (changed & Record::kConjugate) tensor.conj_physical_();
    if (changed & Record::kNegative) tensor.neg_();
  }
}

template <>
std::optional<at::Tensor> ArgumentReader::read() {
  at::Tensor tensor = read<at::Tensor>();
  if (!tensor.defined()) return std::nullopt;
  return tensor;
}

template <>
std::vector<at::Tensor> ArgumentReader::read() {
  std::vector<at::Tensor> tensors(static_cast<size_t>(words_of(next())[0]));
  for (at::Tensor& tensor : tensors) tensor = read_tensor();
  ++argument_;
  return tensors;
}

template <>
c10::List<std::optional<at::Tensor>> ArgumentReader::read() {
  c10::List<std::optional<at::Tensor>> tensors;
  for (int64_t left = words_of(next())[0]; left > 0; --left) {
    at::Tensor tensor = read_tensor();
    tensors.push_back(tensor.defined() ? std::optional<at::Tensor>(std::move(tensor)) : std::nullopt);
  }
  ++argument_;
  return tensors;
}

template <>
at::Scalar ArgumentReader::read() {
  ++argument_;
  return scalar_of(next());
}

template <>
std::vector<at::Scalar> ArgumentReader::read() {
  std::vector<at::Scalar> scalars;
  for (int64_t left = words_of(next())[0]; left > 0; --left) scalars.push_back(scalar_of(next()));
  ++argument_;
  return scalars;
}

#define NPU_READ(TYPE, EXPRESSION)                               \
  template <>                                                    \
  TYPE ArgumentReader::read() {                                  \
    ++argument_;                                                 \
    const Record& record = next();                               \
    return EXPRESSION;                                           \
  }                                                              \
  template <>                                                    \
  std::optional<TYPE> ArgumentReader::read() {                   \
    ++argument_;                                                 \
    const Record& record = next();                               \
    if (record.kind == Record::Kind::kNone) return std::nullopt; \
    return EXPRESSION;                                           \
  }
NPU_READ(int64_t, value_of<int64_t>(record))
NPU_READ(double, value_of<double>(record))
NPU_READ(bool, value_of<bool>(record))
NPU_READ(at::ScalarType, value_of<at::ScalarType>(record))
NPU_READ(at::MemoryFormat, value_of<at::MemoryFormat>(record))
NPU_READ(at::ArrayRef<double>, list_of<double>(record))
NPU_READ(std::string_view, std::string_view(list_of<char>(record).data(), list_of<char>(record).size()))
#undef NPU_READ

template <>
std::optional<at::Scalar> ArgumentReader::read() {
  ++argument_;
  const Record& record = next();
  if (record.kind == Record::Kind::kNone) return std::nullopt;
  return scalar_of(record);
}

template <>
at::IntArrayRef ArgumentReader::read() {
  ++argument_;
  return list_of<int64_t>(next());
}

template <>
at::OptionalIntArrayRef ArgumentReader::read() {
  ++argument_;
  const Record& record = next();
  if (record.kind == Record::Kind::kNone) return std::nullopt;
  return list_of<int64_t>(record);
}

template <>
std::array<bool, 2> ArgumentReader::read() {
  ++argument_;
  return flags_of<2>(next());
}

template <>
std::array<bool, 3> ArgumentReader::read() {
  ++argument_;
  return flags_of<3>(next());
}

}  // namespace npu::aten
