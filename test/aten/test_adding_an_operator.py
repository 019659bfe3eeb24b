"""docs/adding_an_operator.md, followed to the letter: its example adds a pointwise operator with a line in one file."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from gen import files, table  # noqa: E402
from gen.schema import Schemas  # noqa: E402

MOST_FILES, MOST_LINES = 2, 15
OPERATOR = "hypot"
FORMS = {"hypot", "hypot_", "hypot.out"}


TEXT = (ROOT / "docs" / "adding_an_operator.md").read_text()
DIFF = "".join(re.findall(r"^```diff\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL))
EDITED = re.findall(r"^\+\+\+ b/(.*)$", DIFF, re.MULTILINE)


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """The files that the document edits, without the operator: what the document's `sed` leaves."""
    folder = tmp_path_factory.mktemp("tree")
    for name in EDITED:
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text((ROOT / name).read_text())
    (removal,) = re.findall(r"^    (sed .*)$", TEXT, re.MULTILINE)
    subprocess.run(shlex.split(removal), cwd=folder, check=True)
    return folder


def registered(rows: list[table.Row]) -> set[str]:
    sources = [make() for name, make in files.all_files(rows, [], 10).items() if name.startswith("operators_")]
    return {name for text in sources for name in re.findall(r'm\.impl\("([^"]+)"', text)}


@cache
def schemas() -> Schemas:
    return Schemas()


def load(tree: Path) -> list[table.Row]:
    return table.load(tree / "csrc/aten/ops/npu_functions.yaml", schemas())


@pytest.fixture(scope="module")
def rows(tree) -> list[table.Row]:
    """The table after the document's edits."""
    assert not registered(load(tree)) & FORMS
    if not shutil.which("git"):
        pytest.skip("git, which applies the document's diff, is not installed")
    subprocess.run(["git", "apply", "-"], input=DIFF, text=True, cwd=tree, check=True)
    return load(tree)


def test_the_example_is_small():
    changed = [line for line in DIFF.splitlines() if line[0] in "+-" and not line.startswith(("+++", "---"))]
    assert 1 <= len(EDITED) <= MOST_FILES
    assert 1 <= len(changed) <= MOST_LINES


def test_the_generator_then_registers_all_forms(rows):
    assert registered(rows) >= FORMS


def test_the_result_is_what_the_repository_has(rows, tree):
    for name in EDITED:
        assert (tree / name).read_text() == (ROOT / name).read_text()


@pytest.mark.conformance
def test_what_is_generated_compiles(rows, tmp_path):
    commands = ROOT / "build" / "release" / "compile_commands.json"
    if not commands.exists():
        pytest.skip("needs the compiler's options in build/release, which make build writes")
    entry = next(c for c in json.loads(commands.read_text()) if c["file"].endswith("generated/operators_0.cpp"))
    row = next(row for row in rows if row.func == OPERATOR)
    for name, make in files.all_files(rows, [], 10).items():
        if name.startswith("op_counters"):
            (tmp_path / name).write_text(make())
    source = tmp_path / "operators.cpp"
    source.write_text(files.shard_source([row]))
    words = shlex.split(entry["command"])
    words = words[next(i for i, word in enumerate(words) if word.startswith("-D")) : words.index("-o")]
    command = ["c++", f"-I{tmp_path}", *words, "-fsyntax-only", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=entry["directory"])
    assert done.returncode == 0, done.stderr
