// Matrix products. The arithmetic comes from a BLAS that a layer above supplies through one table, so that results equal
// PyTorch's and no second OpenMP runtime enters the process.
#pragma once

#include <cstdint>

#include "kernels/dtype.h"
#include "runtime/export.h"
#include "runtime/task.h"

namespace npu::kernels {

// One row-major product c = alpha * op(a) * op(b) + beta * c, op(a) m x k, op(b) k x n. A row of a stored matrix is `ld`
// elements from the next; a transposed operand is stored as its transpose. With beta = 0, c is not read.
template <class T>
struct Gemm {
  bool transpose_a, transpose_b;
  int64_t m, n, k;
  T alpha;
  const T* a;
  int64_t lda;
  const T* b;
  int64_t ldb;
  T beta;
  T* c;
  int64_t ldc;
};

// Each runs on the calling thread alone (width 1), from any thread.
struct GemmTable {
  void (*sgemm)(const Gemm<float>&) = nullptr;
  void (*dgemm)(const Gemm<double>&) = nullptr;
};
NPU_API void set_gemm_table(const GemmTable& table);  // before the first launch that uses it

// out[i] = alpha * op(a[i]) * op(b[i]) + beta * self[i] for i in [0, batch); out is contiguous.
// `self` is null when beta is 0; its rows are `self_row_stride` elements apart (0 = one row for all) with unit steps.
struct MatmulArguments {
  void* out;
  const void* a;
  const void* b;
  const void* self;
  int64_t batch, m, n, k;
  int64_t lda, ldb, self_row_stride;
  int64_t a_batch_stride, b_batch_stride;  // elements; self has a batch of 1
  double alpha, beta;
  DType dtype;
  bool transpose_a, transpose_b;
};
NPU_API bool supports_matmul(DType dtype);
NPU_API extern const TaskInfo kMm, kBmm, kAddmm;  // MatmulArguments; they differ by name alone
NPU_API uint32_t estimate_matmul_ns(const MatmulArguments& arguments);

}  // namespace npu::kernels
