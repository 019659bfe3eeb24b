"""python -m torch_npu_lite.suite pytorch, on a checkout of a few tests that is made here."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from torch_npu_lite.suite import pytorch

TESTS = """
    import unittest, torch
    from torch.testing._internal.common_device_type import dtypes, instantiate_device_type_tests, onlyCPU, ops
    from torch.testing._internal.common_utils import TestCase
    from torch.testing._internal.opinfo.core import OpInfo, SampleInput

    def samples(op, device, dtype, requires_grad, **kwargs):
        yield SampleInput(torch.ones(2, device=device, dtype=dtype), args=(1,))

    OPS = [OpInfo(name, dtypes={torch.float32, torch.int64}, sample_inputs_func=samples) for name in ("add", "mul")]

    class TestFew(TestCase):
        def test_lies_on_device(self, device):
            self.assertEqual(torch.ones(2, device=device).device.type, torch.device(device).type)

        @ops(OPS)
        def test_operator(self, device, dtype, op):
            for sample in op.sample_inputs(device, dtype):
                self.assertEqual(op(sample.input, *sample.args).device.type, torch.device(device).type)

        @dtypes(torch.float32, torch.int8)
        def test_wants_cpu(self, device, dtype):
            self.assertEqual(torch.device(device).type, "cpu")

        @onlyCPU
        def test_cpu_only(self, device):
            pass

        def test_fails_everywhere(self, device):
            raise ValueError("never")

    class TestPlain(TestCase):
        def test_without_device(self):
            raise ValueError("does not run")

    instantiate_device_type_tests(TestFew, globals())
"""

Command = Callable[..., int]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    src = tmp_path / "checkout"
    (src / "test").mkdir(parents=True)
    (src / "version.txt").write_text("2.13.0a0\n")
    (src / "test" / "test_few.py").write_text(textwrap.dedent(TESTS))
    (src / "test" / "test_other.py").write_text("def test_other(): pass\n")
    return src


@pytest.fixture
def command(tmp_path: Path) -> Command:
    def run(*arguments: object) -> int:
        parser = argparse.ArgumentParser()
        pytorch.add_arguments(parser)
        return pytorch.main(
            parser.parse_args([*map(str, arguments), "--jobs", "1", "--journal", str(tmp_path / "run")])
        )

    return run


def test_report_says_what_passes_on_the_cpu_only(command: Command, checkout: Path, capsys: pytest.CaptureFixture):
    report = checkout / "report.json"
    assert command("--src", checkout, "--report", report) == 1
    result = json.loads(report.read_text())
    assert list(result["files"]) == ["test/test_few.py"]  # the other has no device-type tests
    found = result["files"]["test/test_few.py"]
    assert (found["passed_on_cpu"], found["passed_on_npu"]) == (8, 5)
    assert found["skipped"] == {"ValueError: never": 1}
    reason = "AssertionError: String comparison failed: 'npu' != 'cpu'"
    name = "test/test_few.py::TestFew::test_"
    assert found["differences"] == {
        f"{name}cpu_only": "Only runs on cpu",
        f"{name}wants_cpu_float32": reason,
        f"{name}wants_cpu_int8": reason,
    }
    assert found["failures"] == {f"{name}wants_cpu_float32": "failed", f"{name}wants_cpu_int8": "failed"}
    assert f"  2 x {reason}\n      {name}wants_cpu_float32\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("import os; os._exit(3)", "the process ended with exit code 3"),
    ],
)
def test_file_that_cannot_be_imported_is_a_failure(
    command: Command, checkout: Path, capsys: pytest.CaptureFixture, program: str, reason: str
):
    (checkout / "test" / "test_few.py").write_text(f"{program}  # instead of instantiate_device_type_tests()\n")
    assert command("--src", checkout) == 1
    assert f"  1 x not collected: {reason}\n      test/test_few.py\n" in capsys.readouterr().out


def test_folders_that_are_named_like_test_files_are_searched(checkout: Path):
    inner = checkout / "test" / "test_folder.py"
    inner.mkdir()
    (inner / "test_inner.py").write_text(textwrap.dedent(TESTS))
    assert pytorch.find_files(checkout, []) == ["test/test_few.py", "test/test_folder.py/test_inner.py"]


def test_wrong_folder_says_what_a_checkout_has(command: Command, tmp_path: Path, capsys: pytest.CaptureFixture):
    assert command("--src", tmp_path) == 2
    assert "no PyTorch checkout, it should have a file version.txt and a folder test" in capsys.readouterr().err


def test_wrong_file_is_named(command: Command, checkout: Path, capsys: pytest.CaptureFixture):
    assert command("--src", checkout, "test_none.py") == 2
    assert "test_none.py: no such file in" in capsys.readouterr().err


def test_wrong_devices_are_named(command: Command, checkout: Path, capsys: pytest.CaptureFixture):
    assert command("--src", checkout, "--devices", "cuda") == 2
    assert "--devices cuda: npu, or npu,cpu" in capsys.readouterr().err


def test_other_version_is_warned_of(checkout: Path, capsys: pytest.CaptureFixture):
    pytorch.warn_of_version("2.11.0a0")
    assert "the checkout is of 2.11.0a0, the installed PyTorch is 2.13" in capsys.readouterr().err
    pytorch.warn_of_version("2.13.1")
    assert capsys.readouterr().err == ""


def test_no_test_is_an_error(command: Command, checkout: Path, capsys: pytest.CaptureFixture):
    assert command("--src", checkout, "test_few.py", "-k", "nosuchtest") == 2
    assert "no device-type tests that match -k nosuchtest in test/test_few.py" in capsys.readouterr().err
    assert command("--src", checkout, "test_other.py") == 2
    assert "no device-type tests in test/test_other.py" in capsys.readouterr().err
