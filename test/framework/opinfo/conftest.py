"""Fixtures of the sweeps over PyTorch's own databases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Samples do not depend on the tests before."""
    torch.manual_seed(0)


@pytest.fixture
def like_small_tasks() -> Iterator[None]:
    """Small tasks of npu run on one thread, so that the CPU does as well; a warning is given every time."""
    threads, always = torch.get_num_threads(), torch.is_warn_always_enabled()
    torch.set_num_threads(1)
    torch.set_warn_always(True)
    yield
    torch.set_num_threads(threads)
    torch.set_warn_always(always)
