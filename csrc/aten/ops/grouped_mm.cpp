// Products of groups of rows or columns, which a mixture of experts makes. PyTorch's own composite reads the offsets on the
// host; in a task it does not wait.
#include <ATen/native/GroupedMMUtils.h>
#include <torch/library.h>

#include "aten/ops/counted.h"
#include "aten/ops/library.h"

namespace npu::aten {
namespace {

constexpr ArgumentName kNames[] = {{"self"}, {"mat2"}, {"offs"}, {"out", Operand::Access::kWrite}};

void run_grouped_mm(const TaskContext& context, const void* block) {
  run_library_task(context, block, [](ArgumentReader& in) {
    const auto self = in.read<at::Tensor>(), mat2 = in.read<at::Tensor>();
    const auto offs = in.read<std::optional<at::Tensor>>();
    const at::Tensor out = in.read_output();
    at::native::_grouped_mm_fallback(self, mat2, offs, std::nullopt, out.scalar_type(), out);
  });
}

constexpr TaskInfo kGroupedMm = make_task("aten::_grouped_mm", run_grouped_mm, kCubeEngine);

at::Tensor grouped_mm(const at::Tensor& self, const at::Tensor& mat2, const std::optional<at::Tensor>& offs,
                      const std::optional<at::Tensor>& bias, std::optional<at::ScalarType> out_dtype) {
  check_same_device("_grouped_mm", {{"self", self}, {"mat2", mat2}, {"offs", offs}});
  at::native::_grouped_mm_validate_inputs(self, mat2, offs, bias, out_dtype);
  const at::ScalarType dtype = at::native::_resolve_grouped_mm_out_dtype(self, mat2, out_dtype);
  at::Tensor out = at::native::create_grouped_gemm_output_tensor(self, mat2, offs, dtype);
  if (out.numel() == 0) return out;
  ArgumentWriter arguments(kNames);
  arguments.write(self);
  arguments.write(mat2);
  arguments.write(offs);
  arguments.write_output(out);
  arguments.launch(kGroupedMm);
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_grouped_mm", counted<op::_grouped_mm, Route::kLibrary, grouped_mm>);
}

}  // namespace
}  // namespace npu::aten
