"""Seeds and states of the devices' generators."""

import pytest
import torch
import torch.utils.checkpoint

from torch_npu_lite.testing import Gate


def draw(device="npu", generator=None):
    return torch.rand(16, device=device, generator=generator).tolist()


def test_manual_seed_repeats():
    torch.manual_seed(3)
    first = draw()
    second = draw()
    torch.manual_seed(3)
    assert (draw(), draw()) == (first, second)
    assert first != second


def test_seed_of_torch_npu():
    torch.npu.manual_seed(5)
    first = draw()
    assert torch.npu.initial_seed() == 5
    torch.npu.manual_seed(5)
    assert draw() == first
    torch.npu.seed()
    assert torch.npu.initial_seed() != 5


def test_devices_have_generators_of_their_own():
    torch.npu.manual_seed_all(1)
    first = draw("npu:0")
    assert draw("npu:1") == first
    assert draw("npu:0") != first
    torch.npu.seed_all()
    assert draw("npu:0") == draw("npu:1")


def test_state_is_16_bytes_and_restores():
    torch.npu.manual_seed(7)
    draw()
    state = torch.npu.get_rng_state()
    assert state.dtype == torch.uint8 and state.numel() == 16 and state.device.type == "cpu"
    expected = draw()
    torch.npu.set_rng_state(state)
    assert draw() == expected
    states = torch.npu.get_rng_state_all()
    torch.npu.set_rng_state_all(states)
    assert len(states) == torch.npu.device_count() == len(torch.npu.default_generators)


def test_bad_state_says_what_is_right():
    with pytest.raises(RuntimeError, match="16 uint8"):
        torch.npu.set_rng_state(torch.zeros(3, dtype=torch.uint8))


def test_own_generator():
    generator = torch.Generator("npu").manual_seed(9)
    first = draw(generator=generator)
    clone = generator.clone_state()
    assert draw(generator=generator) == draw(generator=clone)
    generator.manual_seed(9)
    assert draw(generator=generator) == first
    assert generator.device.type == "npu"
    with pytest.raises(RuntimeError, match="generator"):
        draw("npu:1", generator=generator)


def test_offset():
    generator = torch.Generator("npu").manual_seed(9)
    draw(generator=generator)
    offset = generator.get_offset()
    second = draw(generator=generator)
    generator.set_offset(offset)
    assert draw(generator=generator) == second


def test_fork_rng_covers_npu():
    torch.manual_seed(1)
    before = torch.npu.get_rng_state()
    with torch.random.fork_rng(device_type="npu"):
        draw()
    assert torch.equal(torch.npu.get_rng_state(), before)


def test_seeding_initialises_nothing(run_child):
    result = run_child("torch.manual_seed(1); torch.npu.get_rng_state(); print(torch.npu.is_initialized())")
    assert result.stdout.strip() == "False", result.stderr


def test_torch_manual_seed_covers_all_devices():
    torch.manual_seed(17)
    assert [generator.initial_seed() for generator in torch.npu.default_generators] == [17] * torch.npu.device_count()
    first = [draw("npu:0"), draw("npu:1")]
    torch.manual_seed(17)
    assert [draw("npu:0"), draw("npu:1")] == first


OPERATORS = {
    "rand": lambda n, g: torch.rand(n, device="npu", generator=g),
    "randn": lambda n, g: torch.randn(n, device="npu", generator=g),
    "randint": lambda n, g: torch.randint(9, (n,), device="npu", generator=g),
    "randperm": lambda n, g: torch.randperm(n, device="npu", generator=g),
    "exponential_": lambda n, g: torch.empty(n, device="npu").exponential_(generator=g),
    "geometric_": lambda n, g: torch.empty(n, device="npu").geometric_(0.5, generator=g),
    "bernoulli": lambda n, g: torch.bernoulli(torch.full((n,), 0.5, device="npu"), generator=g),
    "poisson": lambda n, g: torch.poisson(torch.full((n,), 5.0, device="npu"), generator=g),
    "gamma": lambda n, g: torch._standard_gamma(torch.full((n,), 0.2, device="npu"), generator=g),
    "multinomial": lambda n, g: torch.multinomial(torch.ones(n, device="npu"), 1, generator=g),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_the_offset_moves_by_one_step_whatever_is_drawn(name):
    generator = torch.Generator("npu").manual_seed(1)
    steps = []
    for count in (1, 3, 70_000):
        before = generator.get_offset()
        OPERATORS[name](count, generator)
        steps.append(generator.get_offset() - before)
    assert steps == [4, 4, 4]


def test_the_offset_moves_at_the_call():
    generator = torch.Generator("npu").manual_seed(1)
    stream = torch.npu.Stream()
    with torch.npu.stream(stream), Gate(stream):
        held = torch.rand(8, device="npu", generator=generator)
        assert generator.get_offset() == 4
        generator.manual_seed(99)  # does not reach what is queued
    stream.synchronize()
    generator.manual_seed(1)
    assert torch.equal(held.cpu(), torch.rand(8, device="npu", generator=generator).cpu())


def test_a_state_has_seed_and_offset():
    generator = torch.Generator("npu").manual_seed(6)
    draw(generator=generator)
    other = torch.Generator("npu")
    other.set_state(generator.get_state())
    assert (other.initial_seed(), other.get_offset()) == (6, generator.get_offset())
    assert draw(generator=other) == draw(generator=generator)
    generator.set_offset(1 << 40)
    assert generator.get_offset() == 1 << 40
    assert generator.initial_seed() == 6


def test_seeds_of_64_bits():
    for seed in (0, (1 << 64) - 1, -1):
        generator = torch.Generator("npu").manual_seed(seed)
        assert generator.initial_seed() == seed % (1 << 64)
    assert generator.seed() == generator.initial_seed()


def test_fork_rng_over_several_devices():
    torch.manual_seed(4)
    states = torch.npu.get_rng_state_all()
    with torch.random.fork_rng(devices=[0, 1], device_type="npu"):
        draw("npu:0"), draw("npu:1")
    assert all(torch.equal(a, b) for a, b in zip(states, torch.npu.get_rng_state_all(), strict=True))


def test_a_checkpoint_draws_the_same_dropout_again():
    x = torch.ones(1000, device="npu", requires_grad=True)

    def step(x):
        return torch.nn.functional.dropout(x * 2, 0.5)

    torch.manual_seed(5)
    y = torch.utils.checkpoint.checkpoint(step, x, use_reentrant=False)
    y.sum().backward()
    assert torch.equal(x.grad.cpu(), y.detach().cpu())


def test_generators_can_share_one_state():
    generator = torch.Generator("npu").manual_seed(3)
    same = generator.graphsafe_get_state()
    other = torch.Generator("npu").manual_seed(99)
    other.graphsafe_set_state(same)
    first = draw(generator=generator)
    assert other.get_offset() == generator.get_offset() > 0
    assert draw(generator=other) != first
    generator.manual_seed(3)
    assert draw(generator=same) == first


def test_clones_have_a_state_of_their_own():
    generator = torch.Generator("npu").manual_seed(3)
    clone = generator.clone_state()
    first = draw(generator=generator)
    assert clone.get_offset() == 0
    assert draw(generator=clone) == first
