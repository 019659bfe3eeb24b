"""Random operators: reproducible by seed, whatever runs when; right distributions, and the argument checks of CPU."""

import math

import pytest
import torch
from torch._vmap_internals import _vmap

from torch_npu_lite.testing import Gate

N = 100_000


def empty(dtype=torch.float32):
    return torch.empty(N, dtype=dtype, device="npu")


DRAWS = {
    "uniform_": lambda: empty().uniform_(2, 5),
    "normal_": lambda: empty().normal_(1, 2),
    "log_normal_": lambda: empty().log_normal_(0, 0.5),
    "exponential_": lambda: empty().exponential_(3),
    "cauchy_": lambda: empty().cauchy_(),
    "geometric_": lambda: empty().geometric_(0.3),
    "bernoulli_": lambda: empty().bernoulli_(0.3),
    "bernoulli_tensor": lambda: empty().bernoulli_(torch.full((N,), 0.3, device="npu")),
    "bernoulli": lambda: torch.bernoulli(torch.full((N,), 0.3, device="npu")),
    "random_": lambda: empty(torch.int64).random_(),
    "random_to": lambda: empty(torch.int32).random_(10),
    "random_from": lambda: empty(torch.int64).random_(-5, 6),
    "random_full": lambda: empty(torch.int64).random_(-(1 << 63), None),
    "rand": lambda: torch.rand(N, device="npu"),
    "randn": lambda: torch.randn(N, dtype=torch.float64, device="npu"),
    "randn_complex": lambda: torch.randn(N, dtype=torch.complex64, device="npu"),
    "randn_half": lambda: torch.randn(N, dtype=torch.bfloat16, device="npu"),
    "randint": lambda: torch.randint(3, 9, (N,), device="npu"),
    "randperm": lambda: torch.randperm(1000, device="npu"),
    "normal_tensors": lambda: torch.normal(torch.zeros(N, device="npu"), torch.ones(N, device="npu")),
    "normal_mean": lambda: torch.normal(torch.zeros(N, device="npu"), 2.0),
    "normal_std": lambda: torch.normal(1.0, torch.ones(N, device="npu")),
    "dropout": lambda: torch.nn.functional.dropout(torch.ones(N, device="npu"), 0.3),
    "dropout2d": lambda: torch.nn.functional.dropout2d(torch.ones(100, 10, 2, 2, device="npu"), 0.3),
    "alpha_dropout": lambda: torch.nn.functional.alpha_dropout(torch.ones(N, device="npu"), 0.3, training=True),
    "rrelu": lambda: torch.nn.functional.rrelu(-torch.ones(N, device="npu"), training=True),
    "poisson": lambda: torch.poisson(torch.full((N,), 4.0, device="npu")),
    "binomial": lambda: torch.binomial(torch.full((N,), 10.0, device="npu"), torch.full((N,), 0.3, device="npu")),
    "gamma": lambda: torch._standard_gamma(torch.full((N,), 2.0, device="npu")),
    "dirichlet": lambda: torch._sample_dirichlet(torch.ones(100, 5, device="npu")),
    "multinomial": lambda: torch.multinomial(torch.tensor([1.0, 2.0, 3.0], device="npu"), N, replacement=True),
    "multinomial_once": lambda: torch.multinomial(torch.ones(5, 20, device="npu"), 7),
}


@pytest.mark.parametrize("name", DRAWS)
def test_seed_decides_the_numbers(name):
    torch.manual_seed(11)
    first, second = DRAWS[name](), DRAWS[name]()
    torch.manual_seed(11)
    assert torch.equal(DRAWS[name]().cpu(), first.cpu())
    assert not torch.equal(first.cpu(), second.cpu())
    torch.manual_seed(12)
    assert not torch.equal(DRAWS[name]().cpu(), first.cpu())


@pytest.mark.parametrize("name", [n for n in DRAWS if not n.startswith("multinomial")])
def test_no_draw_waits_or_falls_back(name):
    DRAWS[name]()
    torch.npu.op_stats(reset=True)
    with Gate():
        DRAWS[name]()
    assert all(c["host_waits"] == c["fallback"] == 0 for c in torch.npu.op_stats().values())


def test_order_of_submission_decides_not_of_execution():
    first, second = torch.npu.Stream(), torch.npu.Stream()
    torch.manual_seed(1)
    expected = [torch.rand(100, device="npu").cpu() for _ in range(2)]
    torch.manual_seed(1)
    gate = Gate(first)
    with torch.npu.stream(first):
        a = torch.rand(100, device="npu")
    with torch.npu.stream(second):
        b = torch.rand(100, device="npu")
    second.synchronize()
    gate.open()
    torch.npu.synchronize()
    assert torch.equal(a.cpu(), expected[0]) and torch.equal(b.cpu(), expected[1])


def moments(x):
    x = x.double().cpu()
    return x.mean().item(), x.std().item()


@pytest.mark.parametrize(
    "name, mean, std",
    [
        ("uniform_", 3.5, 3 / math.sqrt(12)),
        ("normal_", 1, 2),
        ("exponential_", 1 / 3, 1 / 3),
        ("geometric_", 1 / 0.3, math.sqrt(0.7) / 0.3),
        ("bernoulli_", 0.3, math.sqrt(0.21)),
        ("bernoulli_tensor", 0.3, math.sqrt(0.21)),
        ("bernoulli", 0.3, math.sqrt(0.21)),
        ("random_to", 4.5, math.sqrt(99 / 12)),
        ("random_from", 0, math.sqrt(120 / 12)),
        ("randn", 0, 1),
        ("randn_half", 0, 1),
        ("randint", 5.5, math.sqrt(35 / 12)),
        ("normal_tensors", 0, 1),
        ("normal_mean", 0, 2),
        ("normal_std", 1, 1),
        ("dropout", 1, math.sqrt(0.3 / 0.7)),
        ("poisson", 4, 2),
        ("binomial", 3, math.sqrt(2.1)),
        ("gamma", 2, math.sqrt(2)),
        ("multinomial", 4 / 3, math.sqrt(5 / 9)),
    ],
)
def test_moments(name, mean, std):
    torch.manual_seed(0)
    actual_mean, actual_std = moments(DRAWS[name]())
    assert actual_mean == pytest.approx(mean, abs=6 * std / math.sqrt(N))
    assert actual_std == pytest.approx(std, rel=0.03)


def test_strided_outputs():
    torch.manual_seed(1)
    x = torch.zeros(100, 4, device="npu")
    x[:, ::2].uniform_()
    assert (x[:, 1::2] == 0).all() and (x[:, ::2] > 0).float().mean().item() > 0.99


def test_randperm_is_a_permutation():
    assert torch.equal(torch.randperm(5000, device="npu").sort().values.cpu(), torch.arange(5000))
    assert torch.randperm(0, device="npu").numel() == 0


def test_multinomial_without_replacement_repeats_nothing():
    rows = torch.multinomial(torch.ones(50, 20, device="npu"), 20).sort(dim=1).values
    assert torch.equal(rows.cpu(), torch.arange(20).expand(50, 20))


@pytest.mark.parametrize(
    ("weights", "count", "words"),
    [
        ([-1.0, 2.0], 1, "probability tensor contains"),
        ([-1.0, 0.0], 1, "probability tensor contains"),  # and the sum is not positive either
        ([float("nan"), 1.0], 1, "probability tensor contains"),
        ([0.0, 0.0], 1, "sum of probabilities <= 0"),
        ([-1.0, float("inf")], 2, "encountering probability entry < 0"),
        ([1.0, float("inf")], 2, "encountering probability entry = infinity or NaN"),
        ([0.0, 0.0], 2, "sum of probabilities <= 0"),
    ],
)
def test_bad_distribution_of_multinomial_is_one_error_of_the_device(weights, count, words):
    torch.multinomial(torch.tensor(weights, device="npu"), count, replacement=True)
    with pytest.raises(torch.AcceleratorError, match=words):
        torch.npu.synchronize()
    torch.npu.synchronize()


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: torch.bernoulli(x, out=torch.empty(3)),
        lambda x: torch.multinomial(x, 1, out=torch.empty(1, dtype=torch.int64)),
        lambda x: torch.normal(x, 1.0, out=torch.empty(3)),
        lambda x: torch.normal(0.0, x, out=torch.empty(3)),
        lambda x: torch.normal(x, torch.ones(3, device="npu"), out=torch.empty(3)),
        lambda x: torch.binomial(x, torch.ones(3)),
    ],
)
def test_tensors_of_two_devices_are_refused(draw):
    with pytest.raises(RuntimeError, match="on the same device"):
        draw(torch.full((3,), 0.5, device="npu"))


@pytest.mark.parametrize(
    "call, part",
    [
        (lambda x: x.uniform_(3, 2), "uniform_"),
        (lambda x: x.normal_(0, -1), "normal"),
        (lambda x: x.exponential_(-1), "exponential_"),
        (lambda x: x.geometric_(1.5), "geometric_"),
        (lambda x: x.bernoulli_(2), "bernoulli_"),
        (lambda x: x.random_(5, 5), "random_"),
        (lambda x: x.uniform_(generator=torch.Generator()), "generator"),
    ],
)
def test_bad_arguments_are_refused_at_the_call(call, part):
    with pytest.raises(RuntimeError, match=part):
        call(torch.empty(3, device="npu"))


def test_dropout_backward_uses_the_mask():
    x = torch.ones(1000, device="npu", requires_grad=True)
    y = torch.nn.functional.dropout(x, 0.4)
    y.sum().backward()
    assert torch.equal(x.grad.cpu(), y.detach().cpu())
    assert torch.nn.functional.dropout(x, 0.4, training=False) is x
    assert torch.nn.functional.dropout(x, 1.0).sum().item() == 0


def test_rrelu_draws_under_vmap_as_on_the_cpu():
    x = torch.linspace(-1, 1, 12, dtype=torch.float64, device="npu").view(3, 4)
    result = _vmap(lambda row: torch.nn.functional.rrelu(row, 0.25, 0.5, training=True))(x)
    slopes = (result / x)[x < 0]
    assert torch.equal(result[x > 0], x[x > 0]) and ((slopes >= 0.25) & (slopes <= 0.5)).all()
