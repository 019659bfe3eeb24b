"""What tests of several folders import: where the repository is, and the environment of the programs they start."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

WORKERS = int(os.environ.get("NPU_SIM_WORKERS", 0)) or os.cpu_count() or 1
needs_two_workers = pytest.mark.skipif(WORKERS == 1, reason="one worker executes one task at a time")


def child_environment(**settings: str) -> dict[str, str]:
    """This process's environment with `settings` on top and without settings of the device that tests depend on."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NPU_LAUNCH_BLOCKING", "NPU_FALLBACK")}
    return {**kept, **settings}
