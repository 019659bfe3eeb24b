// ldexp of floating numbers by integers: PyTorch's CPU kernel, which scales exactly, where its composite for other devices
// multiplies by a power of two, and that overflows before the product does.
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ldexp_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/ldexp_native.h>
#include <ATen/TensorIterator.h>
#include <torch/library.h>

#include "aten/ops/counted.h"
#include "aten/ops/library.h"

namespace npu::aten {
namespace {

constexpr ArgumentName kNames[] = {{"self"}, {"other"}, {"out", Operand::Access::kWrite}};

void run_ldexp(const TaskContext& context, const void* block) {
  run_library_task(context, block, [](ArgumentReader& in) {
    const auto self = in.read<at::Tensor>(), other = in.read<at::Tensor>();
    at::Tensor out = in.read_output();
    at::compositeexplicitautograd::ldexp_outf(self, other, out);
  });
}

constexpr TaskInfo kLdexp = make_task("aten::ldexp.out", run_ldexp, kVectorEngine);

bool scales(const at::Tensor& self, const at::Tensor& other) {
  return at::isFloatingType(self.scalar_type()) && at::isIntegralType(other.scalar_type(), /*includeBool=*/true);
}

at::Tensor& ldexp_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  const bool casts = out.scalar_type() != self.scalar_type();  // the kernel does not
  if (casts || !scales(self, other)) return at::native::ldexp_out(self, other, out);
  at::TensorIteratorConfig()
      .add_output(out)
      .add_const_input(self)
      .add_const_input(other)
      .check_all_same_dtype(false)
      .allow_cpu_scalars(true)
      .build();
  ArgumentWriter arguments(kNames, HostTensors::kCopyValue);
  arguments.write(self);
  arguments.write(other);
  arguments.write_output(out);
  arguments.launch(kLdexp);
  return out;
}

at::Tensor ldexp(const at::Tensor& self, const at::Tensor& other) {
  if (!scales(self, other)) return at::native::ldexp(self, other);
  at::Tensor out = at::empty_like(self);
  return ldexp_out(self, other, out);
}

at::Tensor& ldexp_(at::Tensor& self, const at::Tensor& other) { return ldexp_out(self, other, self); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("ldexp.Tensor", counted<op::ldexp_Tensor, Route::kLibrary, ldexp>);
  m.impl("ldexp.out", counted<op::ldexp_out, Route::kLibrary, ldexp_out>);
  m.impl("ldexp_", counted<op::ldexp_, Route::kLibrary, ldexp_>);
}

}  // namespace
}  // namespace npu::aten
