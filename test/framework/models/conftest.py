"""Programs from the packages of requirements/models.txt: no network, and one thread."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The quick suite neither has the packages nor the seconds to import them."""
    return True if config.option.markexpr == "not conformance" and collection_path.suffix == ".py" else None


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Results are compared bit by bit, and the last bits of large sums depend on the number of threads."""
    assert torch.get_num_threads() == 1, "run these tests with OMP_NUM_THREADS=1, as make conformance does"
