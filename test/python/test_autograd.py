"""Autograd on npu tensors: gradients equal CPU's, on the right threads and devices."""

import threading

import torch
from torch.utils.checkpoint import checkpoint


def both(function, *shapes):
    """Results and gradients of `function` on CPU and npu, for equal inputs."""
    torch.manual_seed(0)
    inputs = [torch.randn(shape) for shape in shapes]
    results = []
    for device in ("cpu", "npu"):
        leaves = [x.to(device).detach().requires_grad_() for x in inputs]
        y = function(*leaves)
        y.sum().backward()
        results.append([y.detach().cpu(), *(leaf.grad.cpu() for leaf in leaves)])
    return results


def test_gradients_equal_cpu():
    cpu, npu = both(lambda a, b: torch.tanh(a @ b) * a.sum(), (3, 4), (4, 5))
    torch.testing.assert_close(npu, cpu)


def test_gradient_flows_through_copies_between_devices():
    x = torch.ones(3, requires_grad=True)
    (x.npu() * 2).to("npu:1").add(1).cpu().sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_checkpoint_recomputes_with_the_same_random_numbers():
    x = torch.ones(1000, device="npu", requires_grad=True)
    masks = []

    def block(x):
        y = torch.nn.functional.dropout(x, 0.5)
        masks.append(y.detach().cpu())
        return y * y

    checkpoint(block, x, use_reentrant=False).sum().backward()
    assert len(masks) == 2 and torch.equal(masks[0], masks[1])


def test_custom_function():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    x = torch.ones(2, device="npu", requires_grad=True)
    Double.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_backward_of_several_threads():
    results = {}

    def train(index):
        x = torch.full((100,), float(index), device=f"npu:{index % 2}", requires_grad=True)
        (x * x).sum().backward()
        results[index] = x.grad.cpu().unique().tolist()

    threads = [threading.Thread(target=train, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {index: [2.0 * index] for index in range(8)}


def test_double_backward():
    x = torch.tensor(3.0, device="npu", requires_grad=True)
    (first,) = torch.autograd.grad(x**3, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    assert (first.item(), second.item()) == (27.0, 18.0)
