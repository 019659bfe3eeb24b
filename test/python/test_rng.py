"""Seeds and states of the devices' generators."""

import pytest
import torch


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
