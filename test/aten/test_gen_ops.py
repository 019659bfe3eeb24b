"""The generator as a program."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

GENERATOR = Path(__file__).resolve().parent.parent.parent / "tools" / "gen_ops.py"


def generate(folder: Path, *options: str) -> str:
    command = [sys.executable, str(GENERATOR), "--output-dir", str(folder), "--shards", "3", *options]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def generated(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("generated")
    generate(folder)
    return folder


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_lists_exactly_what_it_writes(generated):
    listed = generate(generated, "--list-outputs").split()
    assert sorted(listed) == sorted(contents(generated))
    assert "op_counters.h" in listed


def test_output_is_the_same_every_time(generated, tmp_path):
    generate(tmp_path)
    assert contents(tmp_path) == contents(generated)


def test_unchanged_files_are_left_alone(generated):
    before = {path: path.stat().st_mtime_ns for path in generated.iterdir()}
    changed = generated / "op_counters.cpp"
    changed.write_text("stale")
    generate(generated)
    after = {path: path.stat().st_mtime_ns for path in generated.iterdir()}
    assert changed.read_text() != "stale"
    assert {path for path in before if before[path] != after[path]} == {changed}


def test_each_operator_is_registered_once(generated):
    text = "".join(contents(generated).values())
    found = []
    for key, block in re.findall(r"TORCH_LIBRARY_IMPL\(aten, (\w+), m\) \{(.*?)\n\}", text, re.DOTALL):
        found += [(key, name) for name in re.findall(r'm\.impl\("([^"]+)"', block)]
    assert len(found) == len(set(found))
    names = {name for key, name in found if key == "PrivateUse1"}
    assert {"add.Tensor", "add_.Tensor", "add.out", "nonzero", "convolution_overrideable", "_to_sparse"} <= names
    assert {("SparsePrivateUse1", "_coalesce"), ("QuantizedPrivateUse1", "q_scale")} <= set(found)


def test_every_shard_gets_its_share(generated):
    sizes = [len(text) for name, text in contents(generated).items() if name.startswith("operators_")]
    assert len(sizes) == 3
    assert max(sizes) < 2 * min(sizes)
