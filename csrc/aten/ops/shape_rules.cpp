#include "aten/ops/shape_rules.h"

#include <ATen/Dispatch.h>
#include <ATen/ExpandUtils.h>
#include <ATen/native/RangeUtils.h>
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/WrapDimUtilsMulti.h>

namespace npu::aten::shapes {
namespace {

at::ScalarType real_type(at::ScalarType dtype) {
  return at::isComplexType(dtype) ? c10::toRealValueType(dtype) : dtype;
}

at::ScalarType floating_type(at::ScalarType dtype) {
  return at::isIntegralType(dtype, /*includeBool=*/true) ? at::typeMetaToScalarType(at::get_default_dtype())
                                                         : real_type(dtype);
}

void set_dense_strides(TensorSpec& spec, at::IntArrayRef sizes, at::IntArrayRef strides) {
  const std::vector<int64_t> dense = at::infer_dense_strides(sizes, strides);
  spec.strides.assign(dense.begin(), dense.end());
}

// Broadcast sizes of all dimensions but the last two.
at::DimVector common_batch(const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(a.dim() >= 2 && b.dim() >= 2, "expected matrices or batches of them, but got sizes ", a.sizes(), " and ",
              b.sizes());
  return at::infer_size_dimvector(a.sizes().slice(0, static_cast<size_t>(a.dim() - 2)),
                                  b.sizes().slice(0, static_cast<size_t>(b.dim() - 2)));
}

int64_t closed_range_length(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step) {
  at::native::arange_check_bounds(start, end, step);
  if (start.isIntegral(false) && end.isIntegral(false) && step.isIntegral(false))
    return (end.toLong() - start.toLong()) / step.toLong() + 1;
  return static_cast<int64_t>((end.toDouble() - start.toDouble()) / step.toDouble() + 1);
}

}  // namespace

TensorSpec of(at::IntArrayRef sizes, const at::TensorOptions& options) {
  return {.sizes = {sizes.begin(), sizes.end()}, .options = options.memory_format(std::nullopt)};
}

TensorSpec none() { return {.sizes = {}, .options = {}, .defined = false}; }

TensorSpec like(const at::Tensor& self) {
  TensorSpec spec = of(self.sizes(), self.options());
  if (!self.is_contiguous()) set_dense_strides(spec, self.sizes(), self.strides());
  return spec;
}

TensorSpec like(const at::Tensor& self, at::ScalarType dtype) {
  TensorSpec spec = like(self);
  spec.options = spec.options.dtype(dtype);
  spec.any_dtype = true;
  return spec;
}

TensorSpec contiguous_like(const at::Tensor& self) { return of(self.sizes(), self.options()); }
TensorSpec real_like(const at::Tensor& self) { return like(self, real_type(self.scalar_type())); }
TensorSpec floating_like(const at::Tensor& self) { return like(self, floating_type(self.scalar_type())); }

TensorSpec broadcast(const at::Tensor& a, const at::Tensor& b) { return broadcast(a, b, at::result_type(a, b)); }

TensorSpec broadcast(const at::Tensor& a, const at::Tensor& b, at::ScalarType dtype) {
  if (a.sizes() == b.sizes() && a.device().is_privateuseone()) return like(a, dtype);
  const at::Tensor& device = a.device().is_privateuseone() ? a : b;
  TensorSpec spec = of(at::infer_size_dimvector(a.sizes(), b.sizes()), device.options().dtype(dtype));
  spec.any_dtype = true;
  return spec;
}

TensorSpec where(const at::Tensor& condition, const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(condition.scalar_type() == at::kBool || condition.scalar_type() == at::kByte,
              "where expected condition to be a boolean tensor, but got a tensor with dtype ", condition.scalar_type());
  const at::Tensor& device = condition.device().is_privateuseone() ? condition : a.device().is_privateuseone() ? a : b;
  const at::DimVector sizes =
      at::infer_size_dimvector(condition.sizes(), at::infer_size_dimvector(a.sizes(), b.sizes()));
  TensorSpec spec = of(sizes, device.options().dtype(at::result_type(a, b)));
  if (a.sizes() == at::IntArrayRef(sizes) && !a.is_contiguous()) set_dense_strides(spec, sizes, a.strides());
  return spec;
}

TensorSpec complex_of(const at::Tensor& real, const at::Tensor& imaginary) {
  const auto has_complex_type = [](at::ScalarType dtype) {
    return dtype == at::kHalf || dtype == at::kFloat || dtype == at::kDouble;
  };
  const at::ScalarType dtype = real.scalar_type(), other = imaginary.scalar_type();
  TORCH_CHECK(has_complex_type(dtype) && has_complex_type(other),
              "Expected both inputs to be Half, Float or Double tensors but got ", dtype, " and ", other);
  TORCH_CHECK(dtype == other, "Expected object of scalar type ", dtype, " but got scalar type ", other,
              " for second argument");
  return broadcast(real, imaginary, c10::toComplexType(real.scalar_type()));
}

TensorSpecs<2> frexp(const at::Tensor& self) { return {like(self), like(self, at::kInt)}; }

TensorSpec scalar_like(const at::Tensor& self) { return of({}, self.options()); }
TensorSpec scalar(const at::Tensor& self, at::ScalarType dtype) { return of({}, self.options().dtype(dtype)); }

TensorSpec extremum(const at::Tensor& self, const char* function) {
  TORCH_CHECK(self.numel() > 0, function, ": Expected reduction dim to be specified for input.numel() == 0. ",
              "Specify the reduction dim with the 'dim' argument.");
  TensorSpec spec = scalar_like(self);
  spec.any_dtype = true;
  return spec;
}

TensorSpec trace(const at::Tensor& self) {
  TORCH_CHECK(self.dim() == 2, "trace: expected a matrix, but got tensor with dim ", self.dim());
  return scalar(self, sum_dtype(self));
}

TensorSpec dot(const at::Tensor& self, const at::Tensor& other) {
  TORCH_CHECK(self.dim() == 1 && other.dim() == 1, "1D tensors expected, but got ", self.dim(), "D and ", other.dim(),
              "D tensors");
  TORCH_CHECK(self.scalar_type() == other.scalar_type(), "dot : expected both vectors to have same dtype, but found ",
              self.scalar_type(), " and ", other.scalar_type());
  TORCH_CHECK(self.numel() == other.numel(), "inconsistent tensor size, expected tensor [", self.numel(), "] and src [",
              other.numel(), "] to have the same number of elements, but got ", self.numel(), " and ", other.numel(),
              " elements respectively");
  return scalar_like(self);
}

at::ScalarType sum_dtype(const at::Tensor& self, std::optional<at::ScalarType> dtype) {
  if (dtype) return *dtype;
  return at::isIntegralType(self.scalar_type(), /*includeBool=*/true) ? at::kLong : self.scalar_type();
}

TensorSpec reduced(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim, at::ScalarType dtype) {
  const at::IntArrayRef dims = dim.has_value() ? *dim : at::IntArrayRef();
  const at::DimVector sizes =
      at::meta::get_reduction_shape(self, at::native::make_dim_vector(dims, self.dim()), keepdim);
  TensorSpec spec = of(sizes, self.options().dtype(dtype));
  spec.any_dtype = true;
  return spec;
}

TensorSpec variance(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim) {
  TORCH_CHECK(at::isFloatingType(self.scalar_type()) || at::isComplexType(self.scalar_type()),
              "std and var only support floating point and complex dtypes");
  return reduced(self, dim, keepdim, real_type(self.scalar_type()));
}

TensorSpecs<2> variance_and_mean(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim) {
  return {reduced(self, dim, keepdim, real_type(self.scalar_type())), reduced(self, dim, keepdim, self.scalar_type())};
}

TensorSpecs<2> values_and_indices(const at::Tensor& self, int64_t dim, bool keepdim, const char* function) {
  at::native::zero_numel_check_dims(self, at::maybe_wrap_dim(dim, self.dim()), function);
  const TensorSpec values = reduced(self, at::OptionalIntArrayRef(dim), keepdim, self.scalar_type());
  TensorSpec indices = values;
  indices.options = indices.options.dtype(at::kLong);
  return {values, indices};
}

TensorSpecs<2> kthvalue(const at::Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  TensorSpecs<2> specs = values_and_indices(self, dim, keepdim, "kthvalue()");
  const int64_t wrapped = at::maybe_wrap_dim(dim, self.dim());
  TORCH_CHECK(k >= 1 && k <= (self.dim() == 0 ? 1 : self.size(wrapped)),
              "kthvalue(): selected number k out of range for dimension ", wrapped);
  return specs;
}

TensorSpec along(const at::Tensor& self, int64_t dim) {
  at::maybe_wrap_dim(dim, self.dim());
  return contiguous_like(self);
}

TensorSpec roll(const at::Tensor& self, at::IntArrayRef shifts, at::IntArrayRef dims) {
  TORCH_CHECK(!shifts.empty(), "`shifts` required");
  TORCH_CHECK(shifts.size() == dims.size() || (dims.empty() && shifts.size() == 1),
              "shifts and dimensions must align. shifts: ", shifts.size(), ", dims:", dims.size());
  if (self.numel() != 0)
    for (const int64_t dim : dims) at::maybe_wrap_dim(dim, self.dim(), /*wrap_scalar=*/false);
  return contiguous_like(self);
}

TensorSpec index_select(const at::Tensor& self, int64_t dim, const at::Tensor& index) {
  TORCH_CHECK(index.dim() <= 1, "index_select(): Index is supposed to be a vector, but got dim: ", index.dim());
  TORCH_CHECK(index.scalar_type() == at::kLong || index.scalar_type() == at::kInt,
              "index_select(): Expected dtype int32 or int64 for index, but got ", index.scalar_type());
  TensorSpec spec = contiguous_like(self);
  if (self.dim() != 0) spec.sizes[static_cast<size_t>(at::maybe_wrap_dim(dim, self.dim()))] = index.numel();
  return spec;
}

TensorSpec take(const at::Tensor& self, const at::Tensor& index) {
  TORCH_CHECK(index.scalar_type() == at::kLong, "take(): Expected a long tensor for index, but got ",
              index.scalar_type());
  TORCH_CHECK_INDEX(self.numel() != 0 || index.numel() == 0, "take(): tried to take from an empty tensor");
  return of(index.sizes(), self.options());
}

TensorSpec search(const at::Tensor& positions_of, bool int32) {
  TensorSpec spec = of(positions_of.sizes(), positions_of.options().dtype(int32 ? at::kInt : at::kLong));
  spec.any_dtype = true;  // the kernel words its own refusal
  return spec;
}

TensorSpec bucketize(const at::Tensor& self, const at::Tensor& boundaries, bool int32) {
  TORCH_CHECK(boundaries.dim() == 1, "boundaries tensor must be 1 dimension, but got dim(", boundaries.dim(), ")");
  return search(self, int32);
}

TensorSpec searchsorted(const at::Tensor& sorted_sequence, const at::Tensor& self, bool int32, bool right,
                        std::optional<std::string_view> side, const std::optional<at::Tensor>& sorter) {
  TORCH_CHECK(!side || *side == "left" || *side == "right",
              "torch.searchsorted(): side can only be 'left' or 'right' but got ", *side);
  TORCH_CHECK(!side || !right || *side == "right",
              "torch.searchsorted(): side and right can't be set to opposites, got side of ", *side,
              " while right was True");
  TORCH_CHECK(!sorter || !sorter->defined() || sorter->sizes() == sorted_sequence.sizes(),
              "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor ",
              sorted_sequence.sizes(), "and got sorter tensor ", sorter->sizes());
  const int64_t dims = sorted_sequence.dim();
  TORCH_CHECK(self.dim() > 0 || dims == 1,
              "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we ",
              "got boundaries tensor dim(", dims, ") and input value's dim(", self.dim(), ") numel(", self.numel(),
              ")");
  TORCH_CHECK(dims != 0, "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension");
  const auto batch = static_cast<size_t>(dims - 1);
  TORCH_CHECK(
      dims == 1 || (self.dim() == dims && self.sizes().slice(0, batch) == sorted_sequence.sizes().slice(0, batch)),
      "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries ",
      "tensor and input value tensor must match, but we got boundaries tensor ", sorted_sequence.sizes(),
      " and input value tensor ", self.sizes());
  return search(self, int32);
}

TensorSpec bins(const at::Tensor& self, int64_t count, const at::Scalar& min, const at::Scalar& max) {
  TORCH_CHECK(count > 0, "torch.histogram(): bins must be > 0, but got ", count, " for dimension 0");
  TORCH_CHECK(min.toDouble() <= max.toDouble(), "torch.histc: max must be larger than min");
  return of({count}, self.options());
}

TensorSpec arange(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, const at::Tensor& out) {
  return AT_DISPATCH_ALL_TYPES_AND2(at::kHalf, at::kBFloat16, out.scalar_type(), "arange_cpu", [&] {
    return of({at::native::compute_arange_size<scalar_t>(start, end, step)}, out.options());
  });
}
TensorSpec range(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, const at::Tensor& out) {
  return of({closed_range_length(start, end, step)}, out.options());
}
TensorSpec steps(int64_t count, const at::Tensor& out) {
  TORCH_CHECK(count >= 0, "number of steps must be non-negative, but got ", count);
  return of({count}, out.options());
}
TensorSpec matrix(int64_t rows, int64_t columns, const at::Tensor& out) {
  TORCH_CHECK(rows >= 0, "n must be greater or equal to 0, got ", rows);
  TORCH_CHECK(columns >= 0, "m must be greater or equal to 0, got ", columns);
  return of({rows, columns}, out.options());
}

TensorSpec addbmm(const at::Tensor& batch1, const at::Tensor& batch2) {
  TORCH_CHECK(batch1.dim() == 3 && batch2.dim() == 3, "batch1 and batch2 must be 3-dimensional, but have sizes ",
              batch1.sizes(), " and ", batch2.sizes());
  return of({batch1.size(1), batch2.size(2)}, batch1.options());
}

TensorSpec cdist(const at::Tensor& x1, const at::Tensor& x2) {
  at::DimVector sizes = common_batch(x1, x2);
  sizes.push_back(x1.size(-2));
  sizes.push_back(x2.size(-2));
  return of(sizes, x1.options());
}

TensorSpec solve_triangular(const at::Tensor& triangle, const at::Tensor& right_side) {
  at::DimVector sizes = common_batch(triangle, right_side);
  sizes.push_back(right_side.size(-2));
  sizes.push_back(right_side.size(-1));
  return of(sizes, right_side.options());
}

TensorSpec pdist(const at::Tensor& self) {
  const int64_t n = self.size(0);
  return of({n <= 1 ? 0 : n * (n - 1) / 2}, self.options());
}

TensorSpec fft_r2c(const at::Tensor& self, at::IntArrayRef dim, bool onesided) {
  TensorSpec spec = of(self.sizes(), self.options().dtype(c10::toComplexType(self.scalar_type())));
  auto& last = spec.sizes[static_cast<size_t>(at::maybe_wrap_dim(dim.back(), self.dim()))];
  if (onesided) last = last / 2 + 1;
  return spec;
}

TensorSpec fft_c2r(const at::Tensor& self, at::IntArrayRef dim, int64_t last_dim_size) {
  TensorSpec spec = of(self.sizes(), self.options().dtype(c10::toRealValueType(self.scalar_type())));
  spec.sizes[static_cast<size_t>(at::maybe_wrap_dim(dim.back(), self.dim()))] = last_dim_size;
  return spec;
}

}  // namespace npu::aten::shapes
