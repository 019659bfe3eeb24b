// An npu device from C++: a copy on one stream, computation on another, an event between them, and one backward.
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/core/StreamGuard.h>
#include <torch/torch.h>

#include <iostream>

int main() {
  const c10::Device device("npu");
  const c10::impl::VirtualGuardImpl npu(device.type());

  const torch::Tensor host = torch::arange(12, torch::kFloat).reshape({3, 4});
  const c10::Stream copies = npu.getNewStream(npu.getDevice());
  c10::Event arrived(device.type());

  torch::Tensor input;
  {
    const c10::StreamGuard guard(copies);
    input = host.pin_memory().to(device, /*non_blocking=*/true);
    arrived.record(copies);
  }

  const c10::Stream compute = npu.getStream(npu.getDevice());
  arrived.block(compute);  // the device waits, the host does not
  npu.recordDataPtrOnStream(input.storage().data_ptr(), compute);
  const torch::Tensor weight = torch::ones({4, 2}, device).requires_grad_();
  const torch::Tensor loss = input.mm(weight).square().mean();
  loss.backward();

  const torch::Tensor expected_weight = torch::ones({4, 2}).requires_grad_();
  const torch::Tensor expected_loss = host.mm(expected_weight).square().mean();
  expected_loss.backward();

  std::cout << "loss " << loss.item<float>() << " on " << loss.device() << ", two streams: " << (copies != compute)
            << "\n";
  const bool same =
      torch::allclose(loss.cpu(), expected_loss) && torch::allclose(weight.grad().cpu(), expected_weight.grad());
  std::cout << (same ? "equal to the CPU" : "different from the CPU") << std::endl;
  return same ? 0 : 1;
}
