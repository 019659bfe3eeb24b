#include "aten/ops/argument_checks.h"

#include <ATen/Context.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/Activation.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/WrapDimUtils.h>
#include <c10/util/accumulate.h>

#include <algorithm>

namespace npu::aten::checks {
namespace {

// The CPU kernels of such operators say so themselves, but a task would say it late, and by the mode of that moment.
void alert_not_deterministic(const char* function) { at::globalContext().alertNotDeterministic(function); }

using Indices = c10::List<std::optional<at::Tensor>>;

// Throws what expand() throws.
void check_expands(const at::Tensor& tensor, at::IntArrayRef sizes) {
  if (!at::is_expandable_to(tensor.sizes(), sizes)) tensor.expand(sizes);
}

bool is_mask(const at::Tensor& index) { return index.scalar_type() == at::kBool || index.scalar_type() == at::kByte; }

void check_mask(const at::Tensor& mask, const at::Tensor& self, int64_t index, int64_t first) {
  for (int64_t d = 0; d < mask.dim(); ++d)
    TORCH_CHECK_INDEX(mask.size(d) == self.size(first + d), "The shape of the mask ", mask.sizes(), " at index ", index,
                      " does not match the shape of the indexed tensor ", self.sizes(), " at index ", first + d);
}

at::DimVector broadcast_indices(at::IntArrayRef a, at::IntArrayRef b) {
  try {
    return at::infer_size_dimvector(a, b);
  } catch (const c10::Error&) {
    TORCH_CHECK_INDEX(false, "shape mismatch: indexing tensors could not be broadcast together with shapes ", a, ", ",
                      b);
  }
}

// The sizes of self[indices], unless a mask on the device leaves them to its values. Checks the indices themselves.
std::optional<at::DimVector> indexed_sizes(const at::Tensor& self, const Indices& indices) {
  TORCH_CHECK_INDEX(static_cast<int64_t>(indices.size()) <= self.dim(), "too many indices for tensor of dimension ",
                    self.dim(), " (got ", indices.size(), ")");
  int64_t dims = 0, first = -1, last = -1, replaced = 1;
  bool masked = false, apart = false;
  at::DimVector rest, together;  // sizes of the dimensions that stay, and what the indices have as one
  for (size_t i = 0; i < indices.size(); ++i) {
    const std::optional<at::Tensor> index = indices.get(i);
    if (!index || !index->defined()) {
      if (dims < self.dim()) rest.push_back(self.size(dims));
      ++dims;
      continue;
    }
    if (first < 0) first = dims;
    apart |= last >= 0 && last != dims;
    const bool mask = is_mask(*index);
    const int64_t replaces = mask ? index->dim() : 1;
    if (mask) check_mask(*index, self, static_cast<int64_t>(i), dims);
    if (mask && !index->device().is_cpu()) {
      masked = true;
    } else {
      together = broadcast_indices(
          together, mask ? at::DimVector({index->count_nonzero().item<int64_t>()}) : at::DimVector(index->sizes()));
      for (int64_t d = dims; d < std::min(dims + replaces, self.dim()); ++d) replaced *= self.size(d);
    }
    dims += replaces;
    last = dims;
  }
  TORCH_CHECK_INDEX(dims <= self.dim(), "too many indices for tensor of dimension ", self.dim(), " (got ", dims, ")");
  if (masked) return std::nullopt;
  TORCH_CHECK_INDEX(replaced != 0 || c10::multiply_integers(together) == 0,
                    "index is out of bounds for dimension with size 0");
  for (; dims < self.dim(); ++dims) rest.push_back(self.size(dims));
  rest.insert(rest.begin() + (apart || first < 0 ? 0 : first), together.begin(), together.end());
  return rest;
}

}  // namespace

void fits_in_place(const at::Tensor& self, const at::Tensor& other) {
  if (other.dim() == 0 || self.sizes() == other.sizes()) return;
  const at::DimVector sizes = at::infer_size_dimvector(self.sizes(), other.sizes());
  TORCH_CHECK(self.sizes() == at::IntArrayRef(sizes), "output with shape ", self.sizes(),
              " doesn't match the broadcast shape ", at::IntArrayRef(sizes));
}

void gelu(std::string_view approximate) { at::native::get_gelutype_enum(approximate); }

void addmm(const at::Tensor& self, const at::Tensor& mat1, const at::Tensor& mat2) {
  if (mat1.dim() == 2 && mat2.dim() == 2 && mat1.size(1) == mat2.size(0))
    check_expands(self, {mat1.size(0), mat2.size(1)});
}

void addr(const at::Tensor& self, const at::Tensor& vec1, const at::Tensor& vec2, const at::Tensor& out) {
  if (!out.is_same(self) || vec1.dim() != 1 || vec2.dim() != 1) return;
  TORCH_CHECK(self.dim() == 2, "2D tensor expected, got ", self.dim(), "D tensor for input");
  TORCH_CHECK(self.size(0) == vec1.size(0) && self.size(1) == vec2.size(0), "size mismatch, input: ", self.sizes(),
              ", v1: ", vec1.sizes(), ", v2: ", vec2.sizes());
}

void amp_unscale(at::TensorList self, const at::Tensor& found_inf, const at::Tensor& inv_scale) {
  if (self.empty()) return;
  TORCH_CHECK(inv_scale.numel() == 1, "inv_scale must be a 1-element tensor.");
  TORCH_CHECK(found_inf.numel() == 1, "found_inf must be a 1-element tensor.");
}

void amp_update_scale(const at::Tensor& self, const at::Tensor& growth_tracker, const at::Tensor& found_inf) {
  TORCH_CHECK(growth_tracker.numel() == 1, "growth_tracker must be a 1-element tensor.");
  TORCH_CHECK(self.numel() == 1, "current_scale must be a 1-element tensor.");
  TORCH_CHECK(found_inf.numel() == 1, "found_inf must be a 1-element tensor.");
}

void batch_norm(const std::optional<at::Tensor>& running_mean, const std::optional<at::Tensor>& running_var) {
  for (const auto* statistics : {&running_mean, &running_var})
    TORCH_CHECK(!statistics->has_value() || !(*statistics)->defined() || (*statistics)->dim() == 1,
                "TensorAccessor expected 1 dims but tensor has ", (*statistics)->dim());
}

void cdist(double p) { TORCH_CHECK(p >= 0, "cdist only supports non-negative p values"); }

void channel_shuffle(const at::Tensor& self, int64_t groups) {
  TORCH_CHECK(self.dim() > 2, "channel_shuffle expects input with > 2 dims, but got input with sizes ", self.sizes());
  TORCH_CHECK(groups > 0, "Number of groups to divide channels in must be positive. Value of groups:", groups);
  TORCH_CHECK(self.size(1) % groups == 0, "Number of channels must be divisible by groups. Got ", self.size(1),
              " channels and ", groups, " groups.");
}

void divisor(const at::Tensor& self, const at::Tensor& other) {
  if (!other.device().is_cpu() || other.dim() != 0 || self.numel() == 0) return;
  const at::ScalarType dtype = at::result_type(self, other);
  const bool divides = at::isIntegralType(dtype, /*includeBool=*/false) && !c10::isBarebonesUnsignedType(dtype) &&
                       !c10::isBarebonesUnsignedType(other.scalar_type());
  if (!divides) return;
  const int64_t bits = 8 * static_cast<int64_t>(c10::elementSize(dtype));  // of the divisor that are left in this dtype
  const uint64_t kept = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  TORCH_CHECK((static_cast<uint64_t>(other.item<int64_t>()) & kept) != 0, "ZeroDivisionError");
}

void divisor(const at::Tensor& self, const at::Tensor& other, std::optional<std::string_view> rounding_mode) {
  if (rounding_mode) divisor(self, other);
}

void fake_quantize(int64_t quant_min, int64_t quant_max) {
  TORCH_CHECK(quant_min <= quant_max, "`quant_min` should be less than or         equal to `quant_max`.");
}

void fake_quantize(int64_t zero_point, int64_t quant_min, int64_t quant_max) {
  fake_quantize(quant_min, quant_max);
  TORCH_CHECK(zero_point >= quant_min && zero_point <= quant_max,
              "`zero_point` must be between `quant_min` and `quant_max`.");
}

void fill(const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", value.dim(),
              " dimensions.");
}

void group_norm(const at::Tensor& X, const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias,
                int64_t N, int64_t C, int64_t HxW, int64_t group) {
  TORCH_CHECK(group > 0, "Expected num groups to be greater than 0, got ", group);
  TORCH_CHECK(C % group == 0,
              "Expected number of channels in input to be divisible by num_groups, but got input of shape ", X.sizes(),
              " and num_groups=", group);
  const auto check_parameter = [&](const std::optional<at::Tensor>& parameter, const char* name) {
    TORCH_CHECK(!parameter || !parameter->defined() || (parameter->dim() == 1 && parameter->numel() == C), "Expected ",
                name, " to be a vector of size equal to the number of channels in input, but got ", name, " of shape ",
                parameter->sizes(), " and input of shape ", X.sizes());
  };
  check_parameter(weight, "weight");
  check_parameter(bias, "bias");
  const at::MemoryFormat memory_format = X.suggest_memory_format();
  TORCH_CHECK(X.is_contiguous(memory_format));  // PyTorch's own condition: it is the message
  TORCH_CHECK(X.numel() == N * C * HxW);
}

void group_norm_backward(const at::Tensor& dY, const at::Tensor& X, const at::Tensor& mean, const at::Tensor& rstd,
                         const std::optional<at::Tensor>& weight, int64_t N, int64_t C, int64_t HxW, int64_t group) {
  const at::Tensor gamma = weight.value_or(at::Tensor());
  TORCH_CHECK(group > 0, "Expected num groups to be greater than 0, got ", group);
  TORCH_CHECK(dY.scalar_type() == X.scalar_type(), "Expected scalar types of X and dY are same.");
  TORCH_CHECK(dY.numel() == N * C * HxW);
  TORCH_CHECK(X.numel() == N * C * HxW);
  TORCH_CHECK(mean.numel() == N * group);
  TORCH_CHECK(rstd.numel() == N * group);
  TORCH_CHECK(!gamma.defined() || gamma.numel() == C);
}

void index_fill(const at::Tensor& self, int64_t dim, const at::Tensor& index) {
  TORCH_CHECK_INDEX(index.scalar_type() == at::kLong, "index_fill_(): Expected dtype int64 for index.");
  at::maybe_wrap_dim(dim, self.dim());
  TORCH_CHECK(index.dim() <= 1, "Index has to be a vector/scalar");
}

void index_fill(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
              value.dim(), " dimension(s).");
  index_fill(self, dim, index);
}

void index_put(const at::Tensor& self, const Indices& indices, const at::Tensor& values) {
  const std::optional<at::DimVector> sizes = indexed_sizes(self, indices);
  TORCH_CHECK(!sizes || at::is_expandable_to(values.sizes(), *sizes), "shape mismatch: value tensor of shape ",
              values.sizes(), " cannot be broadcast to indexing result of shape ", at::IntArrayRef(*sizes));
}

void masked_fill(const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
              value.dim(), " dimension(s).");
}

void masked_scatter(const at::Tensor& self, const at::Tensor& mask) { check_expands(mask, self.sizes()); }

void put(const at::Tensor& self, const at::Tensor& index, const at::Tensor& source, bool accumulate) {
  if (!accumulate) alert_not_deterministic("put_");
  TORCH_CHECK(index.scalar_type() == at::kLong, "put_(): Expected a long tensor for index, but got ",
              index.scalar_type());
  TORCH_CHECK(self.scalar_type() == source.scalar_type(),
              "put_(): self and source expected to have the same dtype, but got self.dtype = ", self.scalar_type(),
              " and source.dtype = ", source.scalar_type());
  TORCH_CHECK_INDEX(source.numel() == index.numel(),
                    "put_(): Expected source and index to have the same number of elements, but got source.numel() = ",
                    source.numel(), ", index.numel() = ", index.numel());
  TORCH_CHECK_INDEX(self.numel() != 0 || index.numel() == 0, "put_(): Tried to put elements into an empty tensor");
  at::assert_no_internal_overlap(self);
  at::assert_no_overlap(self, index);
  at::assert_no_overlap(self, source);
}

void max_unpool2d(const at::Tensor& indices) {
  alert_not_deterministic("max_unpooling2d_forward_out");
  TORCH_CHECK(indices.scalar_type() == at::kLong,
              "elements in indices should be type int64 but got: ", indices.scalar_type());
}

void max_unpool3d(const at::Tensor& indices, at::IntArrayRef output_size, at::IntArrayRef stride,
                  at::IntArrayRef padding) {
  constexpr const char* three = "There should be exactly three elements (depth, height, width) in ";
  alert_not_deterministic("max_unpooling3d_forward_out");
  TORCH_CHECK(indices.scalar_type() == at::kLong, "elements in indices should be type int64");
  TORCH_CHECK(output_size.size() == 3, three, "output_size, but got ", output_size.size(), " elements.");
  TORCH_CHECK(stride.size() == 3, three, "stride, but got: ", stride.size(), " elements.");
  TORCH_CHECK(padding.size() == 3, three, "padding, but got: ", padding.size(), " elements.");
  TORCH_CHECK(std::all_of(stride.begin(), stride.end(), [](int64_t step) { return step > 0; }),
              "strides should be greater than zero, but got stride: ", stride);
}

void renorm(const at::Tensor& self, int64_t dim) {
  if (self.dim() > 1) at::maybe_wrap_dim(dim, self.dim());
}

void svd(const at::Tensor& A, std::optional<std::string_view> driver) {
  TORCH_CHECK(!driver || A.numel() == 0,
              "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER "
              "backend.");
}

}  // namespace npu::aten::checks
