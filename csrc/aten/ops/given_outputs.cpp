#include "aten/ops/given_outputs.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <c10/util/Exception.h>

#include <cstring>
#include <optional>
#include <utility>

namespace npu::aten {
namespace {

// CPU tensors in place of npu tensors. A tensor that is given twice stays one.
class StandIns {
 public:
  explicit StandIns(StandIn kind) : kind_(kind) {}

  c10::IValue of(const c10::IValue& value) {
    if (value.isTensor()) return of(value.toTensor());
    if (value.isTensorList()) {
      c10::List<at::Tensor> tensors;
      for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(of(tensor));
      return tensors;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> tensors;
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector())
        tensors.push_back(tensor ? std::optional<at::Tensor>(of(*tensor)) : std::nullopt);
      return tensors;
    }
    return value;
  }

 private:
  at::Tensor of(const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.is_privateuseone()) return tensor;
    for (const auto& [device, host] : pairs_)
      if (device.is_same(tensor)) return host;
    at::Tensor host = at::detail::empty_strided_cpu(tensor.sizes(), tensor.strides(), tensor.scalar_type());
    std::memset(host.mutable_data_ptr(), 0, host.storage().nbytes());
    if (kind_ == StandIn::kOnes) whole(host).fill_(1);
    if (kind_ == StandIn::kUnitMatrices && at::has_internal_overlap(host) != at::MemOverlap::Yes) fill(host);
    host._set_conj(tensor.is_conj());
    host._set_neg(tensor.is_neg());
    pairs_.emplace_back(tensor, host);
    return host;
  }

  // All elements in memory, each once, however the tensor lies.
  static at::Tensor whole(const at::Tensor& host) {
    return host.as_strided({static_cast<int64_t>(host.storage().nbytes() / host.itemsize())}, {1}, 0);
  }

  // LAPACK counts pivots from 1 and trusts them, and finds the unit matrix as regular as can be.
  static void fill(const at::Tensor& host) {
    if (host.scalar_type() == at::kInt) host.fill_(1);
    if (host.dim() >= 2 && !at::isIntegralType(host.scalar_type(), /*includeBool=*/true))
      host.diagonal(0, -2, -1).fill_(1);
  }

  const StandIn kind_;
  std::vector<std::pair<at::Tensor, at::Tensor>> pairs_;  // device, host
};

}  // namespace

std::vector<at::Tensor> try_on_host(const char* name, const char* overload, StandIn stand_in, size_t outputs,
                                    const torch::jit::Stack& stack) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  StandIns stand_ins(stand_in);
  torch::jit::Stack arguments;
  for (const c10::IValue& value : stack) arguments.push_back(stand_ins.of(value));
  std::vector<at::Tensor> given;
  for (size_t i = arguments.size() - outputs; i < arguments.size(); ++i) given.push_back(arguments[i].toTensor());
  try {
    c10::Dispatcher::singleton().findSchemaOrThrow(name, overload).callBoxed(&arguments);
  } catch (const c10::LinAlgError&) {
    return {};
  }
  return given;
}

}  // namespace npu::aten
