"""Operators in C++ on npu: compiled and loaded, with fake kernels and derivatives. Run it to see them."""

from pathlib import Path

import torch

from torch_npu_lite import cpp_extension, npu

HERE = Path(__file__).parent

cpp_extension.load(
    name="custom_operator",
    sources=[str(HERE / "swish.cpp"), str(HERE / "row_norms.cpp")],
    extra_cflags=["-O2"],
    is_python_module=False,
)


@torch.library.register_fake("example::swish")
def fake_swish(x: torch.Tensor, beta: float = 1.0) -> torch.Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


@torch.library.register_fake("example::swish_backward")
def fake_swish_backward(grad: torch.Tensor, x: torch.Tensor, beta: float) -> torch.Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def keep_inputs(ctx, inputs, output):
    x, ctx.beta = inputs
    ctx.save_for_backward(x)


def swish_gradient(ctx, grad):
    (x,) = ctx.saved_tensors
    return torch.ops.example.swish_backward(grad, x, ctx.beta), None


torch.library.register_autograd("example::swish", swish_gradient, setup_context=keep_inputs)


def main() -> None:
    x = torch.randn(1000, 64, device="npu", requires_grad=True)
    npu.op_report(reset=True)
    with npu.record_op_times():
        y = torch.ops.example.swish(x, 1.5)
        norms = torch.ops.example.row_norms(y)
        (gradient,) = torch.autograd.grad(norms.sum(), x)
        npu.synchronize()
    print(npu.op_report(sort="run", limit=4))
    print(f"norms {tuple(norms.shape)} on {norms.device}, gradient {tuple(gradient.shape)}")
    expected = torch.ops.example.swish(x.detach().cpu(), 1.5)
    print("as on the CPU:", torch.equal(y.detach().cpu(), expected))


if __name__ == "__main__":
    main()
