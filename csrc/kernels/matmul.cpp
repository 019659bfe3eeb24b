#include "kernels/matmul.h"

#include <algorithm>
#include <cstring>

#include "kernels/shape.h"
#include "kernels/tile.h"

namespace npu::kernels {
namespace {

GemmTable g_table;

// Rough run time of one product on one core: arithmetic, and memory that is read and written once.
double product_ns(int64_t m, int64_t n, int64_t k, size_t element_bytes) {
  constexpr double kMultiplyAddsPerNs = 64, kBytesPerNs = 32;
  const double multiply_adds = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const double elements = static_cast<double>(m * k + k * n + m * n);
  const double bytes = static_cast<double>(element_bytes);
  return multiply_adds * (bytes / 4) / kMultiplyAddsPerNs + elements * bytes / kBytesPerNs;
}

// Tiles of one product. Each packs its part of both operands again (4% in all for 2 x 2 tiles of 1024 x 1024, 14% for
// 4 x 4), so there are two from 130 us on and twice as many for ten times the work, cut across the longer side; or as many
// as NPU_SIM_TILE_ELEMENTS asks for.
struct Grid {
  int64_t rows, columns;  // number of tiles
};
constexpr double kTwoTilesNs = 130e3;
constexpr int64_t kMinTileSide = 32;

Grid choose_grid(int64_t m, int64_t n, double ns) {
  Grid grid = {1, 1};
  const int64_t most = tile_elements(0);
  for (; most != 0 ? m * n > most : ns >= kTwoTilesNs; ns /= 10) {
    const bool cut_rows = m >= n;
    int64_t& side = cut_rows ? m : n;
    if (side < 2 * kMinTileSide) break;
    (cut_rows ? grid.rows : grid.columns) *= 2;
    side = (side + 1) / 2;
  }
  return grid;
}

// Products of a batch that share a tile, when each is too small for tiles of its own.
int64_t choose_group(int64_t m, int64_t n, double ns) {
  const int64_t most = tile_elements(0);
  return most != 0 ? std::max<int64_t>(1, most / (m * n)) : 1 + static_cast<int64_t>(kTwoTilesNs / 2 / ns);
}

// Part `index` of `parts` nearly equal parts of [0, count), cut at multiples of 16.
struct Range {
  int64_t begin, end;
};
Range part(int64_t count, int64_t parts, int64_t index) {
  const int64_t step = ((count + parts - 1) / parts + 15) / 16 * 16;
  return {std::min(count, step * index), std::min(count, step * (index + 1))};
}

// One task at engine addresses.
template <class T>
struct Product {
  const MatmulArguments& args;
  T* out;
  const T* a;
  const T* b;
  const T* self;
  void (*gemm)(const Gemm<T>&);

  void tile(int64_t batch, Range rows, Range columns) const {
    if (rows.begin == rows.end || columns.begin == columns.end) return;
    T* c = out + batch * args.m * args.n + rows.begin * args.n + columns.begin;
    if (self) copy_self(c, rows, columns);
    const T* a_tile = a + batch * args.a_batch_stride + (args.transpose_a ? rows.begin : rows.begin * args.lda);
    const T* b_tile = b + batch * args.b_batch_stride + (args.transpose_b ? columns.begin * args.ldb : columns.begin);
    gemm({.transpose_a = args.transpose_a,
          .transpose_b = args.transpose_b,
          .m = rows.end - rows.begin,
          .n = columns.end - columns.begin,
          .k = args.k,
          .alpha = static_cast<T>(args.alpha),
          .a = a_tile,
          .lda = args.lda,
          .b = b_tile,
          .ldb = args.ldb,
          .beta = self ? static_cast<T>(args.beta) : T(0),
          .c = c,
          .ldc = args.n});
  }

 private:
  void copy_self(T* c, Range rows, Range columns) const {
    const size_t bytes = static_cast<size_t>(columns.end - columns.begin) * sizeof(T);
    for (int64_t row = rows.begin; row < rows.end; ++row, c += args.n) {
      const T* from = self + row * args.self_row_stride + columns.begin;
      if (c != from) std::memcpy(c, from, bytes);  // equal when the result goes into `self`
    }
  }
};

template <class T>
void run_product(const TaskContext& context, const MatmulArguments& args, void (*gemm)(const Gemm<T>&)) {
  const Product<T> product{args,
                           static_cast<T*>(context.translate(args.out)),
                           static_cast<const T*>(context.translate(args.a)),
                           static_cast<const T*>(context.translate(args.b)),
                           static_cast<const T*>(context.translate(args.self)),
                           gemm};
  const double ns = product_ns(args.m, args.n, args.k, sizeof(T));
  const Grid grid = choose_grid(args.m, args.n, ns);
  const int64_t tiles = grid.rows * grid.columns;
  if (tiles == 1) {
    const int64_t group = choose_group(args.m, args.n, ns);
    if (args.batch <= group) {
      for (int64_t i = 0; i < args.batch; ++i) product.tile(i, {0, args.m}, {0, args.n});
      return;
    }
    return context.parallel_for((args.batch + group - 1) / group, [&](int64_t t) {
      const int64_t end = std::min(args.batch, (t + 1) * group);
      for (int64_t i = t * group; i < end; ++i) product.tile(i, {0, args.m}, {0, args.n});
    });
  }
  context.parallel_for(args.batch * tiles, [&](int64_t t) {
    const int64_t index = t % tiles;
    product.tile(t / tiles, part(args.m, grid.rows, index / grid.columns),
                 part(args.n, grid.columns, index % grid.columns));
  });
}

void run_matmul(const TaskContext& context, const void* arguments) {
  const auto& args = *static_cast<const MatmulArguments*>(arguments);
  if (args.dtype == DType::kFloat32) return run_product<float>(context, args, g_table.sgemm);
  run_product<double>(context, args, g_table.dgemm);
}

// A stored operand: `rows` x `columns` in memory, `batch` of them.
void visit_matrix(OperandVisitor& visitor, const char* name, Operand::Access access, void** slot, DType dtype,
                  const int64_t (&sizes)[3], const int64_t (&strides)[3]) {
  Operand operand;
  operand.name = name;
  operand.access = access;
  operand.address = slot;
  operand.dtype = to_string(dtype);
  operand.rank = 3;
  operand.sizes = sizes;
  operand.strides = strides;
  int64_t last = 0;
  for (int d = 0; d < 3; ++d) last += (sizes[d] - 1) * strides[d];
  operand.bytes = static_cast<size_t>(last + 1) * size_of(dtype);
  visitor.visit(operand);
}

void visit_matmul(void* arguments, OperandVisitor& visitor) {
  auto& x = *static_cast<MatmulArguments*>(arguments);
  const auto slot = [](const void*& address) { return const_cast<void**>(&address); };
  using Access = Operand::Access;
  visit_matrix(visitor, "self", Access::kRead, slot(x.a), x.dtype, {x.batch, x.m, x.k},
               {x.a_batch_stride, x.transpose_a ? 1 : x.lda, x.transpose_a ? x.lda : 1});
  visit_matrix(visitor, "mat2", Access::kRead, slot(x.b), x.dtype, {x.batch, x.k, x.n},
               {x.b_batch_stride, x.transpose_b ? 1 : x.ldb, x.transpose_b ? x.ldb : 1});
  if (x.self)
    visit_matrix(visitor, "input", Access::kRead, slot(x.self), x.dtype, {1, x.m, x.n}, {0, x.self_row_stride, 1});
  visit_matrix(visitor, "out", Access::kWrite, &x.out, x.dtype, {x.batch, x.m, x.n}, {x.m * x.n, x.n, 1});
}

constexpr TaskInfo matmul_info(const char* name) {
  return {.name = name, .run = run_matmul, .engines = kCubeEngine, .visit = visit_matmul};
}

}  // namespace

constexpr TaskInfo kMm = matmul_info("aten::mm");
constexpr TaskInfo kBmm = matmul_info("aten::bmm");
constexpr TaskInfo kAddmm = matmul_info("aten::addmm");

void set_gemm_table(const GemmTable& table) { g_table = table; }

bool supports_matmul(DType dtype) {
  return (dtype == DType::kFloat32 && g_table.sgemm) || (dtype == DType::kFloat64 && g_table.dgemm);
}

uint32_t estimate_matmul_ns(const MatmulArguments& arguments) {
  constexpr double kCallNs = 500;
  const double ns = kCallNs + static_cast<double>(arguments.batch) *
                                  product_ns(arguments.m, arguments.n, arguments.k, size_of(arguments.dtype));
  return ns < 4e9 ? static_cast<uint32_t>(ns) : UINT32_MAX;
}

}  // namespace npu::kernels
