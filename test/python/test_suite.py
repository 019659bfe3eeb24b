"""torch_npu_lite.suite: what becomes of tests that pass, fail, crash and hang, and of a run that is interrupted."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from torch_npu_lite.suite.area import Area, Outcome, compare, generic_id
from torch_npu_lite.suite.engine import CollectionError, Run
from torch_npu_lite.suite.progress import LineProgress

MIXED = """
    import os, signal, pytest

    def test_passes(record_property):
        record_property("cosine", 0.5)

    def test_fails():
        assert 1 + 1 == 3, "wrong sum"

    def test_skips():
        pytest.skip("no such dtype on CPU")

    def test_differs():
        pytest.xfail("rounds once more")

    def test_crashes():
        os.kill(os.getpid(), signal.SIGSEGV)

    def test_leaves():
        os._exit(3)

    def test_fails_after():
        raise ValueError("bad\\nmore")

    @pytest.mark.parametrize("i", range(3))
    def test_many(i):
        pass
"""


@pytest.fixture
def area(tmp_path: Path) -> Area:
    return Area("mixed", "Mixed", ("test_mixed.py",), ("--rootdir", str(tmp_path)), directory=tmp_path)


def write(area: Area, program: str) -> None:
    (area.directory / "test_mixed.py").write_text(textwrap.dedent(program))


def run(area: Area, *, jobs: int = 1, resume: bool = False) -> tuple[dict[str, Outcome], str]:
    """Outcomes by the test's name, and what was printed."""
    printed = io.StringIO()
    suite = Run(area, area.directory / "journal.jsonl", jobs, LineProgress(printed), resume=resume)
    suite.run()
    return {outcome.id.split("::")[-1]: outcome for outcome in suite.outcomes}, printed.getvalue()


def test_crash_loses_only_the_test_that_crashed(area: Area):
    write(area, MIXED)
    outcomes, printed = run(area, jobs=2)
    assert {name: (outcome.result, outcome.reason) for name, outcome in outcomes.items()} == {
        "test_passes": ("passed", ""),
        "test_fails": ("failed", "AssertionError: wrong sum"),
        "test_skips": ("skipped", "no such dtype on CPU"),
        "test_differs": ("xfailed", "rounds once more"),
        "test_crashes": ("crashed", "signal SIGSEGV"),
        "test_leaves": ("crashed", "the process ended with exit code 3"),
        "test_fails_after": ("failed", "ValueError: bad"),
        **{f"test_many[{i}]": ("passed", "") for i in range(3)},
    }
    assert outcomes["test_passes"].figures == {"cosine": 0.5}
    assert "test_crashes" in outcomes["test_crashes"].details  # where it was, by the fault handler
    assert "Mixed: 10 of 10 tests, 4 failed" in printed
    assert "crashed: test_mixed.py::test_crashes: signal SIGSEGV" in printed


def test_hang_is_ended_after_the_time_limit(area: Area):
    write(area, "import threading\ndef test_hangs(): threading.Event().wait()\ndef test_passes(): pass\n")
    outcomes, _ = run(dataclasses.replace(area, timeout=5))
    assert outcomes["test_passes"].passed
    assert outcomes["test_hangs"].text() == "hung: no result after 5 s"
    assert "in test_hangs" in outcomes["test_hangs"].details


def test_children_are_replaced_after_a_number_of_tests(area: Area):
    write(
        area,
        """
        import os, pytest
        @pytest.mark.parametrize("i", range(4))
        def test_process(i, record_property): record_property("process", os.getpid())
        """,
    )
    outcomes, _ = run(dataclasses.replace(area, tests_per_process=2))
    assert len({outcome.figures["process"] for outcome in outcomes.values()}) == 2


def test_file_that_cannot_be_imported_is_a_failure(area: Area):
    write(area, "import no_such_module\n")
    outcomes, printed = run(area)
    reason = "ModuleNotFoundError: No module named 'no_such_module'"
    assert outcomes["test_mixed.py"].text() == reason
    assert not outcomes["test_mixed.py"].is_test
    assert f"failed: test_mixed.py: not collected: {reason}" in printed


def test_death_between_tests_says_that_none_was_running(area: Area):
    write(area, "import pytest\n@pytest.mark.parametrize('i', range(8))\ndef test_many(i): pass\n")
    (area.directory / "conftest.py").write_text(
        textwrap.dedent("""
        import os, pytest
        @pytest.hookimpl(wrapper=True, tryfirst=True)
        def pytest_runtest_logfinish(nodeid):
            yield
            if nodeid.endswith("[0]"): os._exit(3)
        """)
    )
    outcomes, _ = run(area)
    reason = "the process ended with exit code 3, between tests: after test_mixed.py::test_many[0]"
    assert {o.id.split("::")[-1]: o.text() for o in outcomes.values() if not o.passed} == {
        "test_many[1]": f"crashed: {reason}"
    }


def test_skipped_subtests_leave_a_test_passed_if_others_pass(area: Area):
    write(
        area,
        """
        import unittest
        class TestParts(unittest.TestCase):
            def parts(self, *skipped):
                for i in range(3):
                    with self.subTest(i=i):
                        if i in skipped: self.skipTest(f"no {i}")
            def test_some(self): self.parts(1)
            def test_none(self): self.parts(0, 1, 2)
            def test_fails(self):
                self.parts(1)
                self.fail("last")
        """,
    )
    outcomes, _ = run(area)
    assert {name: (outcome.result, outcome.reason) for name, outcome in outcomes.items()} == {
        "test_some": ("passed", ""),
        "test_none": ("skipped", "no 0"),
        "test_fails": ("failed", "AssertionError: last"),
    }


def test_late_errors_of_the_device_fail_the_test_that_left_them(area: Area):
    write(
        area,
        """
        import pytest, torch, torch_npu_lite
        @pytest.fixture
        def index_out_of_range():
            yield
            indices = [torch.tensor([i], device="npu") for i in (7, 8)]  # copies would report what is pending
            for i in indices: torch.ones(3, device="npu")[i]
        def test_before(): torch.ones(3, device="npu")
        def test_leaves(index_out_of_range): pass
        def test_leaves_and_skips(index_out_of_range): pytest.skip("elsewhere")
        def test_leaves_and_fails(index_out_of_range): assert 1 + 1 == 3, "wrong sum"
        def test_after(): torch.npu.synchronize()
        """,
    )
    outcomes, _ = run(area)
    assert outcomes["test_before"].passed and outcomes["test_after"].passed
    for name in ("test_leaves", "test_leaves_and_skips"):
        assert outcomes[name].result == "failed"
        assert outcomes[name].reason.startswith("reported later: AcceleratorError: aten::index.Tensor failed on npu:0")
    assert outcomes["test_leaves_and_fails"].reason == "AssertionError: wrong sum"
    for name in ("test_leaves", "test_leaves_and_skips", "test_leaves_and_fails"):
        assert all(f"index {i} is out of bounds" in outcomes[name].details for i in (7, 8))


def test_wrong_path_says_so(area: Area):
    with pytest.raises(CollectionError, match="not found"):
        run(area)


def test_resume_keeps_what_has_run(area: Area):
    write(area, "import os\ndef test_a(): pass\ndef test_b(): assert os.path.exists('fixed')\n")
    assert run(area)[0]["test_b"].failed
    journal = area.directory / "journal.jsonl"
    earlier = [Outcome(f"test_mixed.py::{test}", "failed", "earlier") for test in ("test_a", "test_gone")]
    journal.write_text("".join(json.dumps(dataclasses.asdict(outcome)) + "\n" for outcome in earlier))
    (area.directory / "fixed").touch()
    outcomes, printed = run(area, resume=True)
    assert outcomes.keys() == {"test_a", "test_b"}
    assert outcomes["test_a"].reason == "earlier"
    assert outcomes["test_b"].passed
    assert "Mixed: 1 of 2 tests, 1 failed" in printed


def test_resume_runs_a_half_written_outcome_again(area: Area):
    write(area, "def test_a(): pass\ndef test_b(): pass\n")
    journal = area.directory / "journal.jsonl"
    run(area)
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text(lines[0] + lines[1][:10])
    outcomes, printed = run(area, resume=True)
    assert outcomes["test_a"].passed and outcomes["test_b"].passed
    assert "Mixed: 1 of 2 tests" in printed
    assert [json.loads(line)["id"] for line in journal.read_text().splitlines()] == [o.id for o in outcomes.values()]


def test_interrupt_ends_children_and_keeps_outcomes(area: Area):
    """Ctrl-C while a test hangs, told by a pipe that the test writes to."""
    write(
        area,
        """
        import os, threading
        def test_first(): pass
        def test_hangs():
            print(os.getpid(), file=open("started", "w"))
            threading.Event().wait()
        """,
    )
    os.mkfifo(area.directory / "started")
    program = """
        import signal
        from pathlib import Path
        from torch_npu_lite.suite.area import Area
        from torch_npu_lite.suite.engine import Run
        from torch_npu_lite.suite.progress import LineProgress
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start with it ignored
        Run(Area("mixed", "Mixed", ("test_mixed.py",)), Path("journal.jsonl"), 1, LineProgress()).run()
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], cwd=area.directory, stderr=subprocess.PIPE
    )
    child = int((area.directory / "started").read_text())
    parent.send_signal(signal.SIGINT)
    assert b"KeyboardInterrupt" in parent.communicate(timeout=60)[1]
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    kept = [json.loads(line)["id"] for line in (area.directory / "journal.jsonl").read_text().splitlines()]
    assert kept == ["test_mixed.py::test_first"]


def test_generic_id_drops_the_device():
    assert generic_id("a.py::TestFooPRIVATEUSE1::test_npu_add_npu_int8", "npu") == "a.py::TestFoo::test_npu_add_int8"
    assert generic_id("a.py::TestFooNPU::test_add_npu", "npu") == "a.py::TestFoo::test_add"
    assert generic_id("a.py::TestFooCPU::test_add_cpu_int8", "cpu") == "a.py::TestFoo::test_add_int8"
    assert generic_id("a.py::TestFoo::test_cpu", "cpu") == "a.py::TestFoo::test_cpu"


def test_comparison_counts_what_the_cpu_passes():
    cpu = [Outcome("a", "passed"), Outcome("b", "passed"), Outcome("c", "failed", "x"), Outcome("d", "passed")]
    npu = [Outcome("a", "passed"), Outcome("b", "skipped", "not here"), Outcome("c", "failed", "y")]
    found = compare(npu, cpu)
    assert (found.passed_on_cpu, found.passed_on_npu) == (3, 1)
    assert found.differences == {"b": "not here", "d": "is not among npu's tests"}
    assert found.skipped == {"x": 1}
    assert found.failures == {}
    assert compare(npu, cpu, "of the CPU only").differences["d"] == "of the CPU only"


def test_comparison_without_cpu_run_trusts_skips():
    found = compare([Outcome("a", "passed"), Outcome("b", "skipped", "no"), Outcome("c", "crashed", "signal SIGBUS")])
    assert (found.passed_on_cpu, found.passed_on_npu) == (2, 1)
    assert found.differences == {"c": "crashed: signal SIGBUS"}
    assert found.skipped == {"no": 1}
    assert found.failures == {"c": "crashed"}
