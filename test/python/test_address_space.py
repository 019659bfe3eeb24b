"""Device memory is not host memory: the host cannot follow a device pointer, and a device's memory ends somewhere."""

from __future__ import annotations

import functools
import resource
import signal

import pytest
import torch

GIB = 1 << 30

READ_DEVICE_POINTER = """
import ctypes, sys
x = torch.full((1000,), 1.5, device="npu:1")
torch.npu.synchronize("npu:1")
print(hex(x.data_ptr()), flush=True)
print(ctypes.c_float.from_address(x.data_ptr() + 40).value)
"""


def limit_address_space(bytes_: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (bytes_, bytes_))


def test_host_that_follows_a_device_pointer_dies_of_it(run_child):
    child = run_child(READ_DEVICE_POINTER, NPU_FAULT_REPORT="0")
    assert child.returncode == -signal.SIGSEGV
    assert child.stdout.startswith("0x") and child.stderr == ""


def test_fault_report_names_device_block_and_allocation(run_child):
    child = run_child(READ_DEVICE_POINTER, NPU_FAULT_REPORT="1")
    assert child.returncode == -signal.SIGSEGV
    place = f"memory of npu:1: 40 bytes into the block at {child.stdout.strip()} (4000 bytes, stream 0), "
    assert place in child.stderr, child.stderr
    assert "(2097152 bytes)" in child.stderr.split(place)[1]


def test_fault_report_leaves_other_faults_to_their_handlers(run_child):
    child = run_child(
        """
        import ctypes, faulthandler
        faulthandler.enable()
        torch.ones(1, device="npu")
        ctypes.string_at(8)
        """
    )
    assert child.returncode == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault" in child.stderr


def test_writing_through_a_device_pointer_dies_too(run_child):
    child = run_child(
        """
        import ctypes
        x = torch.zeros(4, device="npu")
        torch.npu.synchronize()
        ctypes.memset(x.data_ptr(), 1, 4)
        """
    )
    assert child.returncode == -signal.SIGSEGV


def test_unified_memory_lets_the_host_read(run_child):
    child = run_child(READ_DEVICE_POINTER, NPU_SIM_UNIFIED_MEMORY="1")
    assert child.returncode == 0, child.stderr
    assert child.stdout.splitlines()[1] == "1.5"


def test_pinned_memory_is_readable_on_both_sides():
    import ctypes

    x = torch.full((4,), 2.5).pin_memory()
    assert x.is_pinned()
    assert ctypes.c_float.from_address(x.data_ptr()).value == 2.5
    assert x.to("npu", non_blocking=True).tolist() == [2.5] * 4


def test_numpy_refuses_device_memory():
    with pytest.raises(TypeError, match="npu"):
        torch.ones(2, device="npu").numpy()


def test_small_devices_fit_a_limited_address_space(run_child):
    child = run_child(
        "print(torch.ones(4, device='npu:0').sum().item() + torch.ones(4, device='npu:1').sum().item())",
        preexec=functools.partial(limit_address_space, 16 * GIB),
        NPU_SIM_MEMORY="1G",
    )
    assert (child.returncode, child.stdout) == (0, "8.0\n"), child.stderr


def test_devices_that_do_not_fit_the_address_space_name_the_limit(run_child):
    child = run_child(
        "torch.ones(4, device='npu')",
        preexec=functools.partial(limit_address_space, 16 * GIB),
        NPU_SIM_MEMORY="32G",
    )
    assert child.returncode == 1
    last_line = child.stderr.strip().splitlines()[-1]
    assert "ulimit -v" in last_line and "NPU_SIM_MEMORY" in last_line, child.stderr


def test_eight_devices_work_at_once(run_child):
    child = run_child(
        """
        parts = [torch.full((1000,), float(i), device=f"npu:{i}") for i in range(torch.npu.device_count())]
        total = sum(part.to("npu:7") for part in parts)
        print(len(parts), total.unique().tolist())
        """,
        NPU_SIM_DEVICES="8",
    )
    assert (child.returncode, child.stdout) == (0, "8 [28.0]\n"), child.stderr


def test_reserved_addresses_cost_no_memory(run_child):
    child = run_child(
        """
        import psutil
        before = psutil.Process().memory_info().rss
        for index in range(8):
            torch.npu.synchronize(index)
        print(psutil.Process().memory_info().rss - before)
        """,
        NPU_SIM_DEVICES="8",
    )
    assert child.returncode == 0, child.stderr
    assert int(child.stdout) < 64 << 20
