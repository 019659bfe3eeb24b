#include <ATen/core/TensorBody.h>
#include <ATen/Dispatch_v2.h>
#include <ATen/EmptyTensor.h>
#include <c10/core/DeviceType.h>
#include <c10/util/TypeCast.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>

#include "aten/bridge/errors.h"
#include "aten/bridge/stream.h"
#include "aten/ops/arguments.h"
#include "aten/ops/environment.h"
#include "aten/ops/numbers.h"
#include "aten/ops/strides.h"

namespace npu::aten {
namespace {

constexpr size_t round_up(size_t bytes) { return (bytes + 7) & ~size_t{7}; }

// Rough costs, for deciding where a task runs and how many threads it may use; they depend on shapes alone.
constexpr int64_t kParallelElements = 65536;  // below, one core finishes before a team has started
constexpr double kParallelCubeOperations = 4e6;

double cube_operations(int64_t elements) {
  const double n = static_cast<double>(elements);
  return n * std::sqrt(n);  // exact for square matrices up to a constant
}

uint32_t estimate_ns(const TaskInfo& info, int64_t elements) {
  constexpr double fixed_ns = 1500;
  const double ns = info.engines & kCubeEngine ? cube_operations(elements) / 32 : static_cast<double>(elements);
  return static_cast<uint32_t>(std::min(fixed_ns + ns, 4e9));
}

uint16_t thread_width(const TaskInfo& info, int64_t elements) {
  const bool large =
      info.engines & kCubeEngine ? cube_operations(elements) >= kParallelCubeOperations : elements >= kParallelElements;
  return large ? static_cast<uint16_t>(library_threads()) : 1;
}

template <class From>
void convert_number(From value, at::ScalarType dtype, void* to) {
  AT_DISPATCH_V2(dtype, "convert_number", AT_WRAP([&] { *static_cast<scalar_t*>(to) = c10::convert<scalar_t>(value); }),
                 AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES), at::kComplexHalf,
                 at::kHalf, at::kBFloat16, at::kBool);
}

// Integers that stand for one of a few ways, unlike sizes and dimensions.
bool is_choice(std::string_view argument) {
  return argument == "mode" || argument == "reduction" || argument.ends_with("_mode");
}

// Layouts for which a kernel may take another path: no elements, one, or one that is repeated.
uint64_t layout_bits(const at::Tensor& tensor) {
  const at::IntArrayRef sizes = tensor.sizes(), strides = tensor.strides();
  bool repeated = false;
  for (size_t i = 0; i < sizes.size(); ++i) repeated |= strides[i] == 0 && sizes[i] > 1;
  return uint64_t{repeated} | uint64_t{tensor.numel() == 0} << 1 | uint64_t{tensor.numel() == 1} << 2 |
         uint64_t{sizes.empty()} << 3 | uint64_t{lazy_bits(tensor)} << 4;
}

std::string listed(const ArgumentName* names, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) text.append(i == 0 ? "" : ", ").append(names[i].name);
  return text;
}

}  // namespace

ArgumentWriter::ArgumentWriter(const ArgumentName* names, HostTensors host_tensors)
    : names_(names), host_tensors_(host_tensors) {}

void* ArgumentWriter::write_record(Record record, size_t payload_bytes) {
  const size_t bytes = sizeof(Record) + round_up(payload_bytes);
  if (size_ + bytes > capacity_) grow(size_ + bytes);
  record.bytes = static_cast<uint32_t>(bytes);
  std::byte* at = data_ + size_;
  std::memcpy(at, &record, sizeof(record));
  if (payload_bytes != 0) std::memset(at + bytes - sizeof(uint64_t), 0, sizeof(uint64_t));  // the padding
  size_ += bytes;
  has_plan_ |= record.kind == Record::Kind::kPlan;
  if (record.kind == Record::Kind::kNone && !in_list_) signature_.add(static_cast<uint64_t>(argument_) << 8);
  if (!in_list_) ++argument_;
  return at + sizeof(Record);
}

void ArgumentWriter::grow(size_t bytes) {
  capacity_ = std::max(bytes, 2 * capacity_);
  auto larger = std::make_unique<std::byte[]>(capacity_);
  std::memcpy(larger.get(), data_, size_);
  heap_ = std::move(larger);
  data_ = heap_.get();
}

void ArgumentWriter::write_value(const void* value, size_t bytes) {
  uint64_t padded = 0;
  std::memcpy(&padded, value, bytes);
  if (bytes == 1 || (!has_plan_ && is_choice(name().name)))
    signature_.add(padded);  // a plan is a record without a name
  std::memcpy(write_record({.kind = Record::Kind::kValue}, sizeof(padded)), &padded, sizeof(padded));
}

void ArgumentWriter::write_list(const void* data, size_t count, size_t item_bytes) {
  if (item_bytes == 1)  // a string, or several bools
    signature_.add(std::hash<std::string_view>()({static_cast<const char*>(data), count}));
  auto* payload =
      static_cast<std::byte*>(write_record({.kind = Record::Kind::kList}, sizeof(int64_t) + count * item_bytes));
  const auto length = static_cast<int64_t>(count);
  std::memcpy(payload, &length, sizeof(length));
  if (count != 0) std::memcpy(payload + sizeof(length), data, count * item_bytes);
}

void ArgumentWriter::write(const at::Scalar& scalar) {
  if (!fits_all(scalar)) numbers_.push_back(scalar);
  const at::ScalarType type = scalar.type();
  // Kernels leave out work for 0 and 1: multiplication, powers.
  const uint64_t shortcut = in_list_ ? 0 : scalar.equal(0) ? 1 : scalar.equal(1) ? 2 : 0;
  add_to_signature(shortcut << 16 | static_cast<uint64_t>(type) << 8 | static_cast<uint64_t>(argument_));
  void* payload = write_record({.kind = Record::Kind::kScalar, .dtype = static_cast<int8_t>(type)},
                               type == at::kComplexDouble ? 16 : 8);
  if (type == at::kComplexDouble) {
    const auto value = scalar.toComplexDouble();
    std::memcpy(payload, &value, sizeof(value));
  } else if (type == at::kDouble) {
    const double value = scalar.toDouble();
    std::memcpy(payload, &value, sizeof(value));
  } else if (type == at::kUInt64) {
    const uint64_t value = scalar.toUInt64();
    std::memcpy(payload, &value, sizeof(value));
  } else {
    const int64_t value = scalar.toLong();  // bool included
    std::memcpy(payload, &value, sizeof(value));
  }
}

void ArgumentWriter::write(at::ArrayRef<at::Scalar> scalars) {
  const auto count = static_cast<int64_t>(scalars.size());
  std::memcpy(write_record({.kind = Record::Kind::kTensorList}, sizeof(count)), &count, sizeof(count));
  in_list_ = true;
  for (const at::Scalar& scalar : scalars) write(scalar);
  in_list_ = false;
}

void ArgumentWriter::write(at::TensorList tensors) { write(at::ITensorListRef(tensors)); }

void ArgumentWriter::write(const at::ITensorListRef& tensors) {
  const auto count = static_cast<int64_t>(tensors.size());
  std::memcpy(write_record({.kind = Record::Kind::kTensorList}, sizeof(count)), &count, sizeof(count));
  in_list_ = true;
  for (const at::Tensor& tensor : tensors) write(tensor);
  in_list_ = false;
}

void ArgumentWriter::write(const at::IOptTensorListRef& tensors) {
  const auto count = static_cast<int64_t>(tensors.size());
  std::memcpy(write_record({.kind = Record::Kind::kTensorList}, sizeof(count)), &count, sizeof(count));
  in_list_ = true;
  for (const at::OptionalTensorRef tensor : tensors) write(tensor);
  in_list_ = false;
}

void ArgumentWriter::write(const at::Tensor& tensor) {
  if (!tensor.defined()) return write_none();
  if (tensor.device().is_privateuseone()) return write_device_tensor(tensor);
  const bool is_value = tensor.device().is_cpu() && (tensor.dim() == 0 || host_tensors_ == HostTensors::kCopyValue);
  if (!is_value) return check_device(tensor);
  write_host_tensor(tensor);
}

void ArgumentWriter::write_output(const at::Tensor& tensor) {
  const auto same = std::find_if(seen_.begin(), seen_.end(),
                                 [&](const Seen& seen) { return seen.impl == tensor.unsafeGetTensorImpl(); });
  if (same == seen_.end()) return write(tensor);
  same->written = true;
  const int64_t argument = same->argument;
  std::memcpy(write_record({.kind = Record::Kind::kSame}, sizeof(argument)), &argument, sizeof(argument));
}

void ArgumentWriter::check_device(const at::Tensor& tensor) {
  if (tensor.device().is_privateuseone() && device_ < 0) device_ = tensor.device().index();
  TORCH_CHECK(tensor.device().is_privateuseone() && tensor.device().index() == device_,
              "Expected all tensors to be on the same device, but found at least two devices, ",
              c10::Device(c10::kPrivateUse1, device_), " and ", tensor.device(), "! (checking argument ", name().name,
              ")");
}

void ArgumentWriter::write_device_tensor(const at::Tensor& tensor) {
  check_device(tensor);
  TORCH_CHECK(tensor.layout() == at::kStrided, name().name, " has layout ", tensor.layout(),
              "; npu kernels take strided tensors");
  note_memory(tensor);
  const size_t rank = tensor.sizes().size();
  const bool contiguous = has_default_strides(*tensor.unsafeGetTensorImpl());  // kernels go by the others, too
  const Record record{.kind = Record::Kind::kTensor,
                      .dtype = static_cast<int8_t>(tensor.scalar_type()),
                      .rank = static_cast<uint8_t>(rank),
                      .flags = static_cast<uint8_t>(lazy_bits(tensor) | (contiguous ? Record::kContiguous : 0))};
  auto* payload = static_cast<int64_t*>(write_record(record, sizeof(void*) + (contiguous ? 1 : 2) * rank * 8));
  const void* address = tensor.unsafeGetTensorImpl()->data();
  std::memcpy(payload, &address, sizeof(address));
  std::copy(tensor.sizes().begin(), tensor.sizes().end(), payload + 1);
  if (!contiguous) std::copy(tensor.strides().begin(), tensor.strides().end(), payload + 1 + rank);
  elements_ += tensor.numel();
}

void ArgumentWriter::write_host_tensor(const at::Tensor& tensor) {
  note_memory(tensor);
  const bool wrapped = tensor.unsafeGetTensorImpl()->is_wrapped_number();
  const at::Tensor value =
      tensor.is_contiguous() && lazy_bits(tensor) == 0 ? tensor : tensor.resolve_conj().resolve_neg().contiguous();
  const size_t rank = value.sizes().size();
  const size_t bytes = value.nbytes();
  const Record record{.kind = Record::Kind::kHostTensor,
                      .dtype = static_cast<int8_t>(value.scalar_type()),
                      .rank = static_cast<uint8_t>(rank),
                      .flags = static_cast<uint8_t>(Record::kContiguous | (wrapped ? Record::kWrappedNumber : 0))};
  auto* payload = static_cast<int64_t*>(write_record(record, rank * 8 + bytes));
  std::copy(value.sizes().begin(), value.sizes().end(), payload);
  if (bytes != 0) std::memcpy(payload + rank, value.const_data_ptr(), bytes);
}

void ArgumentWriter::add_to_signature(uint64_t word) {
  if (!in_list_ || word != last_word_) signature_.add(word);  // the length of a list does not matter
  last_word_ = word;
}

void ArgumentWriter::note_memory(const at::Tensor& tensor) {
  const at::ScalarType dtype = tensor.scalar_type();
  dtypes_ |= uint64_t{1} << static_cast<unsigned>(dtype);
  add_to_signature(layout_bits(tensor) << 16 | static_cast<uint64_t>(dtype) << 8 | static_cast<uint64_t>(argument_));
  Seen seen{.impl = in_list_ ? nullptr : tensor.unsafeGetTensorImpl(),
            .argument = argument_,
            .written = name().access != Operand::Access::kRead};
  if (tensor.device().is_privateuseone() && tensor.numel() != 0) {
    seen.begin = reinterpret_cast<uintptr_t>(tensor.unsafeGetTensorImpl()->data());
    seen.end = seen.begin + (tensor.is_contiguous() ? tensor.nbytes()
                                                    : at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(),
                                                                                       tensor.itemsize()));
  }
  seen_.push_back(seen);
}

// Looks whether an operand that is written shares memory with another; such operands and how they lie are part of the
// signature. Fused operators over lists of tensors, which are long, are left out.
bool ArgumentWriter::write_span() {
  constexpr size_t kManyTensors = 32;
  Span span{UINTPTR_MAX, 0};
  if (has_plan_ || seen_.size() > kManyTensors) return false;
  for (const Seen& written : seen_) {
    if (!written.written) continue;
    for (const Seen& other : seen_) {
      if (&other == &written || other.begin >= written.end || written.begin >= other.end) continue;
      span.begin = std::min({span.begin, written.begin, other.begin});
      span.end = std::max({span.end, written.end, other.end});
      signature_.add(other.begin - written.begin);
      signature_.add(other.end - written.end);
    }
  }
  if (span.end == 0) return false;
  constexpr uintptr_t kLargestItem = 16;
  span.begin -= span.begin % kLargestItem;  // offsets are whole elements of any dtype
  std::memcpy(write_record({.kind = Record::Kind::kSpan}, sizeof(span)), &span, sizeof(span));
  return true;
}

void ArgumentWriter::note_overflows() {
  for (const at::Scalar& number : numbers_)
    for (uint64_t left = dtypes_; left != 0; left &= left - 1)
      if (!fits(number, static_cast<at::ScalarType>(std::countr_zero(left)))) {
        signature_.add(
            std::bit_cast<uint64_t>(number.isComplex() ? number.toComplexDouble().real() : number.toDouble()));
        break;
      }
}

void ArgumentWriter::write_number(const at::Tensor& value, at::ScalarType dtype) {
  const void* source = value.const_data_ptr();
  alignas(16) std::byte converted[16] = {};
  switch (value.scalar_type()) {
    case at::kDouble: convert_number(*static_cast<const double*>(source), dtype, converted); break;
    case at::kLong: convert_number(*static_cast<const int64_t*>(source), dtype, converted); break;
    case at::kBool: convert_number(*static_cast<const bool*>(source), dtype, converted); break;
    default: return write(value.to(dtype));  // no Python number: rare
  }
  const Record record{
      .kind = Record::Kind::kHostTensor, .dtype = static_cast<int8_t>(dtype), .flags = Record::kContiguous};
  std::memcpy(write_record(record, sizeof(converted)), converted, sizeof(converted));
}

void ArgumentWriter::launch(const TaskInfo& info, Rehearsal rehearsal) {
  TORCH_CHECK(device_ >= 0, info.name, " needs an npu tensor among its arguments, but ", listed(names_, argument_),
              " lie on the host");
  const bool has_span = write_span();
  if (!numbers_.empty()) note_overflows();
  const BlockHeader header{names_, static_cast<uint32_t>(size_), thread_width(info, elements_), has_span, silent_};
  std::memcpy(data_, &header, sizeof(header));
  const uint32_t cost_ns = estimate_ns(info, elements_);
  if (rehearsal == Rehearsal::kYes && rehearse(info, signature_, data_, size_, cost_ns)) [[unlikely]]
    reinterpret_cast<BlockHeader*>(data_)->silent = true;
  translate_errors([&] { current_stream(device_).launch_bytes({info, data_, size_, cost_ns}); });
}

}  // namespace npu::aten
