#include "aten/ops/iterator.h"

#include <cstring>

#include "kernels/tile.h"

namespace npu::aten {
namespace {

constexpr int64_t kTileElements = 65536;

bool has_lazy_bits(const at::TensorBase& tensor) { return tensor.is_conj() || tensor.is_neg(); }

bool is_number(const at::TensorBase& tensor) { return tensor.device().is_cpu() && tensor.dim() == 0; }

// A tensor that tells nothing but its dtype. CPU kernels ask a half-precision operand that is one element repeated for its
// tensor's dtype, and take the value from the operand's address. Leaked on purpose: tasks may outlive main().
const at::TensorBase& witness_of(at::ScalarType dtype) {
  static const auto& half = *new at::Tensor(make_alias(nullptr, {0}, {1}, at::kHalf));
  static const auto& bfloat16 = *new at::Tensor(make_alias(nullptr, {0}, {1}, at::kBFloat16));
  return dtype == at::kHalf ? half : bfloat16;
}

// The dtype all inputs have, numbers aside; Undefined when they differ or an operand cannot cross.
at::ScalarType common_input_dtype(const at::TensorIteratorBase& iterator) {
  at::ScalarType common = at::ScalarType::Undefined;
  bool numbers = false;
  for (int i = iterator.noutputs(); i < iterator.ntensors(); ++i) {
    const at::TensorBase& tensor = iterator.tensor_base(i);
    if (has_lazy_bits(tensor)) return at::ScalarType::Undefined;
    if (is_number(tensor)) {
      numbers = true;
      continue;
    }
    if (!tensor.device().is_privateuseone()) return at::ScalarType::Undefined;
    if (common != at::ScalarType::Undefined && tensor.scalar_type() != common) return at::ScalarType::Undefined;
    common = tensor.scalar_type();
  }
  if (!numbers) return common;
  // A number takes the tensors' dtype only if promotion says so; its value must survive, which half precision forbids.
  const bool promoted = iterator.maybe_common_dtype().value_or(at::ScalarType::Undefined) != common;
  return promoted || at::isReducedFloatingType(common) ? at::ScalarType::Undefined : common;
}

bool outputs_fit(const at::TensorIteratorBase& iterator, at::ScalarType expected) {
  for (int i = 0; i < iterator.noutputs(); ++i) {
    const at::TensorBase& tensor = iterator.tensor_base(i);
    if (tensor.scalar_type() != expected || !tensor.device().is_privateuseone() || has_lazy_bits(tensor)) return false;
  }
  return true;
}

}  // namespace

bool write_plan(at::TensorIteratorBase& iterator, StubRule rule, ArgumentWriter& arguments) {
  if (iterator.numel() == 0 || iterator.ntensors() > Plan::kMaxOperands) return false;
  const at::ScalarType common = common_input_dtype(iterator);
  if (common == at::ScalarType::Undefined) return false;
  if (rule.floating_only && (!at::isFloatingType(common) || c10::isFloat8Type(common))) return false;
  if (!outputs_fit(iterator, rule.output == OutputType::kSame ? common : at::kBool)) return false;

  const int operands = iterator.ntensors();
  for (int i = 0; i < operands; ++i) {
    const at::Tensor& tensor = iterator.tensor(i);
    if (common == at::kComplexDouble && is_number(tensor)) return false;  // needs more alignment than records have
    if (i >= iterator.noutputs() && is_number(tensor) && tensor.scalar_type() != common)
      arguments.write_number(tensor, common);
    else
      arguments.write(tensor);
  }
  const auto rank = static_cast<size_t>(iterator.ndim());
  const Record record{.kind = Record::Kind::kPlan,
                      .dtype = static_cast<int8_t>(common),
                      .rank = static_cast<uint8_t>(rank),
                      .flags = static_cast<uint8_t>(iterator.noutputs())};
  auto* payload = static_cast<int64_t*>(arguments.write_record(record, (1 + static_cast<size_t>(operands)) * rank * 8));
  std::copy(iterator.shape().begin(), iterator.shape().end(), payload);
  for (int i = 0; i < operands; ++i)
    std::copy_n(iterator.strides(i).begin(), rank, payload + (1 + static_cast<size_t>(i)) * rank);
  return true;
}

Plan::Plan(ArgumentReader& reader) : context_(reader.context()) {
  const Record* record = &reader.next();
  for (; record->kind != Record::Kind::kPlan; record = &reader.next()) {
    const auto* payload = reinterpret_cast<const char*>(record + 1);
    char* address = const_cast<char*>(payload);  // a number: its value lies in the block; 0-dim, so no sizes before it
    if (record->kind == Record::Kind::kTensor) {
      std::memcpy(&address, payload, sizeof(address));
      address = context_.translate(address);
    }
    addresses_[static_cast<size_t>(operands_)] = address;
    dtypes_[static_cast<size_t>(operands_++)] = static_cast<at::ScalarType>(record->dtype);
  }
  common_dtype_ = static_cast<at::ScalarType>(record->dtype);
  outputs_ = record->flags;
  sizes_ = {reinterpret_cast<const int64_t*>(record + 1), record->rank};
  strides_ = sizes_.data() + sizes_.size();
  if (sizes_.empty()) return;
  const int64_t outermost = sizes_.back();
  const int64_t inner_elements = c10::multiply_integers(sizes_) / outermost;
  tile_length_ = std::max<int64_t>(1, kernels::tile_elements(kTileElements) / inner_elements);
  tiles_ = (outermost + tile_length_ - 1) / tile_length_;
}

Plan::TileIterator::TileIterator(const Plan& plan, int64_t tile) {
  const size_t rank = plan.sizes_.size();
  shape_.assign(plan.sizes_.begin(), plan.sizes_.end());
  const int64_t begin = tile * plan.tile_length_;
  if (rank != 0) shape_.back() = std::min(plan.tile_length_, shape_.back() - begin);
  perm_.resize(rank);
  for (size_t i = 0; i < rank; ++i) perm_[i] = static_cast<int64_t>(i);
  has_coalesced_dimensions_ = rank > 1;
  view_offsets_.assign(rank, 0);
  num_outputs_ = plan.outputs_;
  common_dtype_ = plan.common_dtype_;
  operands_.resize(static_cast<size_t>(plan.operands_));
  for (size_t i = 0; i < operands_.size(); ++i) {
    at::OperandInfo& operand = operands_[i];
    const int64_t* strides = plan.strides_ + i * rank;
    operand.stride_bytes.assign(strides, strides + rank);
    operand.data = plan.addresses_[i] + (rank != 0 ? begin * strides[rank - 1] : 0);
    operand.device = at::kCPU;
    operand.target_dtype = operand.current_dtype = plan.dtypes_[i];
    operand.is_output = static_cast<int>(i) < num_outputs_;
    if (operand.current_dtype == at::kHalf || operand.current_dtype == at::kBFloat16)
      operand.tensor(c10::MaybeOwned<at::TensorBase>::borrowed(witness_of(operand.current_dtype)));
  }
}

}  // namespace npu::aten
