#include "kernels/matmul.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace npu::kernels {
namespace {

// A plain product in the place of a BLAS: what is tested is how the kernel cuts and addresses.
template <class T>
void simple_gemm(const Gemm<T>& g) {
  for (int64_t i = 0; i < g.m; ++i)
    for (int64_t j = 0; j < g.n; ++j) {
      T sum = 0;
      for (int64_t p = 0; p < g.k; ++p)
        sum += (g.transpose_a ? g.a[p * g.lda + i] : g.a[i * g.lda + p]) *
               (g.transpose_b ? g.b[j * g.ldb + p] : g.b[p * g.ldb + j]);
      T& c = g.c[i * g.ldc + j];
      c = g.alpha * sum + (g.beta == 0 ? 0 : g.beta * c);
    }
}

std::vector<double> random_matrix(int64_t count, int seed) {
  std::mt19937 engine(seed);
  std::vector<double> values(count);
  for (double& value : values) value = static_cast<double>(static_cast<int>(engine() % 17)) - 8;  // products are exact
  return values;
}

struct MatmulTest : ::testing::Test {
  MatmulTest() { set_gemm_table({simple_gemm<float>, simple_gemm<double>}); }
  ~MatmulTest() override { set_gemm_table({}); }
};

MatmulArguments product(int64_t batch, int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b) {
  MatmulArguments x{};
  x.batch = batch;
  x.m = m, x.n = n, x.k = k;
  x.lda = (transpose_a ? m : k) + 3;  // rows with gaps
  x.ldb = (transpose_b ? k : n) + 2;
  x.a_batch_stride = x.lda * (transpose_a ? k : m);
  x.b_batch_stride = x.ldb * (transpose_b ? n : k);
  x.alpha = 1;
  x.dtype = DType::kFloat64;
  x.transpose_a = transpose_a, x.transpose_b = transpose_b;
  return x;
}

void expect_product(MatmulArguments x) {
  const auto a = random_matrix(x.batch * x.a_batch_stride, 1), b = random_matrix(x.batch * x.b_batch_stride, 2);
  const auto self = random_matrix(x.m * x.n, 3);
  std::vector<double> out(x.batch * x.m * x.n, std::numeric_limits<double>::quiet_NaN());
  x.out = out.data(), x.a = a.data(), x.b = b.data();
  x.self = x.beta == 0 ? nullptr : self.data();
  kMm.run(TaskContext(), &x);
  for (int64_t t = 0; t < x.batch; ++t) {
    std::vector<double> expected(x.m * x.n);
    for (int64_t i = 0; i < x.m; ++i)
      for (int64_t j = 0; j < x.n; ++j) expected[i * x.n + j] = self[i * x.self_row_stride + j];
    simple_gemm<double>({x.transpose_a, x.transpose_b, x.m, x.n, x.k, x.alpha, a.data() + t * x.a_batch_stride, x.lda,
                         b.data() + t * x.b_batch_stride, x.ldb, x.beta, expected.data(), x.n});
    for (int64_t i = 0; i < x.m * x.n; ++i)
      ASSERT_EQ(out[t * x.m * x.n + i], expected[i]) << "batch " << t << " at " << i;
  }
}

TEST_F(MatmulTest, MultipliesSmallAndTiledShapesInEveryOrientation) {
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true}) {
      expect_product(product(1, 3, 5, 7, transpose_a, transpose_b));
      expect_product(product(1, 353, 400, 330, transpose_a, transpose_b));  // tiles in both directions
      expect_product(product(1, 1, 3000, 2000, transpose_a, transpose_b));  // one row
    }
}

TEST_F(MatmulTest, BatchesShareTilesWhenProductsAreSmall) {
  expect_product(product(9, 4, 6, 5, false, true));
  expect_product(product(40, 60, 50, 70, false, false));
  expect_product(product(2, 200, 210, 190, true, false));
}

TEST_F(MatmulTest, AddsAMatrixOrOneRowForAll) {
  MatmulArguments x = product(1, 180, 200, 190, false, true);
  x.alpha = 2, x.beta = 3;
  x.self_row_stride = x.n;
  expect_product(x);
  x.self_row_stride = 0;
  expect_product(x);
}

TEST_F(MatmulTest, InPlaceAddendIsNotCopiedOntoItself) {
  MatmulArguments x = product(1, 2, 2, 1, false, false);
  const double a[] = {1, 0, 0, 0, 2, 0, 0, 0}, b[] = {10, 20, 0, 0};
  double out[] = {1, 2, 3, 4};
  x.out = out, x.self = out, x.a = a, x.b = b, x.beta = 1, x.self_row_stride = 2;
  kAddmm.run(TaskContext(), &x);
  EXPECT_EQ(std::vector<double>(out, out + 4), (std::vector<double>{11, 22, 23, 44}));
}

TEST_F(MatmulTest, SupportsWhatTheTableHas) {
  EXPECT_TRUE(supports_matmul(DType::kFloat32));
  EXPECT_FALSE(supports_matmul(DType::kBFloat16));
  set_gemm_table({});
  EXPECT_FALSE(supports_matmul(DType::kFloat32));
}

}  // namespace
}  // namespace npu::kernels
