"""What several test folders share."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

WORKERS = int(os.environ.get("NPU_SIM_WORKERS", 0)) or os.cpu_count() or 1
needs_two_workers = pytest.mark.skipif(WORKERS == 1, reason="one worker executes one task at a time")

Child = Callable[..., subprocess.CompletedProcess]


def child_environment(**settings: str) -> dict[str, str]:
    """This process's environment with `settings` on top and without settings of the device that tests depend on."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NPU_LAUNCH_BLOCKING", "NPU_FALLBACK")}
    return {**kept, **settings}


@pytest.fixture
def run_child() -> Child:
    """Runs a program in a new Python that has imported torch, with `settings` as environment; returns how it ended."""

    def run(program: str, *, timeout: float = 120, preexec: Callable | None = None, **settings: str):
        source = "import torch\n" + textwrap.dedent(program)
        return subprocess.run(
            [sys.executable, "-c", source],
            env=child_environment(**settings),
            preexec_fn=preexec,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    return run
