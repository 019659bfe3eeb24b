// The coordinates of a triangle of a matrix. Factories have no tensor to tell the device, so no generated wrapper fits.
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tril_indices_cpu_dispatch.h>
#include <ATen/ops/triu_indices_cpu_dispatch.h>
#include <torch/library.h>

#include "aten/ops/counted.h"
#include "aten/ops/library.h"

namespace npu::aten {
namespace {

constexpr ArgumentName kNames[] = {{"row"}, {"col"}, {"offset"}, {"out", Operand::Access::kWrite}};

template <auto indices>
void run_indices(const TaskContext& context, const void* block) {
  run_library_task(context, block, [](ArgumentReader& in) {
    const auto row = in.read<int64_t>(), col = in.read<int64_t>(), offset = in.read<int64_t>();
    at::Tensor out = in.read_output();
    out.copy_(indices(row, col, offset, out.scalar_type()));
  });
}

at::Tensor tril_on_host(int64_t row, int64_t col, int64_t offset, at::ScalarType dtype) {
  return at::cpu::tril_indices(row, col, offset, at::TensorOptions(dtype));
}
at::Tensor triu_on_host(int64_t row, int64_t col, int64_t offset, at::ScalarType dtype) {
  return at::cpu::triu_indices(row, col, offset, at::TensorOptions(dtype));
}

constexpr TaskInfo kTril = make_task("aten::tril_indices", run_indices<tril_on_host>, kVectorEngine);
constexpr TaskInfo kTriu = make_task("aten::triu_indices", run_indices<triu_on_host>, kVectorEngine);

at::Tensor launch(const TaskInfo& info, int64_t count, int64_t row, int64_t col, int64_t offset,
                  const at::TensorOptions& options) {
  at::Tensor out = at::empty({2, count}, options);
  if (count == 0) return out;
  ArgumentWriter arguments(kNames);
  arguments.write(row);
  arguments.write(col);
  arguments.write(offset);
  arguments.write_output(out);
  arguments.launch(info);
  return out;
}

at::TensorOptions options_of(std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                             std::optional<c10::Device> device, std::optional<bool> pin_memory) {
  return at::TensorOptions().dtype(dtype.value_or(at::kLong)).layout(layout).device(device).pinned_memory(pin_memory);
}

at::Tensor tril_indices(int64_t row, int64_t col, int64_t offset, std::optional<at::ScalarType> dtype,
                        std::optional<at::Layout> layout, std::optional<c10::Device> device,
                        std::optional<bool> pin_memory) {
  at::native::check_args(row, col, layout);
  const int64_t count = at::native::get_tril_size(row, col, offset);
  return launch(kTril, count, row, col, offset, options_of(dtype, layout, device, pin_memory));
}

at::Tensor triu_indices(int64_t row, int64_t col, int64_t offset, std::optional<at::ScalarType> dtype,
                        std::optional<at::Layout> layout, std::optional<c10::Device> device,
                        std::optional<bool> pin_memory) {
  at::native::check_args(row, col, layout);
  const int64_t count = row * col - at::native::get_tril_size(row, col, offset - 1);
  return launch(kTriu, count, row, col, offset, options_of(dtype, layout, device, pin_memory));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("tril_indices", counted<op::tril_indices, Route::kLibrary, tril_indices>);
  m.impl("triu_indices", counted<op::triu_indices, Route::kLibrary, triu_indices>);
}

}  // namespace
}  // namespace npu::aten
