// Matrix products of the kernel route (kernel_route.h), and the BLAS that the kernels use: the one inside libtorch_cpu.
#include "kernels/matmul.h"

#include <ATen/ops/_efficientzerotensor.h>

#include <algorithm>

#include "aten/ops/environment.h"
#include "aten/ops/kernel_operand.h"
#include "aten/ops/kernel_route.h"
#include "aten/ops/numbers.h"
#include "aten/ops/shape_rules.h"

// Fortran's BLAS, exported by libtorch_cpu; column-major.
extern "C" {
void sgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n, const int* k,
            const float* alpha, const float* a, const int* lda, const float* b, const int* ldb, const float* beta,
            float* c, const int* ldc);
void dgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n, const int* k,
            const double* alpha, const double* a, const int* lda, const double* b, const int* ldb, const double* beta,
            double* c, const int* ldc);
}

namespace npu::aten::kernel_route {
namespace {

using kernels::DType;
using kernels::Gemm;
using kernels::MatmulArguments;

// A row-major product is the column-major product of the operands in the other order.
template <class T, auto blas>
void call_gemm(const Gemm<T>& g) {
  const ThreadWidth single(1);
  const int m = static_cast<int>(g.m), n = static_cast<int>(g.n), k = static_cast<int>(g.k);
  const int lda = static_cast<int>(g.lda), ldb = static_cast<int>(g.ldb), ldc = static_cast<int>(g.ldc);
  blas(g.transpose_b ? "T" : "N", g.transpose_a ? "T" : "N", &n, &m, &k, &g.alpha, g.b, &ldb, g.a, &lda, &g.beta, g.c,
       &ldc);
}

const bool registered = [] {
  kernels::set_gemm_table({call_gemm<float, sgemm_>, call_gemm<double, dgemm_>});
  return true;
}();

// The last two dimensions as BLAS sees them.
struct Matrix {
  int64_t rows, columns, ld;
  bool transposed;
};

bool as_matrix(const c10::TensorImpl& tensor, Matrix& matrix) {
  const int64_t last = tensor.dim() - 1;
  const int64_t rows = tensor.size(last - 1), columns = tensor.size(last);
  const int64_t row_stride = tensor.stride(last - 1), column_stride = tensor.stride(last);
  constexpr int64_t kMax = INT32_MAX;
  if (std::max({rows, columns, row_stride, column_stride}) > kMax) return false;
  // A dimension of one element has no stride that matters, but one of the two must be 1: the CPU copies other operands, and
  // rounds their products otherwise.
  if ((column_stride == 1 || (columns == 1 && row_stride == 1)) && (row_stride >= columns || rows == 1)) {
    matrix = {rows, columns, std::max(row_stride, columns), false};
    return true;
  }
  if (row_stride == 1 && (column_stride >= rows || columns == 1)) {
    matrix = {rows, columns, std::max(column_stride, rows), true};
    return true;
  }
  return false;
}

// Checks two operands of `dim` dimensions and describes their product.
bool describe(const at::Tensor& a, const at::Tensor& b, int64_t dim, MatmulArguments& arguments) {
  const c10::TensorImpl& left = *a.unsafeGetTensorImpl();
  const c10::TensorImpl& right = *b.unsafeGetTensorImpl();
  Matrix l, r;
  if (!is_plain(left) || !is_plain(right) || left.dim() != dim || right.dim() != dim || left.numel() == 0 ||
      right.numel() == 0 || a.scalar_type() != b.scalar_type() || a.device() != b.device() ||
      !to_kernel_dtype(a.scalar_type(), arguments.dtype) || !kernels::supports_matmul(arguments.dtype) ||
      !as_matrix(left, l) || !as_matrix(right, r) || l.columns != r.rows)
    return false;
  if (l.rows == 1 && r.columns == 1) return false;  // column-major on the CPU, which rounds otherwise
  const bool batched = dim == 3;
  if (batched && left.size(0) != right.size(0)) return false;
  arguments.batch = batched ? left.size(0) : 1;
  arguments.m = l.rows;
  arguments.n = r.columns;
  arguments.k = l.columns;
  arguments.lda = l.ld;
  arguments.ldb = r.ld;
  arguments.transpose_a = l.transposed;
  arguments.transpose_b = r.transposed;
  arguments.a_batch_stride = batched ? left.stride(0) : 0;
  arguments.b_batch_stride = batched ? right.stride(0) : 0;
  arguments.alpha = 1;
  arguments.beta = 0;
  arguments.self = nullptr;
  arguments.self_row_stride = 0;
  return true;
}

bool disjoint(const at::Tensor& out, const at::Tensor& in) {
  const auto begin = reinterpret_cast<uintptr_t>(out.const_data_ptr());
  const auto other = reinterpret_cast<uintptr_t>(in.const_data_ptr());
  const c10::TensorImpl& impl = *in.unsafeGetTensorImpl();
  int64_t last = 0;
  for (int64_t d = 0; d < impl.dim(); ++d) last += (impl.size(d) - 1) * impl.stride(d);
  return other >= begin + out.nbytes() || begin >= other + static_cast<uint64_t>(last + 1) * impl.itemsize();
}

bool prepare_out(const at::Tensor& a, const at::Tensor& b, at::IntArrayRef sizes, at::Tensor& out) {
  if (!out.defined()) {
    const DeviceGuard guard(a.device().index());
    out = at::detail::empty_generic(sizes, c10::GetAllocator(c10::kPrivateUse1),
                                    c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), a.scalar_type(), std::nullopt);
    return true;
  }
  const c10::TensorImpl& impl = *out.unsafeGetTensorImpl();
  return is_plain(impl) && impl.is_contiguous() && impl.sizes() == sizes && out.scalar_type() == a.scalar_type() &&
         out.device() == a.device() && disjoint(out, a) && disjoint(out, b);
}

// The CPU has a loop of its own for tiny products of a batch, and takes vectors together: other roundings than gemm's.
bool rounds_otherwise(const MatmulArguments& product) {
  constexpr int64_t kTinyMultiplyAdds = 400;
  return product.n == 1 || product.m * product.n * product.k < kTinyMultiplyAdds;
}

void launch_product(const TaskInfo& info, const at::Tensor& a, const at::Tensor& b, const at::Tensor& out,
                    MatmulArguments& arguments) {
  arguments.out = out.mutable_data_ptr();
  arguments.a = a.const_data_ptr();
  arguments.b = b.const_data_ptr();
  launch(info, out, arguments, kernels::estimate_matmul_ns(arguments));
}

// The addend of addmm: m x n in rows of unit step, or one row for all.
bool describe_addend(const at::Tensor& self, const at::Tensor& like, MatmulArguments& arguments) {
  const c10::TensorImpl& impl = *self.unsafeGetTensorImpl();
  if (!is_plain(impl) || self.scalar_type() != like.scalar_type() || self.device() != like.device()) return false;
  const int64_t rank = impl.dim();
  if (rank < 1 || rank > 2 || impl.size(rank - 1) != arguments.n || (arguments.n > 1 && impl.stride(rank - 1) != 1))
    return false;
  if (rank == 1 || impl.size(0) == 1) {
    arguments.self_row_stride = 0;
  } else if (impl.size(0) == arguments.m && impl.stride(0) >= 0) {
    arguments.self_row_stride = impl.stride(0);
  } else {
    return false;
  }
  arguments.self = self.const_data_ptr();
  return true;
}

bool is_factor(const at::Scalar& number, at::ScalarType dtype) {
  return !number.isComplex() && !number.isSymbolic() && (fits_all(number) || fits(number, dtype));
}

}  // namespace

bool mm(const at::Tensor& self, const at::Tensor& mat2, at::Tensor& out) {
  MatmulArguments arguments;
  if (!describe(self, mat2, 2, arguments) || !prepare_out(self, mat2, {arguments.m, arguments.n}, out)) return false;
  launch_product(kernels::kMm, self, mat2, out, arguments);
  return true;
}

bool bmm(const at::Tensor& self, const at::Tensor& mat2, at::Tensor& out) {
  MatmulArguments arguments;
  if (!describe(self, mat2, 3, arguments) || rounds_otherwise(arguments) ||
      !prepare_out(self, mat2, {arguments.batch, arguments.m, arguments.n}, out))
    return false;
  launch_product(kernels::kBmm, self, mat2, out, arguments);
  return true;
}

bool addmm(const at::Tensor& self, const at::Tensor& mat1, const at::Tensor& mat2, const at::Scalar& beta,
           const at::Scalar& alpha, at::Tensor& out) {
  MatmulArguments arguments;
  const at::ScalarType dtype = mat1.scalar_type();
  if (!is_factor(beta, dtype) || !is_factor(alpha, dtype) || !describe(mat1, mat2, 2, arguments)) return false;
  arguments.alpha = alpha.toDouble();
  arguments.beta = beta.toDouble();
  if (!describe_addend(self, mat1, arguments)) return false;
  const bool in_place = out.defined() && out.const_data_ptr() == self.const_data_ptr() &&
                        (arguments.self_row_stride == arguments.n || arguments.m == 1);
  if (out.defined() && !in_place && !disjoint(out, self)) return false;
  if (!prepare_out(mat1, mat2, {arguments.m, arguments.n}, out)) return false;
  if (arguments.beta == 0) arguments.self = nullptr;  // not read, so NaN does not spread
  launch_product(kernels::kAddmm, mat1, mat2, out, arguments);
  return true;
}

bool dot(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  if (!self._is_zerotensor() && !other._is_zerotensor()) return false;
  shapes::dot(self, other, /*conjugates_self=*/false);  // refuses what does not fit
  out = at::_efficientzerotensor({}, self.options());
  return true;
}

}  // namespace npu::aten::kernel_route
