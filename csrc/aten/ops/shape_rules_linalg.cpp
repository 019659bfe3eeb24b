// Shape rules of linear algebra and Fourier transforms.
#include <ATen/Context.h>
#include <ATen/ExpandUtils.h>
#include <ATen/WrapDimUtils.h>
#include <c10/util/strides.h>

#include <algorithm>
#include <numeric>

#include "aten/ops/shape_rules.h"

namespace npu::aten::shapes {
namespace {

// Broadcast sizes of all dimensions but the last two.
at::DimVector common_batch(const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(a.dim() >= 2 && b.dim() >= 2, "expected matrices or batches of them, but got sizes ", a.sizes(), " and ",
              b.sizes());
  return at::infer_size_dimvector(a.sizes().slice(0, static_cast<size_t>(a.dim() - 2)),
                                  b.sizes().slice(0, static_cast<size_t>(b.dim() - 2)));
}

// As LAPACK wants matrices: each column together.
TensorSpec column_major(at::IntArrayRef sizes, const at::TensorOptions& options) {
  TensorSpec spec = of(sizes, options);
  at::DimVector transposed(sizes.begin(), sizes.end());
  const size_t last = sizes.size() - 1;
  std::swap(transposed[last], transposed[last - 1]);
  spec.strides = c10::contiguous_strides(transposed);
  std::swap(spec.strides[last], spec.strides[last - 1]);
  return spec;
}

// A Fourier transform as the host's library lays it out. MKL writes the dimensions that are not transformed outermost, in
// the order they have in the input's memory, and inside them the transformed ones in the order of `dim`.
struct Transform {
  at::DimVector sizes;
  at::DimVector strides;

  explicit Transform(const at::Tensor& self)
      : sizes(self.sizes().begin(), self.sizes().end()), strides(self.strides().begin(), self.strides().end()) {}

  auto outermost_first() const {
    return [this](int64_t a, int64_t b) { return strides[static_cast<size_t>(a)] > strides[static_cast<size_t>(b)]; };
  }

  // The first `sorted` of the dimensions are taken in the order they have in memory.
  void apply(at::IntArrayRef dim, size_t sorted) {
    if (!at::hasMKL()) {
      strides = c10::contiguous_strides(sizes);
      return;
    }
    at::DimVector transformed(dim.begin(), dim.end());
    std::sort(transformed.begin(), transformed.begin() + static_cast<std::ptrdiff_t>(sorted), outermost_first());
    at::DimVector order(sizes.size());
    std::iota(order.begin(), order.end(), int64_t{0});
    const auto batch_end = std::partition(order.begin(), order.end(), [&](int64_t d) {
      return std::find(transformed.begin(), transformed.end(), d) == transformed.end();
    });
    std::sort(order.begin(), batch_end, outermost_first());
    std::copy(transformed.begin(), transformed.end(), batch_end);
    int64_t stride = 1;
    for (auto d = order.rbegin(); d != order.rend(); ++d) {
      strides[static_cast<size_t>(*d)] = stride;
      stride *= sizes[static_cast<size_t>(*d)];
    }
  }

  TensorSpec spec(const at::TensorOptions& options) const {
    TensorSpec spec = of(sizes, options);
    spec.strides.assign(strides.begin(), strides.end());
    spec.new_only = true;
    return spec;
  }
};

// The dimensions to transform: at least one, each of them once.
at::DimVector transformed(at::IntArrayRef dim, const at::Tensor& self) {
  TORCH_CHECK(!dim.empty(), "expected dimensions to transform, but got none");
  TORCH_CHECK(self.dim() > 0, "expected a tensor with dimensions to transform, but got a 0-dim tensor");
  at::DimVector result(dim.begin(), dim.end());
  for (int64_t& d : result) d = at::maybe_wrap_dim(d, self.dim());
  at::DimVector sorted = result;
  std::sort(sorted.begin(), sorted.end());
  TORCH_CHECK(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(), "FFT dims must be unique, but got ",
              dim);
  return result;
}

}  // namespace

TensorSpec column_major_like(const at::Tensor& self) {
  TORCH_CHECK(self.dim() >= 2, "expected a matrix or a batch of them, but got sizes ", self.sizes());
  return column_major(self.sizes(), self.options());
}

// Two conjugates in a product are taken together, and the result stays a lazy conjugate.
TensorSpec dot(const at::Tensor& self, const at::Tensor& other, bool conjugates_self) {
  TORCH_CHECK(self.dim() == 1 && other.dim() == 1, "1D tensors expected, but got ", self.dim(), "D and ", other.dim(),
              "D tensors");
  TORCH_CHECK(self.scalar_type() == other.scalar_type(), "dot : expected both vectors to have same dtype, but found ",
              self.scalar_type(), " and ", other.scalar_type());
  TORCH_CHECK(self.numel() == other.numel(), "inconsistent tensor size, expected tensor [", self.numel(), "] and src [",
              other.numel(), "] to have the same number of elements, but got ", self.numel(), " and ", other.numel(),
              " elements respectively");
  TensorSpec spec = scalar_like(self);
  spec.conjugate = other.is_conj() && self.is_conj() != conjugates_self;
  return spec;
}

TensorSpec addbmm(const at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2) {
  const at::DimVector sizes = {batch1.size(1), batch2.size(2)};
  if (!at::is_expandable_to(self.sizes(), sizes)) self.expand(sizes);  // throws
  TORCH_CHECK(batch1.dim() == 3, "batch1 must be a 3D tensor");
  TORCH_CHECK(batch2.dim() == 3, "batch2 must be a 3D tensor");
  TORCH_CHECK(batch1.size(0) == batch2.size(0), "batch1 and batch2 must have same number of batches, got ",
              batch1.size(0), " and ", batch2.size(0));
  TORCH_CHECK(batch1.size(2) == batch2.size(1), "Incompatible matrix sizes for bmm (", batch1.size(1), "x",
              batch1.size(2), " and ", batch2.size(1), "x", batch2.size(2), ")");
  for (const at::Tensor* batch : {&batch1, &batch2})
    TORCH_CHECK(self.scalar_type() == batch->scalar_type(), "self and mat2 must have the same dtype, but got ",
                self.scalar_type(), " and ", batch->scalar_type());
  return of(sizes, batch1.options());
}

TensorSpec matrix_product(const at::Tensor& a, const at::Tensor& b, at::ScalarType dtype) {
  TORCH_CHECK(a.dim() == 2 && b.dim() == 2, "expected two matrices, but got sizes ", a.sizes(), " and ", b.sizes());
  TensorSpec spec = of({a.size(0), b.size(1)}, a.options().dtype(dtype));
  spec.any_dtype = true;
  return spec;
}

TensorSpec packed_product(const at::Tensor& self, int64_t columns) {
  TORCH_CHECK(self.dim() == 2, "expected a matrix, but got sizes ", self.sizes());
  return of({self.size(0), columns}, self.options());
}

TensorSpec cdist(const at::Tensor& x1, const at::Tensor& x2) {
  at::DimVector sizes = common_batch(x1, x2);
  sizes.push_back(x1.size(-2));
  sizes.push_back(x2.size(-2));
  return of(sizes, x1.options());
}

TensorSpec cdist_backward(const at::Tensor& x1, const at::Tensor& x2) {
  at::DimVector sizes = common_batch(x1, x2);
  const bool empty = x1.size(-2) == 0 || x2.size(-2) == 0 || x1.size(-1) == 0 || c10::multiply_integers(sizes) == 0;
  if (empty) return like(x1);
  sizes.push_back(x1.size(-2));
  sizes.push_back(x1.size(-1));
  return of(sizes, x1.options());
}

TensorSpec pdist(const at::Tensor& self) {
  const int64_t n = self.size(0);
  return of({n <= 1 ? 0 : n * (n - 1) / 2}, self.options());
}

TensorSpec solve_triangular(const at::Tensor& triangle, const at::Tensor& right_side) {
  at::DimVector sizes = common_batch(triangle, right_side);
  const bool as_it_is = sizes == triangle.sizes().slice(0, sizes.size()) && triangle.is_conj() &&
                        triangle.transpose(-2, -1).is_contiguous();
  sizes.push_back(right_side.size(-2));
  sizes.push_back(right_side.size(-1));
  return as_it_is ? of(sizes, right_side.options()) : column_major(sizes, right_side.options());
}

TensorSpecs<2> geqrf(const at::Tensor& self) {
  TORCH_CHECK(self.dim() >= 2, "torch.geqrf: input must have at least 2 dimensions.");
  const TensorSpec factors = column_major_like(self);
  at::DimVector sizes(self.sizes().begin(), self.sizes().end() - 1);
  sizes.back() = std::min(self.size(-2), self.size(-1));
  return {factors, of(sizes, self.options())};
}

TensorSpec ormqr(const at::Tensor& self, const at::Tensor& other) {
  TORCH_CHECK(self.dim() >= 2, "torch.ormqr: input must have at least 2 dimensions.");
  TORCH_CHECK(other.dim() >= 2, "torch.ormqr: other must have at least 2 dimensions.");
  return column_major_like(other);
}

TensorSpec fft_c2c(const at::Tensor& self, at::IntArrayRef dim) {
  if (dim.empty()) return like(self);
  Transform transform(self);
  transform.apply(transformed(dim, self), dim.size());
  return transform.spec(self.options());
}

TensorSpec fft_r2c(const at::Tensor& self, at::IntArrayRef dim, bool onesided) {
  const at::DimVector dims = transformed(dim, self);
  Transform transform(self);
  int64_t& last = transform.sizes[static_cast<size_t>(dims.back())];
  if (onesided) last = last / 2 + 1;
  transform.apply(dims, dims.size() - 1);
  return transform.spec(self.options().dtype(c10::toComplexType(self.scalar_type())));
}

// The last dimension comes last, from complex to real; the others are transformed before it.
TensorSpec fft_c2r(const at::Tensor& self, at::IntArrayRef dim, int64_t last_dim_size) {
  const at::DimVector dims = transformed(dim, self);
  TORCH_CHECK(last_dim_size >= 1, "Invalid number of data points (", last_dim_size, ") specified");
  Transform transform(self);
  if (dims.size() > 1) transform.apply(at::IntArrayRef(dims).slice(0, dims.size() - 1), dims.size() - 1);
  transform.sizes[static_cast<size_t>(dims.back())] = last_dim_size;
  transform.apply({dims.back()}, 0);
  return transform.spec(self.options().dtype(c10::toRealValueType(self.scalar_type())));
}

}  // namespace npu::aten::shapes
