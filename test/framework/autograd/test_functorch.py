"""torch.func and forward-mode derivatives as programs use them; opinfo/test_transforms.py runs every operator."""

from __future__ import annotations

import pytest
import torch
from on_both import assert_like_cpu, assert_refused_like_cpu
from torch import nn
from torch.autograd import forward_ad
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, linearize, stack_module_state, vjp, vmap


def model(device: str) -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.GELU(), nn.Flatten(), nn.Linear(144, 3)).to(device)


def batch(device: str) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(5, 1, 8, 8).to(device), torch.tensor([0, 2, 1, 1, 0], device=device)


def loss_of_sample(parameters, module, x, target):
    output = functional_call(module, parameters, (x[None],))
    return nn.functional.cross_entropy(output, target[None])


def gradients_of_samples(device):
    module, (x, target) = model(device), batch(device)
    parameters = {name: parameter.detach() for name, parameter in module.named_parameters()}
    together = vmap(grad(loss_of_sample), in_dims=(None, None, 0, 0))(parameters, module, x, target)
    for name, gradient in grad(loss_of_sample)(parameters, module, x[3], target[3]).items():
        torch.testing.assert_close(together[name][3], gradient, rtol=1e-4, atol=1e-5)
    return together


def ensemble(device):
    modules = [model(device) for _ in range(3)]
    parameters, buffers = stack_module_state(modules)

    def call(parameters, buffers, x):
        return functional_call(modules[0], (parameters, buffers), (x,))

    x, _ = batch(device)
    together = vmap(call, in_dims=(0, 0, None))(parameters, buffers, x)
    torch.testing.assert_close(together, torch.stack([module(x) for module in modules]), rtol=1e-4, atol=1e-5)
    return together


def curvature(device):
    x, w = torch.randn(3, 4).to(device), torch.randn(4).to(device)

    def loss(w):
        return (torch.tanh(x @ w) ** 2).sum()

    direction = torch.ones_like(w)
    product = jvp(grad(loss), (w,), (direction,))[1]
    torch.testing.assert_close(hessian(loss)(w) @ direction, product)
    torch.testing.assert_close(jacrev(grad(loss))(w), jacfwd(grad(loss))(w))
    value, apply = linearize(loss, w)
    return product, hessian(loss)(w), value, apply(direction), vjp(loss, w)[1](torch.ones((), device=device))


def vmap_of_everything(device):
    x = torch.randn(4, 3, 5).to(device)
    pairs = vmap(vmap(torch.dot))(x, x)
    moved = vmap(lambda x: {"sum": x.sum(0), "max": x.max(-1)}, in_dims=1, out_dims=-1)(x)
    chunks = vmap(lambda x: x.softmax(-1), chunk_size=3)(x)
    index = torch.tensor([1, 0, 2, 1], device=device)
    picked = vmap(lambda x, i: x.index_select(0, i[None]).squeeze(0))(x, index)
    return pairs, moved, chunks, picked


def dual_numbers(device):
    x, tangent = torch.randn(4, 4).to(device), torch.ones(4, 4, device=device)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, tangent)
        with torch.no_grad():
            hidden = forward_ad.unpack_dual(dual * 2)
        with forward_ad._set_fwd_grad_enabled(False):
            off = forward_ad.unpack_dual(dual * 2)
        result = forward_ad.unpack_dual((dual @ dual.t()).logsumexp(0))
        view = forward_ad.unpack_dual(dual[1:].t())
        dual.mul_(3)
        changed = forward_ad.unpack_dual(dual)
    return result.primal, result.tangent, view.tangent, changed.tangent, hidden.tangent, off.tangent


def forward_over_reverse_of_a_module(device):
    module = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1)).to(device)
    x = torch.randn(2, 4).to(device)
    directions = {name: torch.ones_like(p) for name, p in module.named_parameters()}
    with forward_ad.dual_level():
        duals = {name: forward_ad.make_dual(p, directions[name]) for name, p in module.named_parameters()}
        loss = functional_call(module, duals, (x,)).square().sum()
        gradients = torch.autograd.grad(loss, list(module.parameters()), create_graph=True)
        return [forward_ad.unpack_dual(gradient).tangent for gradient in gradients]


PROGRAMS = (
    gradients_of_samples, ensemble, curvature, vmap_of_everything, dual_numbers, forward_over_reverse_of_a_module,
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_program_gives_the_cpu_s_results(program):
    assert_like_cpu(program, rtol=1e-4, atol=1e-5)


def test_nothing_falls_back():
    torch.npu.op_stats(reset=True)
    for program in PROGRAMS:
        program("npu")
    assert [name for name, counts in torch.npu.op_stats().items() if counts["fallback"]] == []


# --- random numbers inside vmap

DRAWS = {
    "dropout": lambda x: nn.functional.dropout(x, 0.5),
    "randn_like": torch.randn_like,
    "rand": lambda x: torch.rand(100, device=x.device),
    "bernoulli": lambda x: torch.full((100,), 0.5, device=x.device).bernoulli(),
    "uniform_": lambda x: torch.empty_like(x).uniform_(),
    "randperm": lambda x: torch.randperm(100, device=x.device),
    "multinomial": lambda x: torch.ones(100, device=x.device).multinomial(50, replacement=True),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_random_numbers_of_a_batch_are_the_same_or_different(draw):
    x = torch.ones(3, 100, device="npu")
    for randomness in ("same", "different"):
        torch.manual_seed(1)
        rows = vmap(draw, randomness=randomness)(x)
        torch.manual_seed(1)
        assert torch.equal(rows, vmap(draw, randomness=randomness)(x))
        assert torch.equal(rows[0], rows[1]) is (randomness == "same")
    assert_refused_like_cpu(lambda device: vmap(draw)(torch.ones(3, 100, device=device)))


def test_gradients_of_samples_through_dropout_follow_their_masks():
    def kept(x):
        y = nn.functional.dropout(x, 0.5)
        return y.sum(), y.detach()

    gradients, masks = vmap(grad(kept, has_aux=True), randomness="different")(torch.ones(4, 100, device="npu"))
    assert torch.equal(gradients, masks) and not torch.equal(masks[0], masks[1])


@pytest.mark.parametrize(
    "misuse",
    [
        lambda x: vmap(lambda x: x.item())(x),
        lambda x: vmap(torch.dot)(x, x[:2]),
        lambda x: vmap(torch.sin, in_dims=5)(x),
        lambda x: vmap(lambda x: x[x > 0])(x),
        lambda x: grad(torch.sin)(x),
        lambda x: jvp(torch.sin, (x,), (x[0],)),
        lambda x: vmap(lambda y: x.add_(y))(x),
    ],
    ids=["item", "sizes", "dimension", "mask", "not a scalar", "tangent", "captured in place"],
)
def test_misuse_is_refused_in_the_words_of_the_cpu(misuse):
    assert_refused_like_cpu(lambda device: misuse(torch.ones(3, 4, device=device)))
