#include "aten/ops/shape_rules.h"

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

int64_t range_length(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, bool closed) {
  const double first = start.to<double>(), last = end.to<double>(), by = step.to<double>();
  TORCH_CHECK(by != 0, "step must be nonzero");
  TORCH_CHECK(std::isfinite(first) && std::isfinite(last), "unsupported range: ", first, " -> ", last);
  TORCH_CHECK(by > 0 ? last >= first : last <= first, "upper bound and lower bound inconsistent with step sign");
  if (start.isIntegral(false) && end.isIntegral(false) && step.isIntegral(false)) {
    const int64_t distance = end.toLong() - start.toLong(), by_long = step.toLong();
    return closed ? distance / by_long + 1 : (distance + by_long + (by_long > 0 ? -1 : 1)) / by_long;
  }
  return static_cast<int64_t>(closed ? (last - first) / by + 1 : std::ceil((last - first) / by));
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
  TORCH_CHECK(real.scalar_type() == imaginary.scalar_type() && at::isFloatingType(real.scalar_type()),
              "Expected two floating tensors of one dtype, but got ", real.scalar_type(), " and ",
              imaginary.scalar_type());
  return broadcast(real, imaginary, c10::toComplexType(real.scalar_type()));
}

TensorSpecs<2> frexp(const at::Tensor& self) { return {like(self), like(self, at::kInt)}; }

TensorSpec scalar_like(const at::Tensor& self) { return of({}, self.options()); }
TensorSpec scalar(const at::Tensor& self, at::ScalarType dtype) { return of({}, self.options().dtype(dtype)); }

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
              "std and var only support floating point and complex dtypes, but got ", self.scalar_type());
  return reduced(self, dim, keepdim, real_type(self.scalar_type()));
}

TensorSpecs<2> variance_and_mean(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim) {
  return {variance(self, dim, keepdim), reduced(self, dim, keepdim, self.scalar_type())};
}

TensorSpecs<2> values_and_indices(const at::Tensor& self, int64_t dim, bool keepdim) {
  const TensorSpec values = reduced(self, at::OptionalIntArrayRef(dim), keepdim, self.scalar_type());
  TensorSpec indices = values;
  indices.options = indices.options.dtype(at::kLong);
  return {values, indices};
}

TensorSpec index_select(const at::Tensor& self, int64_t dim, const at::Tensor& index) {
  TORCH_CHECK(index.dim() <= 1, "index_select(): Index is supposed to be a vector, but got dim: ", index.dim());
  TORCH_CHECK(index.scalar_type() == at::kLong || index.scalar_type() == at::kInt,
              "index_select(): Expected dtype int32 or int64 for index, but got ", index.scalar_type());
  TensorSpec spec = contiguous_like(self);
  if (self.dim() != 0) spec.sizes[static_cast<size_t>(at::maybe_wrap_dim(dim, self.dim()))] = index.numel();
  return spec;
}

TensorSpec search(const at::Tensor& positions_of, bool int32) {
  return of(positions_of.sizes(), positions_of.options().dtype(int32 ? at::kInt : at::kLong));
}

TensorSpec bins(const at::Tensor& self, int64_t count) { return of({count}, self.options()); }

TensorSpec arange(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, const at::Tensor& out) {
  return of({range_length(start, end, step, /*closed=*/false)}, out.options());
}
TensorSpec range(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, const at::Tensor& out) {
  return of({range_length(start, end, step, /*closed=*/true)}, out.options());
}
TensorSpec steps(int64_t count, const at::Tensor& out) {
  TORCH_CHECK(count >= 0, "number of steps must be non-negative, but got ", count);
  return of({count}, out.options());
}
TensorSpec matrix(int64_t rows, int64_t columns, const at::Tensor& out) {
  TORCH_CHECK(rows >= 0 && columns >= 0, "sizes must be non-negative, but got ", rows, " and ", columns);
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
