"""However a program ends, the device does not get in the way: exit codes, output and exit hooks stay as they are.

Most programs here are children of one server that has imported torch and not used a device: it forks for each, and the
child runs it as its main module to a normal end of the interpreter. That saves the seconds that an import takes.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from shared import child_environment

# Reads a program per line, as JSON; forks; the child leaves the loop and falls off the end of this file, as scripts do.
SERVER = """
import json, os, sys
import torch
for line in sys.stdin:
    request = json.loads(line)
    pid = os.fork()
    if pid == 0:
        for number, name in ((0, os.devnull), (1, request["stdout"]), (2, request["stderr"])):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), number)
        os.environ.update(request["settings"])
        break
    _, status = os.waitpid(pid, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
else:
    os._exit(0)
sys.stdin = open(os.devnull)
exec(compile(request["program"], "program", "exec"))
"""

PROLOGUE = """
import atexit, os, random, sys, threading
import torch
from torch_npu_lite.testing import Gate
atexit.register(lambda: print("hook ran"))
choose = random.Random({seed})
sys.stdout.write("output that nobody flushed\\n")

def work(tasks=None, size=64, device="npu"):
    x = torch.ones(size, size, device=device)
    for _ in range(choose.randrange(300) if tasks is None else tasks):
        x = x @ x / size
    return x

work()
"""

# name: (program, exit code, what standard error must contain, seconds that the end may wait)
PROGRAMS = {
    "work is pending": ("work(300, 256); sys.exit(3)", 3, "", None),
    "work is pending on many streams": (
        """
for _ in range(8):
    with torch.npu.stream(torch.npu.Stream(choose.randrange(2))):
        x = work(device=torch.device("npu", torch.npu.current_device()))
sys.exit(4)
""",
        4,
        "",
        None,
    ),
    "a gate is never opened": ("gate = Gate(); work(20); sys.exit(5)", 5, "", "0.2"),
    "an exception ends it": ("work(50)\nraise ValueError('the reason')", 1, "ValueError: the reason", None),
    "an exception ends it in backward": (
        """
x = torch.ones(64, 64, device="npu", requires_grad=True)
def hook(grad):
    work(50)
    raise ValueError("the reason")
x.register_hook(hook)
(x @ x).sum().backward()
""",
        1,
        "ValueError: the reason",
        None,
    ),
    "daemon threads go on submitting": (
        """
started = threading.Barrier(3)
def forever():
    started.wait()
    while True:
        work(20, 16)
for _ in range(2):
    threading.Thread(target=forever, daemon=True).start()
started.wait()
work()
sys.exit(6)
""",
        6,
        "",
        None,
    ),
    "a daemon thread waits for a closed gate": (
        """
stream = torch.npu.Stream()
gate = Gate(stream)
waits = threading.Event()
def wait():
    waits.set()
    stream.synchronize()
threading.Thread(target=wait, daemon=True).start()
waits.wait()
sys.exit(7)
""",
        7,
        "",
        "0.2",
    ),
    "an event is never recorded": (
        """
event = torch.npu.Event()
torch.npu.current_stream().wait_event(event)
event.synchronize()
work()
sys.exit(8)
""",
        8,
        "",
        None,
    ),
    "a forked child calls sys.exit": (
        """
x = work()
sys.stdout.flush()
pid = os.fork()
if pid == 0:
    del x
    sys.exit(9)
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
assert status == 9, status
work()
sys.exit(status + 1)
""",
        10,
        "",
        None,
    ),
    "an error was never reported": (
        """
torch.ones(3, 2, device="npu").index_select(0, torch.tensor([5], device="npu"))
sys.exit(11)
""",
        11,
        "index_select",
        None,
    ),
    "tensors die with the interpreter": (
        """
class Holder: pass
holder = Holder()
holder.self, holder.tensor, sys.modules["kept"] = holder, work(), work()
atexit.register(lambda: work(5).sum().item())
sys.exit(12)
""",
        12,
        "",
        None,
    ),
}


class Server:
    def __init__(self, folder):
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER],
            env=child_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, program: str, settings: dict[str, str]) -> tuple[int, str, str]:
        names = {"stdout": str(self.folder / "stdout"), "stderr": str(self.folder / "stderr")}
        print(json.dumps({"program": program, "settings": settings, **names}), file=self.process.stdin, flush=True)
        code = self.process.stdout.readline()
        assert code, "the server of child processes ended"
        return int(code), (self.folder / "stdout").read_text(), (self.folder / "stderr").read_text()

    def close(self):
        self.process.stdin.close()
        self.process.wait(60)


def check_end(name: str, code: int, output: str, errors: str) -> None:
    _, expected_code, expected_errors, _ = PROGRAMS[name]
    report = f"{name}: exit code {code}\n{output}\n{errors}"
    assert code == expected_code, report
    lines = output.splitlines()
    hooks = 2 if name == "a forked child calls sys.exit" else 1
    assert lines.count("output that nobody flushed") == 1 and lines.count("hook ran") == hooks, report
    assert expected_errors in errors, report
    if code not in (1, 11):
        assert "Traceback" not in errors, report


def settings_of(name: str) -> dict[str, str]:
    timeout = PROGRAMS[name][3]
    return {} if timeout is None else {"NPU_EXIT_TIMEOUT_S": timeout}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_ends_as_it_would_without_a_device(run_child, name):
    child = run_child(PROLOGUE.format(seed=0) + PROGRAMS[name][0], **settings_of(name))
    check_end(name, child.returncode, child.stdout, child.stderr)


def test_a_hundred_programs_end_at_random_points(tmp_path):
    choose = random.Random(2026)
    programs = [(choose.choice(list(PROGRAMS)), seed) for seed in range(100)]

    def run_half(number: int) -> list:
        folder = tmp_path / str(number)
        folder.mkdir()
        server = Server(folder)
        results = []
        for name, seed in programs[number::2]:
            results.append((name, *server.run(PROLOGUE.format(seed=seed) + PROGRAMS[name][0], settings_of(name))))
        server.close()
        return results

    with ThreadPoolExecutor(2) as pool:
        for results in pool.map(run_half, range(2)):
            for name, code, output, errors in results:
                check_end(name, code, output, errors)


def test_abandoned_work_is_reported(run_child):
    child = run_child(PROLOGUE.format(seed=0) + "gate = Gate(); work(20)", NPU_EXIT_TIMEOUT_S="0.1")
    assert child.returncode == 0
    assert "NPU_EXIT_TIMEOUT_S" in child.stderr and "npu:0" in child.stderr, child.stderr


def test_process_that_never_used_a_device_has_no_threads_of_it(run_child):
    child = run_child(
        """
        import os
        assert torch.npu.is_available() and torch.npu.device_count() == 2
        torch.manual_seed(1)
        assert not torch.npu.is_initialized()
        print(len(os.listdir("/proc/self/task")))
        """
    )
    without = run_child("import os; print(len(os.listdir('/proc/self/task')))", TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert (child.returncode, child.stdout) == (0, without.stdout), child.stderr


def test_idle_process_uses_less_than_a_hundredth_of_a_core(run_child):
    child = run_child(
        """
        import time
        for index in range(2):
            (torch.ones(512, 512, device=f"npu:{index}") @ torch.ones(512, 512, device=f"npu:{index}")).sum().item()
        start = time.process_time()
        time.sleep(10)  # the measured quantity is what idling costs
        print(time.process_time() - start)
        """
    )
    assert child.returncode == 0, child.stderr
    assert float(child.stdout) < 0.1


def test_forked_data_workers_do_not_slow_the_parents_writes(run_child):
    # With pages shared with a child, each write of the parent would fault and copy: count the faults, not the time.
    child = run_child(
        """
        import resource
        from torch.utils.data import DataLoader, TensorDataset
        x = torch.zeros(128 << 20, dtype=torch.uint8, device="npu")
        torch.npu.synchronize()
        data = TensorDataset(torch.arange(64.0))
        loader = iter(DataLoader(data, batch_size=8, num_workers=2, multiprocessing_context="fork"))
        next(loader)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        x.fill_(1)
        torch.npu.synchronize()
        print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
        print(sum(batch.sum().item() for (batch,) in loader) + 28)
        """
    )
    assert child.returncode == 0, child.stderr
    faults, total = child.stdout.split()
    assert int(faults) < 60  # 64 huge pages or 32,768 small ones would be copied
    assert float(total) == 2016.0


def test_data_loader_workers_feed_a_pinned_pipeline():
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    torch.ones(1, device="npu")
    loader = DataLoader(
        TensorDataset(torch.arange(64.0)), batch_size=8, num_workers=2, pin_memory=True, multiprocessing_context="fork"
    )
    batches = [batch for (batch,) in loader]
    assert all(batch.is_pinned() for batch in batches)
    assert sum(batch.to("npu", non_blocking=True).sum() for batch in batches).item() == 2016.0
