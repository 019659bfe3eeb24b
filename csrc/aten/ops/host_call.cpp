#include "aten/ops/host_call.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/TensorBody.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/Storage.h>

#include <optional>
#include <vector>

#include "aten/bridge/errors.h"
#include "aten/bridge/stream.h"
#include "aten/bridge/sync_debug_mode.h"
#include "aten/ops/environment.h"
#include "aten/ops/library.h"
#include "aten/ops/members.h"
#include "runtime/driver/driver.h"

namespace npu::aten {
namespace {

std::optional<c10::Device> device_in(c10::Device device) {
  if (!device.is_privateuseone()) return std::nullopt;
  return c10::Device(c10::kPrivateUse1, device.has_index() ? device.index() : current_device());
}

std::optional<c10::Device> device_in(const at::Tensor& tensor) {
  return tensor.defined() ? device_in(tensor.device()) : std::nullopt;
}

std::optional<c10::Device> device_in(const c10::IValue& value) {
  if (value.isTensor()) return device_in(value.toTensor());
  if (value.isDevice()) return device_in(value.toDevice());
  if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector())
      if (const auto device = device_in(tensor)) return device;
  } else if (value.isOptionalTensorList()) {
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector())
      if (const auto device = tensor ? device_in(*tensor) : std::nullopt) return device;
  }
  return std::nullopt;
}

class HostCall {
 public:
  HostCall(const c10::OperatorHandle& op, const char* cause) : op_(op), cause_(cause) {}

  void run(torch::jit::Stack& stack) {
    const c10::FunctionSchema& schema = op_.schema();
    const size_t first = stack.size() - schema.arguments().size();
    device_ = npu_device_of(op_, stack);
    if (device_) wait_for(device_->index());
    for (size_t i = first; i < stack.size(); ++i) stack[i] = to_host(stack[i], schema.arguments()[i - first]);
    call(stack);
    for (const Pair& pair : pairs_) write_back(pair);
    for (const auto& [device, host] : written_) become(device, members_to_device(host));
    for (size_t i = stack.size() - schema.returns().size(); i < stack.size(); ++i) stack[i] = to_device(stack[i]);
  }

 private:
  struct Pair {
    at::Tensor device;
    at::Tensor host;
    const void* data;  // of the alias before the call
  };
  struct SharedStorage {
    c10::Storage device;
    c10::Storage host;
    const void* data;  // of `host` before the call: a kernel that needs more moves it
  };

  void wait_for(c10::DeviceIndex device) const {
    const SynchronizingCall call(cause_);
    translate_errors([device] { current_stream(device).synchronize(); });
  }

  void call(torch::jit::Stack& stack) {
    const ThreadWidth width(library_threads());  // as results must not depend on the caller's torch.set_num_threads
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    op_.callBoxed(&stack);
  }

  c10::IValue to_host(const c10::IValue& value, const c10::Argument& argument) {
    if (value.isTensor()) return to_host(value.toTensor(), argument);
    if (value.isTensorList()) {
      c10::List<at::Tensor> tensors;
      for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(to_host(tensor, argument));
      return tensors;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> tensors;
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector())
        tensors.push_back(tensor ? std::optional<at::Tensor>(to_host(*tensor, argument)) : std::nullopt);
      return tensors;
    }
    if (value.isDevice() && value.toDevice().is_privateuseone()) return c10::Device(at::kCPU);
    if (value.isGenerator() && value.toGenerator().device().is_privateuseone())
      return host_generator(value.toGenerator());
    return value;
  }

  // A CPU generator that continues from the device's sequence, so that results follow the device's seed.
  static at::Generator host_generator(at::Generator generator) {
    const std::lock_guard lock(generator.mutex());
    const uint64_t offset = generator.get_offset();
    generator.set_offset(offset + 1);
    return at::detail::createCPUGenerator(generator.current_seed() + 0x9e3779b97f4a7c15 * (offset + 1));
  }

  at::Tensor to_host(const at::Tensor& tensor, const c10::Argument& argument) {
    if (!tensor.defined()) return tensor;
    if (tensor.device().is_cpu() && (tensor.dim() == 0 || !device_)) return tensor;
    TORCH_CHECK(tensor.device() == *device_,
                "Expected all tensors to be on the same device, but found at least two devices, ", *device_, " and ",
                tensor.device(), "! (checking argument ", argument.name(), " of ", op_.operator_name(), ")");
    at::Tensor host = has_members(tensor) ? whole_to_host(tensor) : dense_to_host(tensor);
    // Kernels ask it: some save what only their derivative needs.
    if (tensor.requires_grad()) host.unsafeGetTensorImpl()->set_requires_grad(true);
    if (!has_members(tensor)) return host;
    if (argument.alias_info() && argument.alias_info()->isWrite()) written_.emplace_back(tensor, host);
    return host;
  }

  at::Tensor whole_to_host(const at::Tensor& tensor) {
    for (const auto& [device, host] : wholes_)
      if (device.is_same(tensor)) return host;
    at::Tensor host = with_members(
        tensor, [this](const at::Tensor& member) { return member.device().is_cpu() ? member : dense_to_host(member); });
    wholes_.emplace_back(tensor, host);
    return host;
  }

  at::Tensor dense_to_host(const at::Tensor& tensor) {
    for (const Pair& pair : pairs_)
      if (pair.device.is_same(tensor)) return pair.host;
    pairs_.push_back({tensor, alias(tensor), nullptr});
    pairs_.back().data = pairs_.back().host.const_data_ptr();
    return pairs_.back().host;
  }

  // Tensors of one storage get aliases of one storage, so that kernels see their overlap. The storage can grow: a kernel
  // that resizes an output moves it to memory of its own.
  at::Tensor alias(const at::Tensor& tensor) {
    at::Tensor host = at::detail::make_tensor<c10::TensorImpl>(
        c10::Storage(host_storage(tensor.storage())), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
    host.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
    host._set_conj(tensor.is_conj());
    host._set_neg(tensor.is_neg());
    return host;
  }

  c10::Storage host_storage(const c10::Storage& storage) {
    for (const SharedStorage& shared : storages_)
      if (shared.device.is_alias_of(storage)) return shared.host;
    void* address =
        storage.nbytes() == 0 ? nullptr : translate_errors([&] { return driver().translate(storage.data()); });
    c10::Storage host(c10::Storage::use_byte_size_t(), storage.nbytes(), at::DataPtr(address, c10::Device(at::kCPU)),
                      c10::GetCPUAllocator(), /*resizable=*/true);
    storages_.push_back({storage, host, address});
    return host;
  }

  // Elements from the first to the last of `tensor` in memory.
  static int64_t extent(const at::Tensor& tensor) {
    return static_cast<int64_t>(at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), 1));
  }

  // A kernel may have given the alias other sizes, and for more elements, other memory.
  static void write_back(const Pair& pair) {
    const bool moved = pair.host.const_data_ptr() != pair.data;
    const bool reshaped = pair.host.sizes() != pair.device.sizes() || pair.host.strides() != pair.device.strides();
    if (!moved && !reshaped) return;
    c10::TensorImpl& device = *pair.device.unsafeGetTensorImpl();
    if (!moved) {
      device.set_sizes_and_strides(pair.host.sizes(), pair.host.strides(), pair.host.storage_offset());
      return;
    }
    pair.device.resize_({extent(pair.host)});
    device.set_sizes_and_strides(pair.host.sizes(), pair.host.strides());
    pair.device.copy_(pair.host, /*non_blocking=*/true);
  }

  c10::IValue to_device(const c10::IValue& value) {
    if (value.isTensor()) return to_device(value.toTensor());
    if (value.isTensorList()) {
      c10::List<at::Tensor> tensors;
      for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(to_device(tensor));
      return tensors;
    }
    return value;
  }

  at::Tensor to_device(const at::Tensor& host) {
    if (!host.defined() || !device_) return host;
    for (const Pair& pair : pairs_)
      if (pair.host.is_same(host)) return pair.device;
    for (const auto& [device, alias] : wholes_)
      if (alias.is_same(host)) return device;
    if (has_members(host)) return members_to_device(host);
    TORCH_CHECK_NOT_IMPLEMENTED(host.layout() == at::kStrided, op_.operator_name(), " has a result of layout ",
                                host.layout(), ", which npu tensors cannot have");
    for (const SharedStorage& shared : storages_)
      if (shared.host.is_alias_of(host.storage()) && shared.host.data() == shared.data)
        return view(shared.device, host);
    at::Tensor result = allocate(host.sizes(), host.strides(), host.options().device(*device_));
    result.copy_(host, /*non_blocking=*/true);  // in order on the stream, as what uses it is
    return result;
  }

  at::Tensor members_to_device(const at::Tensor& host) {
    return with_members(host, [this](const at::Tensor& member) { return to_device(member); });
  }

  static at::Tensor view(const c10::Storage& storage, const at::Tensor& host) {
    at::Tensor result = at::detail::make_tensor<c10::TensorImpl>(
        c10::Storage(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), host.dtype());
    result.unsafeGetTensorImpl()->set_sizes_and_strides(host.sizes(), host.strides(), host.storage_offset());
    result._set_conj(host.is_conj());
    result._set_neg(host.is_neg());
    return result;
  }

  const c10::OperatorHandle& op_;
  const char* const cause_;
  std::optional<c10::Device> device_;
  std::vector<Pair> pairs_;
  std::vector<SharedStorage> storages_;
  std::vector<std::pair<at::Tensor, at::Tensor>> wholes_;   // device, host: tensors with members
  std::vector<std::pair<at::Tensor, at::Tensor>> written_;  // those of them that the operator writes
};

}  // namespace

std::optional<c10::Device> npu_device_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  for (const c10::IValue& value : torch::jit::last(stack, op.schema().arguments().size()))
    if (const auto device = device_in(value)) return device;
  return std::nullopt;
}

void call_on_host(const c10::OperatorHandle& op, torch::jit::Stack* stack, const char* cause) {
  HostCall(op, cause).run(*stack);
}

}  // namespace npu::aten
