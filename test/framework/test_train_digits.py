"""The example that users read first: the same training on every device, with copies hidden behind computation."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys

import pytest
import torch
from rich.progress import Progress
from shared import ROOT, child_environment, needs_two_workers

from torch_npu_lite import timeline

sys.path.insert(0, str(ROOT / "examples"))
from train_digits import Trainer


@pytest.fixture
def progress():
    with Progress(disable=True) as progress:
        yield progress


def losses(device: str, overlap: bool, steps: int = 20) -> torch.Tensor:
    trainer = Trainer(torch.device(device), epochs=1, batch_size=32, overlap=overlap)
    batches = trainer.batches(trainer.training)
    return torch.stack([trainer.step(*batch) for batch in itertools.islice(batches, steps)]).cpu()


def test_losses_are_those_of_the_cpu_for_twenty_steps():
    torch.testing.assert_close(losses("npu", overlap=True), losses("cpu", overlap=True), rtol=0, atol=1e-4)


def test_overlap_changes_no_bit():
    assert torch.equal(losses("npu", overlap=True, steps=10), losses("npu", overlap=False, steps=10))


@pytest.mark.parametrize("overlap", [pytest.param(True, marks=needs_two_workers), False])
def test_copies_are_hidden_only_with_a_stream_of_their_own(overlap, progress):
    trainer = Trainer(torch.device("npu"), epochs=1, batch_size=32, overlap=overlap)
    with timeline.record() as recorded:
        trainer.train_epoch(progress)
    hidden = recorded.overlap().fraction
    assert hidden > 0.5 if overlap else hidden < 0.1, hidden


def test_command_line_writes_what_the_readme_promises(tmp_path):
    command = [sys.executable, str(ROOT / "examples/train_digits.py"), "--epochs", "1", "--output", str(tmp_path)]
    child = subprocess.run(
        [*command, "--device", "npu:1"], env=child_environment(), capture_output=True, text=True, timeout=300
    )
    assert child.returncode == 0, child.stderr
    assert {path.name for path in tmp_path.iterdir()} == {
        "checkpoint.pt",
        "losses.json",
        "timeline.json",
        "timeline.png",
    }
    assert len(json.loads((tmp_path / "losses.json").read_text())) == 44
    assert json.loads((tmp_path / "timeline.json").read_text())["traceEvents"]
    assert "fallback 0" in child.stdout and "training on npu:1" in child.stdout
