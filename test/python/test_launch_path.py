"""What PyTorch asks of the system while it queues work: nothing.

test/call_counter.h is built as a small library and loaded first into a child process, where it counts the launching
thread's system calls, heap allocations and contended locks while a gate holds the stream. One thread only: Python's own
lock asks the system as soon as two threads want it. test/runtime/launch_path_test.cpp counts with two.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

COUNTER = Path(__file__).resolve().parent.parent / "call_counter.h"

PROGRAM = """
import ctypes, gc
from torch_npu_lite.testing import Gate

class Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_long) for name in ("allocations", "locks", "system_calls", "first_system_call")]

counter = ctypes.CDLL({library!r})
counter.call_counter_start.restype = ctypes.c_bool
counter.call_counter_stop.restype = Counts

a, b = torch.ones(16, device="npu"), torch.ones(16, device="npu")
small, sums = torch.ones(4, 4, dtype=torch.int8, device="npu"), torch.empty(4, 4, dtype=torch.int32, device="npu")
event, finished, stream = torch.npu.Event(), torch.npu.Event(), torch.npu.current_stream()
finished.record()
torch.npu.synchronize()

# The layer of autograd allocates for out= forms.
below_autograd = torch._C._AutoDispatchBelowAutograd() if "out=" in {body!r} else None
supported = counts = None  # their places among the globals, before the count

def repeat():
    for _ in range(100):
        {body}

with Gate():
    repeat()  # Python's and PyTorch's own caches
    gc.disable()
    supported = counter.call_counter_start()
    repeat()
    counts = counter.call_counter_stop()
torch.npu.synchronize()
print(*(getattr(counts, name) for name, _ in Counts._fields_) if supported else ["unsupported"])
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    target = tmp_path_factory.mktemp("counter") / "libcall_counter.so"
    command = [compiler, "-std=c++20", "-O1", "-shared", "-fPIC", "-x", "c++", str(COUNTER), "-o", str(target)]
    subprocess.run(command, check=True)
    return target


BODIES = {
    "kernel": "a.add_(b)",
    "library, checked by its kernel": "torch._int_mm(small, small, out=sums)",
    "record": "event.record(stream)",
    "wait": "stream.wait_event(finished)",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_launching_asks_nothing_of_the_system(run_child, library: Path, body: str) -> None:
    result = run_child(PROGRAM.format(library=str(library), body=body), LD_PRELOAD=str(library))
    assert result.returncode == 0, result.stderr
    if "unsupported" in result.stdout:
        pytest.skip("needs Syscall User Dispatch (Linux 5.11 on x86-64)")
    allocations, locks, system_calls, first = map(int, result.stdout.split())
    assert (allocations, locks) == (0, 0)
    assert system_calls == 0, f"the first one was number {first}"
