"""Operators without a row: they run on the host over aliases of device memory, and say so."""

from __future__ import annotations

import warnings

import pytest
import torch

LIBRARY = torch.library.Library("npu_fallback_test", "DEF")
LIBRARY.define("double(Tensor self) -> Tensor")
LIBRARY.define("double_(Tensor(a!) self) -> Tensor(a!)")
LIBRARY.define("tail(Tensor(a) self) -> Tensor(a)")
LIBRARY.define("join(Tensor[] parts, Tensor? scale=None) -> Tensor")
LIBRARY.define("fit(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
LIBRARY.define("overlap(Tensor self, Tensor other) -> bool")
LIBRARY.impl("double", lambda self: self * 2, "CPU")
LIBRARY.impl("double_", lambda self: self.mul_(2), "CPU")
LIBRARY.impl("tail", lambda self: self[1:], "CPU")
LIBRARY.impl("join", lambda parts, scale=None: torch.cat(parts) * (1 if scale is None else scale), "CPU")
LIBRARY.impl("fit", lambda self, *, out: out.resize_(self.shape).copy_(self), "CPU")
LIBRARY.impl(
    "overlap", lambda self, other: self.untyped_storage().data_ptr() == other.untyped_storage().data_ptr(), "CPU"
)
OPS = torch.ops.npu_fallback_test


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture
def x() -> torch.Tensor:
    return torch.arange(6.0, device="npu")


def test_counts_by_name_and_waits(x):
    torch.npu.op_stats(reset=True)
    result = OPS.double(x)
    counts = torch.npu.op_stats()["npu_fallback_test::double"]
    assert counts["fallback"] == 1
    assert result.device == x.device
    assert result.tolist() == [0, 2, 4, 6, 8, 10]


def test_results_do_not_depend_on_the_threads_of_the_caller():
    torch.manual_seed(0)
    matrix, threads = torch.randn(400, 400, device="npu"), torch.get_num_threads()
    found = []
    try:
        for count in (1, 2, 4):
            torch.set_num_threads(count)
            found.append(torch.linalg.eigvals(matrix))
            assert torch.get_num_threads() == count
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(values, found[0]) for values in found)


def test_mutates_device_memory_in_place(x):
    view = x[2:]
    assert OPS.double_(view) is view
    assert x.tolist() == [0, 1, 4, 6, 8, 10]


def test_a_view_stays_a_view(x):
    tail = OPS.tail(x)
    tail.zero_()
    assert tail.data_ptr() == x.data_ptr() + x.element_size()
    assert x.tolist() == [0] * 6


def test_lists_and_optional_tensors(x):
    assert OPS.join([x[:2], x[4:]]).tolist() == [0, 1, 4, 5]
    assert OPS.join([x[:2], x[4:]], x[2]).tolist() == [0, 2, 8, 10]


def test_an_output_that_grows(x):
    out = torch.empty(0, device="npu")
    assert OPS.fit(x, out=out) is out
    assert out.device.type == "npu"
    assert out.tolist() == x.tolist()


def test_arguments_of_one_storage_share_it_on_the_host(x):
    assert OPS.overlap(x[1:], x[:2])
    assert not OPS.overlap(x, x.clone())


def test_waits_for_earlier_work_of_the_stream(x):
    y = x
    for _ in range(50):
        y = y + 1
    assert OPS.double(y).tolist() == [100, 102, 104, 106, 108, 110]


def test_refuses_tensors_of_another_device(x):
    with pytest.raises(RuntimeError, match=r"same device.*npu:0.*cpu"):
        OPS.join([x, torch.ones(2)])


CPU_ONLY = """
torch.library.define("npu_fallback_child::negate", "(Tensor self) -> Tensor")
torch.library.impl("npu_fallback_child::negate", "CPU", lambda self: -self)
x = torch.ones(3, device="npu")
torch.ops.npu_fallback_child.negate(x); torch.ops.npu_fallback_child.negate(x)
"""


def test_warns_once_for_each_operator(run_child):
    child = run_child(CPU_ONLY)
    assert child.returncode == 0, child.stderr
    assert child.stderr.count("has no npu kernel: it waits for the device") == 1


def test_an_error_when_the_fallback_is_refused(run_child):
    child = run_child(CPU_ONLY, NPU_FALLBACK="error")
    assert child.returncode != 0
    assert "NotImplementedError" in child.stderr
    assert "NPU_FALLBACK=error forbids running it on the host" in child.stderr
    assert "register a kernel for npu (docs/custom_operators.md)" in child.stderr


def test_what_the_cpu_lacks_as_well_is_no_matter_of_the_fallback(run_child):
    child = run_child('import torch; torch.ones(3, device="npu")._values()', NPU_FALLBACK="error")
    assert "NotImplementedError: Could not run 'aten::_values'" in child.stderr


def test_silent_when_the_fallback_is_allowed(run_child):
    child = run_child(CPU_ONLY, NPU_FALLBACK="allow")
    assert child.returncode == 0, child.stderr
    assert "has no npu kernel" not in child.stderr
