"""Random operators follow their distributions: Kolmogorov-Smirnov and chi-square tests over fixed seeds."""

from __future__ import annotations

import math

import pytest
import torch
from torch import distributions as D  # noqa: N812
from torch.nn import functional as F  # noqa: N812

N = 100_000


def full(value: float, count: int = N) -> torch.Tensor:
    return torch.full((count,), value, device="npu")


def empty(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(N, dtype=dtype, device="npu")


def gamma_cdf(shape: float):
    return lambda x: torch.special.gammainc(torch.tensor(shape, dtype=torch.float64), x)


# --- Continuous: the largest distance between the sample's and the true distribution function

CONTINUOUS = {
    "uniform_": (lambda: empty().uniform_(2, 5), D.Uniform(2.0, 5.0).cdf),
    "rand": (lambda: torch.rand(N, device="npu"), D.Uniform(0.0, 1.0).cdf),
    "rand_double": (lambda: torch.rand(N, dtype=torch.float64, device="npu"), D.Uniform(0.0, 1.0).cdf),
    "normal_": (lambda: empty().normal_(1, 2), D.Normal(1.0, 2.0).cdf),
    "randn_double": (lambda: torch.randn(N, dtype=torch.float64, device="npu"), D.Normal(0.0, 1.0).cdf),
    "randn_complex": (
        lambda: torch.view_as_real(torch.randn(N // 2, dtype=torch.complex64, device="npu")).flatten(),
        D.Normal(0.0, math.sqrt(0.5)).cdf,
    ),
    "normal_tensors": (lambda: torch.normal(full(1.0), full(2.0)), D.Normal(1.0, 2.0).cdf),
    "normal_mean": (lambda: torch.normal(full(1.0), 2.0), D.Normal(1.0, 2.0).cdf),
    "normal_std": (lambda: torch.normal(1.0, full(2.0)), D.Normal(1.0, 2.0).cdf),
    "log_normal_": (lambda: empty().log_normal_(0.5, 0.8), D.LogNormal(0.5, 0.8).cdf),
    "exponential_": (lambda: empty().exponential_(3), D.Exponential(3.0).cdf),
    "cauchy_": (lambda: empty().cauchy_(1, 2), D.Cauchy(1.0, 2.0).cdf),
    "gamma_small": (lambda: torch._standard_gamma(full(0.3)), gamma_cdf(0.3)),
    "gamma_one": (lambda: torch._standard_gamma(full(1.0)), gamma_cdf(1.0)),
    "gamma_large": (lambda: torch._standard_gamma(full(40.0)), gamma_cdf(40.0)),
    "dirichlet": (lambda: torch._sample_dirichlet(torch.ones(N, 5, device="npu"))[:, 2], lambda x: 1 - (1 - x) ** 4),
    "rrelu": (lambda: -F.rrelu(-torch.ones(N, device="npu"), 0.1, 0.6, training=True), D.Uniform(0.1, 0.6).cdf),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(name):
    draw, cdf = CONTINUOUS[name]
    torch.manual_seed(3)
    x = draw().double().cpu().sort().values
    steps = torch.arange(len(x) + 1, dtype=torch.float64) / len(x)
    expected = cdf(x)
    distance = torch.maximum((expected - steps[:-1]).abs(), (steps[1:] - expected).abs()).max().item()
    assert distance < 1.95 / math.sqrt(len(x))  # exceeded by one seed in a thousand


# --- Discrete: how often each value comes


def counts_fit(values: torch.Tensor, probabilities: torch.Tensor) -> bool:
    """Chi-square of values 0, 1, ..., where those too rare to test are one class, and what lies beyond the last too."""
    values, probabilities = values.long().cpu().flatten(), probabilities.double().flatten()
    expected = torch.cat([probabilities, 1 - probabilities.sum().clamp(max=1)[None]]) * len(values)
    seen = torch.bincount(values.clamp(max=len(probabilities)), minlength=len(expected)).double()
    common = expected >= 10
    rest = expected[~common].sum()
    statistic = ((seen - expected) ** 2 / expected)[common].sum()
    statistic += (seen[~common].sum() - rest) ** 2 / rest.clamp(min=1)
    freedom = int(common.sum())
    return statistic.item() < freedom + 4 * math.sqrt(2 * freedom) + 8  # exceeded by less than one seed in a thousand


def chances(distribution: D.Distribution, count: int) -> torch.Tensor:
    return distribution.log_prob(torch.arange(count, dtype=torch.float32)).exp()


def binomial(count: int, probability: float) -> tuple:
    return (
        lambda: torch.binomial(full(float(count)), full(probability)),
        chances(D.Binomial(count, torch.tensor(probability)), count + 1),
    )


def poisson(rate: float) -> tuple:
    return lambda: torch.poisson(full(rate)), chances(D.Poisson(rate), int(rate + 12 * math.sqrt(rate) + 12))


COIN = torch.tensor([0.7, 0.3])
DISCRETE = {
    "bernoulli_": (lambda: empty().bernoulli_(0.3), COIN),
    "bernoulli_integers": (lambda: empty(torch.int64).bernoulli_(0.3), COIN),
    "bernoulli_bool": (lambda: empty(torch.bool).bernoulli_(0.3), COIN),
    "bernoulli_tensor": (lambda: empty().bernoulli_(full(0.3)), COIN),
    "bernoulli": (lambda: torch.bernoulli(full(0.3)), COIN),
    "bernoulli_p": (lambda: torch.bernoulli(empty(), 0.3), COIN),
    "dropout": (lambda: F.dropout(torch.ones(N, device="npu"), 0.7) > 0, COIN),
    "native_dropout": (lambda: torch.native_dropout(torch.ones(N, device="npu"), 0.7, True)[1], COIN),
    "alpha_dropout": (lambda: F.alpha_dropout(torch.ones(N, device="npu"), 0.7, training=True) > 0, COIN),
    "feature_dropout": (lambda: F.dropout2d(torch.ones(N, 1, 1, 1, device="npu"), 0.7) > 0, COIN),
    "geometric_": (lambda: empty().geometric_(0.3), 0.3 * 0.7 ** (torch.arange(60) - 1.0) * (torch.arange(60) > 0)),
    "random_to": (lambda: empty(torch.int32).random_(7), torch.full((7,), 1 / 7)),
    "random_from": (lambda: empty(torch.int64).random_(-5, 6) + 5, torch.full((11,), 1 / 11)),
    "random_bytes": (lambda: empty(torch.uint8).random_(), torch.full((256,), 1 / 256)),
    "random_half": (lambda: empty(torch.float16).random_() // 64, torch.full((32,), 64 / 2049)),
    "random_long": (lambda: empty(torch.int64).random_() >> 58, torch.full((32,), 1 / 32)),
    "random_full": (
        lambda: (empty(torch.int64).random_(-(1 << 63), None) >> 59) + 16,
        torch.full((32,), 1 / 32),
    ),
    "randint": (lambda: torch.randint(3, 9, (N,), device="npu") - 3, torch.full((6,), 1 / 6)),
    "randint_like": (lambda: torch.randint_like(empty(), 5), torch.full((5,), 1 / 5)),
    "poisson_small": poisson(0.4),
    "poisson_medium": poisson(8.0),
    "poisson_large": poisson(150.0),
    "binomial_few": binomial(10, 0.3),
    "binomial_rare": binomial(200, 0.01),
    "binomial_many": binomial(200, 0.4),
    "binomial_likely": binomial(100, 0.9),
    "multinomial": (
        lambda: torch.multinomial(torch.tensor([1.0, 0.0, 3.0, 4.0], device="npu"), N, replacement=True),
        torch.tensor([1.0, 0.0, 3.0, 4.0]) / 8,
    ),
    "multinomial_rows": (
        lambda: torch.multinomial(torch.tensor([1.0, 0.0, 3.0, 4.0], device="npu").expand(N, 4), 1),
        torch.tensor([1.0, 0.0, 3.0, 4.0]) / 8,
    ),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions(name):
    draw, probabilities = DISCRETE[name]
    torch.manual_seed(5)
    assert counts_fit(draw(), probabilities)


def test_multinomial_without_replacement_draws_pairs_in_proportion():
    weights = torch.tensor([1.0, 2.0, 5.0])
    torch.manual_seed(1)
    pairs = torch.multinomial(weights.npu().expand(N, 3), 2).cpu()
    p = weights / weights.sum()
    expected = p[:, None] * p / (1 - p)[:, None]
    assert counts_fit(pairs[:, 0] * 3 + pairs[:, 1], expected.fill_diagonal_(0))


def test_randperm_puts_every_element_everywhere_equally_often():
    torch.manual_seed(2)
    orders = torch.stack([torch.randperm(12, device="npu") for _ in range(1500)]).cpu()
    for place in (0, 5, 11):
        assert counts_fit(orders[:, place], torch.full((12,), 1 / 12))
    assert counts_fit(orders[:, 0] * 12 + orders[:, 1], (1 - torch.eye(12)) / 132)


# --- Numbers are independent, and lie in the range that is promised


def correlation(x: torch.Tensor, y: torch.Tensor) -> float:
    return torch.corrcoef(torch.stack([x.double().cpu(), y.double().cpu()]))[0, 1].abs().item()


def test_neighbours_calls_and_seeds_do_not_correlate():
    torch.manual_seed(7)
    x, y = torch.randn(N, device="npu"), torch.randn(N, device="npu")
    torch.manual_seed(8)
    z = torch.randn(N, device="npu")
    pairs = [(x[1:], x[:-1]), (x[2:], x[:-2]), (x[4:], x[:-4]), (x, y), (x[1:], y[:-1]), (x, z)]
    assert max(correlation(*pair) for pair in pairs) < 4.5 / math.sqrt(N)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_uniform_numbers_stay_below_the_upper_end(dtype):
    torch.manual_seed(0)
    x = torch.empty(1 << 20, dtype=dtype, device="npu").uniform_()
    assert x.min().item() >= 0 and x.max().item() < 1
    assert abs(x.double().mean().item() - 0.5) < 0.005
    y = x.exponential_()
    assert y.min().item() > 0 and y.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("concentration", [1e-30, 1e-3, 1e-2, 1.0, 1e3])
def test_dirichlet_stays_strictly_between_0_and_1(dtype, concentration):
    torch.manual_seed(4)
    x = torch._sample_dirichlet(torch.full((20000, 3), concentration, dtype=dtype, device="npu"))
    below_one = torch.nextafter(torch.ones((), dtype=dtype), torch.zeros((), dtype=dtype)).item()
    assert x.dtype == dtype and torch.finfo(dtype).tiny <= x.min().item() and x.max().item() <= below_one
    torch.testing.assert_close(x.sum(1), torch.ones_like(x[:, 0]))
    assert (x.mean(0) - 1 / 3).abs().max().item() < 0.012


def test_doubles_use_all_their_bits():
    x = torch.rand(1 << 16, dtype=torch.float64, device="npu").cpu()
    assert len(x.unique()) == 1 << 16
    assert ((x * 2.0**53) % 2).mean().item() == pytest.approx(0.5, abs=0.02)
