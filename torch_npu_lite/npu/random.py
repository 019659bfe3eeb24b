"""Seeds and states of the devices' generators. None of these functions initialises a device."""

from collections.abc import Iterable
from functools import cache

import torch

from torch_npu_lite import _C
from torch_npu_lite.npu.device import Device, device_count, device_index


@cache
def _generator_of(index: int) -> torch.Generator:
    return _C.default_generator(index)


def _get_generator(device: Device = "npu") -> torch.Generator:
    return _generator_of(device_index(device))


def default_generators() -> tuple[torch.Generator, ...]:
    return tuple(_generator_of(index) for index in range(device_count()))


def get_rng_state(device: Device = "npu") -> torch.Tensor:
    """16 bytes: seed and offset."""
    return _get_generator(device).get_state()


def get_rng_state_all() -> list[torch.Tensor]:
    return [generator.get_state() for generator in default_generators()]


def set_rng_state(new_state: torch.Tensor, device: Device = "npu") -> None:
    _get_generator(device).set_state(new_state)


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def manual_seed(seed: int) -> None:
    """Seeds the current device."""
    _get_generator().manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    for generator in default_generators():
        generator.manual_seed(int(seed))


def seed() -> None:
    """Seeds the current device from the system's entropy."""
    _get_generator().seed()


def seed_all() -> None:
    """Seeds all devices with one number of the system's entropy."""
    seed()
    manual_seed_all(initial_seed())


def initial_seed() -> int:
    return _get_generator().initial_seed()
