"""Programs from the packages of requirements/models.txt: no network, and one thread for the CPU's side."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The quick suite neither has the packages nor the seconds to import them."""
    return True if config.option.markexpr == "not conformance" and collection_path.suffix == ".py" else None


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small operators run on one thread on npu; on the CPU the last bits of sums depend on the number."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
