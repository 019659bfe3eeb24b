"""What goes wrong is reported once, at the right place, by a message that says what failed on what. See also
test_address_space.py for faults and test_process_end.py for errors that nobody looked at."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import pytest
import torch
from shared import child_environment

from torch_npu_lite.testing import Gate

MIB = 1 << 20


@pytest.fixture(autouse=True)
def no_error_left_behind():
    yield
    for device in range(torch.npu.device_count()):
        torch.npu.synchronize(device)


def fail_on(device: str = "npu") -> torch.Tensor:
    """Queues a task that fails: the last index is out of range, which only the kernel can see."""
    table = torch.ones(10, 3, device=device)
    index = torch.tensor([1, 99]).to(device, non_blocking=True)  # a blocking copy would wait, and report
    return table.index_select(0, index)


# --- errors of tasks


def test_failing_kernel_surfaces_at_the_next_synchronising_call():
    fail_on()
    with pytest.raises(torch.AcceleratorError, match="index_select"):
        torch.npu.synchronize()


def test_error_is_reported_once():
    fail_on()
    with pytest.raises(torch.AcceleratorError):
        torch.npu.current_stream().synchronize()
    torch.npu.synchronize()


def test_report_names_operator_stream_and_operands():
    stream = torch.npu.Stream()
    with torch.npu.stream(stream):
        fail_on()
    with pytest.raises(torch.AcceleratorError) as caught:
        torch.npu.synchronize()
    message = str(caught.value)
    for part in ("index_select", "npu:0", f"stream {stream.stream_id}", "[10, 3]", "[2]", "out of range"):
        assert part in message, message
    assert "frame #" not in message  # no native stack


def test_item_on_another_stream_reports_the_error():
    fail_on()
    other = torch.npu.Stream()
    other.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(other), pytest.raises(torch.AcceleratorError, match="index_select"):
        torch.ones((), device="npu").item()


def test_event_synchronize_reports_the_error():
    fail_on()
    event = torch.npu.current_stream().record_event()
    with pytest.raises(torch.AcceleratorError):
        event.synchronize()


def test_work_goes_on_after_an_error():
    fail_on()
    with pytest.raises(torch.AcceleratorError):
        torch.npu.synchronize()
    assert (torch.ones(3, device="npu") + 1).tolist() == [2.0] * 3


def test_error_of_one_device_does_not_touch_another():
    fail_on("npu:1")
    torch.npu.synchronize("npu:0")
    assert torch.ones(2, device="npu:0").tolist() == [1.0, 1.0]
    with pytest.raises(torch.AcceleratorError, match="npu:1"):
        torch.npu.synchronize("npu:1")


@pytest.mark.parametrize(
    "call",
    [
        lambda table, index: torch.nn.functional.embedding(index, table),
        lambda table, index: table.gather(0, index[:, None].expand(-1, 3)),
        lambda table, index: table[index],
        lambda table, index: table.index_add_(0, index, torch.ones(2, 3, device="npu")),
    ],
    ids=["embedding", "gather", "index", "index_add_"],
)
def test_index_out_of_range_is_an_error_not_the_end_of_the_process(call):
    table = torch.ones(10, 3, device="npu")
    call(table, torch.tensor([1, 99], device="npu"))
    with pytest.raises((torch.AcceleratorError, IndexError)):
        torch.npu.synchronize()


def test_launch_blocking_raises_the_original_type_at_the_call(run_child):
    child = run_child(
        """
        table, index = torch.ones(10, 3, device="npu"), torch.tensor([1, 99], device="npu")
        try:
            table.index_select(0, index)
        except torch.AcceleratorError as error:
            print("wrapped", error)
        except (IndexError, RuntimeError) as error:
            print("original", error)
        torch.npu.synchronize()
        """,
        NPU_LAUNCH_BLOCKING="1",
    )
    assert child.returncode == 0, child.stderr
    assert child.stdout.startswith("original") and "out of range" in child.stdout


def test_traceback_names_the_line_that_launched_the_task(run_child):
    child = run_child(
        """
        def guilty_function():
            torch.ones(10, 3, device="npu").index_select(0, torch.tensor([99], device="npu"))
        guilty_function()
        torch.npu.synchronize()
        """,
        NPU_TRACEBACK="1",
    )
    assert child.returncode == 1
    assert "launched from" in child.stderr and "in guilty_function" in child.stderr, child.stderr


def test_argument_errors_are_raised_at_the_call():
    with pytest.raises(RuntimeError, match="size"):
        torch.ones(2, 3, device="npu") + torch.ones(4, 5, device="npu")
    with pytest.raises(RuntimeError, match="shape"):
        torch.ones(2, 3, device="npu") @ torch.ones(2, 3, device="npu")
    with pytest.raises(IndexError, match=r"[Dd]imension"):
        torch.ones(2, device="npu").sum(dim=4)


# --- memory


def test_out_of_memory_is_pytorchs_error_and_work_goes_on(run_child):
    child = run_child(
        """
        MIB = 1 << 20
        small = torch.ones(MIB // 4, device="npu")
        baseline = torch.npu.memory_allocated()
        held = []
        try:
            while True:
                held.append(torch.ones(8 * MIB // 4, device="npu"))
        except torch.OutOfMemoryError as error:
            print(error)
        assert 5 <= len(held) <= 7, len(held)
        del held
        assert torch.npu.memory_allocated() == baseline
        again = [torch.ones(8 * MIB // 4, device="npu") for _ in range(5)]
        print("sum", (again[-1].sum() + small.sum()).item())
        """,
        NPU_SIM_MEMORY="64M",
    )
    assert child.returncode == 0, child.stderr
    message = child.stdout.lower()
    for word in ("8.00 mib", "allocated", "reserved", "free", "64.00 mib", "npu:0"):
        assert word in message, child.stdout
    assert child.stdout.strip().endswith("sum 2359296.0")


def test_request_larger_than_the_device_is_refused_at_once():
    total = torch.npu.get_device_properties().total_memory
    reserved = torch.npu.memory_reserved()
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(2 * total, dtype=torch.uint8, device="npu")
    assert torch.npu.memory_reserved() <= reserved


def test_used_memory_is_the_sum_of_its_owners(run_child):
    child = run_child(
        """
        tensors = [torch.ones(size, device="npu") for size in (1, 1000, 1 << 20)]
        address = torch.npu.caching_allocator_alloc(3 << 20)
        free, total = torch.npu.mem_get_info()
        assert total - free == torch.npu.memory_reserved(), (total - free, torch.npu.memory_reserved())
        torch.npu.caching_allocator_delete(address)
        del tensors
        torch.npu.synchronize()
        torch.npu.empty_cache()
        assert torch.npu.mem_get_info() == (total, total), torch.npu.mem_get_info()
        assert torch.npu.memory_reserved() == torch.npu.memory_allocated() == 0
        """
    )
    assert child.returncode == 0, child.stderr


# --- wrong devices and operands


@pytest.mark.parametrize("device", ["npu:7", "npu:2"])
def test_device_that_does_not_exist_is_named(device):
    with pytest.raises((RuntimeError, torch.AcceleratorError)) as caught:
        torch.ones(2, device=device)
    assert device[-1] in str(caught.value) and "npu:0 to npu:1" in str(caught.value), caught.value


@pytest.mark.parametrize(
    "call", [torch.npu.synchronize, torch.npu.get_device_name, torch.npu.mem_get_info, torch.npu.current_stream]
)
def test_negative_device_index_is_refused(call):
    with pytest.raises((RuntimeError, ValueError, AssertionError), match="-3"):
        call(-3)


def test_device_string_with_a_negative_index_is_refused():
    with pytest.raises(RuntimeError, match="-3"):
        torch.ones(2, device="npu:-3")


def test_set_device_refuses_a_device_that_does_not_exist():
    with pytest.raises((RuntimeError, torch.AcceleratorError), match="7"):
        torch.npu.set_device(7)
    assert torch.npu.current_device() == 0


@pytest.mark.parametrize("others", ["cpu", "npu:1"])
def test_operands_of_different_devices_are_refused(others):
    with pytest.raises(RuntimeError, match=f"(?s)npu:0.*{others}|{others}.*npu:0"):
        torch.ones(2, 2, device="npu:0") + torch.ones(2, 2, device=others)


@pytest.mark.parametrize("others", ["cpu", "npu:1"])
def test_matrix_product_refuses_operands_of_different_devices(others):
    with pytest.raises(RuntimeError, match=f"(?s)npu.*{others}|{others}.*npu"):
        torch.ones(2, 2, device="npu:0") @ torch.ones(2, 2, device=others)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("NPU_SIM_DEVICES", "zero"),
        ("NPU_SIM_DEVICES", "0"),
        ("NPU_SIM_MEMORY", "12 bananas"),
        ("NPU_SIM_QUEUE_DEPTH", "100"),
        ("NPU_LAUNCH_BLOCKING", "maybe"),
        ("NPU_VISIBLE_DEVICES", "9"),
        ("NPU_FALLBACK", "sometimes"),
    ],
)
def test_unusable_setting_names_variable_and_value(run_child, variable, value):
    child = run_child("torch.ones(2, device='npu')", **{variable: value})
    last_line = child.stderr.strip().splitlines()[-1]
    assert child.returncode == 1
    assert variable in last_line and value in last_line, child.stderr


def test_unknown_setting_is_reported(run_child):
    child = run_child("torch.ones(2, device='npu')", NPU_SIM_MEMROY="1G")
    assert child.returncode == 0
    assert "NPU_SIM_MEMROY" in child.stderr


# --- fork


def test_forked_child_of_an_initialised_parent_gets_a_clear_error(run_child):
    child = run_child(
        """
        import os, sys
        x = torch.ones(2, device="npu")
        pid = os.fork()
        if pid == 0:
            assert torch.npu.is_available() and torch.npu.device_count() == 2
            try:
                torch.ones(2, device="npu")
            except RuntimeError as error:
                print(error, flush=True)
                sys.exit(3)
            sys.exit(4)
        _, status = os.waitpid(pid, 0)
        assert (x + 1).tolist() == [2.0, 2.0]
        sys.exit(os.waitstatus_to_exitcode(status))
        """
    )
    assert child.returncode == 3, child.stderr
    assert "fork" in child.stdout and "spawn" in child.stdout, child.stdout


def test_forked_child_works_when_the_parent_had_not_initialised(run_child):
    child = run_child(
        """
        import os, sys
        assert torch.npu.is_available() and not torch.npu.is_initialized()
        pid = os.fork()
        value = int((torch.ones(2, device="npu") + 1).sum().item())
        if pid == 0:
            sys.exit(value)
        _, status = os.waitpid(pid, 0)
        sys.exit(value + os.waitstatus_to_exitcode(status))
        """
    )
    assert child.returncode == 8, child.stderr


# --- waits that do not end


def interrupt_wait(wait: str) -> str:
    """Runs `wait` behind a closed gate until the hang report appears, presses Ctrl-C, and returns the report."""
    program = f"""
import signal
import torch
from torch_npu_lite.testing import Gate
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start with it ignored
held, waiting = torch.npu.Stream(), torch.npu.Stream()
gate = Gate(held)
x = torch.ones(4, device="npu")
torch.npu.current_stream().synchronize()
with torch.npu.stream(held):
    x += 1
waiting.wait_event(held.record_event())
try:
    {wait}
except KeyboardInterrupt:
    print("interrupted", flush=True)
gate.open()
torch.npu.synchronize()
print(x.tolist())
"""
    child = subprocess.Popen(
        [sys.executable, "-u", "-c", program],
        env=child_environment(NPU_HANG_REPORT_S="0.2"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        report = "".join(child.stderr.readline() for _ in range(3))  # says that it waits, and both streams
        child.send_signal(signal.SIGINT)
        output, rest = child.communicate(timeout=60)
    finally:
        child.kill()
    assert (child.returncode, output) == (0, "interrupted\n[2.0, 2.0, 2.0, 2.0]\n"), report + rest
    return report + rest


@pytest.mark.parametrize(
    "wait",
    ["torch.npu.synchronize()", "waiting.synchronize()", "held.record_event().synchronize()"],
    ids=["device", "stream", "event"],
)
def test_ctrl_c_ends_a_wait_on_a_closed_gate(wait):
    interrupt_wait(wait)


def test_hang_report_names_what_waits_for_what():
    report = interrupt_wait("waiting.synchronize()")
    assert re.search(r"waited .* for npu:0 stream 2", report), report
    assert re.search(r"npu:0 stream 1: .* waits for a value .*gate", report), report
    assert re.search(r"npu:0 stream 2: .* waits for task 2 of npu:0 stream 1", report), report


def test_errors_of_threads_reach_the_device_not_the_thread():
    import threading

    thread = threading.Thread(target=fail_on)
    with Gate():
        thread.start()
        thread.join()
    with pytest.raises(torch.AcceleratorError, match="index_select"):
        torch.npu.synchronize()


def test_device_is_usable_after_many_errors():
    for _ in range(20):
        fail_on()
    for _ in range(20):
        with pytest.raises(torch.AcceleratorError):
            torch.npu.synchronize()
    torch.npu.synchronize()
