"""torch.npu.op_report: what it counts, how long, why the host waited, and how it reads."""

from __future__ import annotations

import threading

import pytest
import torch

from torch_npu_lite.testing import Gate

pytestmark = pytest.mark.timeout(60)  # behind a gate that nobody opens a wait does not end


@pytest.fixture(autouse=True)
def start_from_zero():
    torch.npu.synchronize()
    torch.npu.op_report(reset=True)


def rows(**options) -> dict:
    return {row.operator: row for row in torch.npu.op_report(**options).rows}


def held(call):
    """Calls while the current stream is held back, until the host waits for it."""
    torch.npu.op_report(reset=True)
    gate = Gate()

    def open_when_waited_for():
        while not torch.npu.op_report().total.host_waits:
            pass
        gate.open()

    opener = threading.Thread(target=open_when_waited_for)
    opener.start()
    call()
    opener.join()


def test_calls_by_route():
    x = torch.ones(4, device="npu")
    torch.npu.op_report(reset=True)
    for _ in range(3):
        x + x
    x.view(2, 2)
    found = rows()
    assert found["aten::add.Tensor"].calls["kernel"] == found["aten::add.Tensor"].total_calls == 3
    assert found["aten::view"].calls["view"] == 1
    assert torch.npu.op_report(reset=True).total.total_calls == 4
    assert torch.npu.op_report().rows == []


CAUSES = {
    "aten::_local_scalar_dense": ("scalar to host", lambda x: x.sum().item()),
    "aten::nonzero": ("the number of non-zero elements", lambda x: x.nonzero()),
    "aten::equal": ("its result is a Python bool", lambda x: x.equal(x)),
    "aten::copy_": ("copy to pageable host memory", lambda x: x.cpu()),
    "(outside operators)": ("synchronize", lambda x: torch.npu.synchronize()),
}


@pytest.mark.parametrize("operator", CAUSES)
def test_host_waits_tell_their_cause(operator):
    cause, call = CAUSES[operator]
    x = torch.ones(4, 4, device="npu")
    held(lambda: call(x))
    assert set(rows()[operator].host_waits) == {cause}
    stats = torch.npu.op_stats()
    assert stats[operator]["host_waits"] >= 1 if operator.startswith("aten") else operator not in stats


def test_a_wait_counts_when_there_is_nothing_left_to_wait_for():
    x = torch.ones(4, device="npu")
    torch.npu.synchronize()
    torch.npu.op_stats(reset=True)
    x.cpu()
    assert rows()["aten::copy_"].host_waits == {"copy to pageable host memory": 1}


def test_causes_of_copies_streams_and_launch_blocking(run_child):
    x = torch.ones(4, device="npu")
    pinned = torch.empty(4).pin_memory()
    held(lambda: pinned.copy_(x))
    assert set(rows()["aten::copy_"].host_waits) == {"blocking copy to pinned host memory"}
    held(lambda: x.copy_(pinned))
    assert set(rows()["aten::copy_"].host_waits) == {"blocking copy to the device"}
    held(torch.npu.current_stream().synchronize)
    assert set(rows()["(outside operators)"].host_waits) == {"stream synchronize"}
    child = run_child(
        "x = torch.ones(1 << 20, device='npu'); x + x; print(torch.npu.op_report())",
        NPU_LAUNCH_BLOCKING="1",
        NPU_SIM_INLINE="0",
    )
    assert "launch blocking" in child.stdout, child.stderr


def test_waits_and_work_belong_to_the_operator_that_was_called():
    x = torch.rand(10, device="npu")
    torch.npu.op_report(reset=True)
    with torch.npu.record_op_times():
        torch.special.logit(x).sigmoid().addmv(torch.rand(10, 10, device="npu"), x)
        torch.npu.synchronize()
    assert not any(row.tasks and not row.total_calls for row in rows().values())


def test_times_are_recorded_only_when_asked_for():
    x, other = torch.ones(256, 256, device="npu"), torch.npu.Stream()
    x @ x
    torch.npu.synchronize()
    assert rows()["aten::mm"].tasks == 0
    with torch.npu.record_op_times():
        with Gate():
            x @ x
            with torch.npu.stream(other):
                x[None].bmm(x[None])
            other.synchronize()
        torch.npu.synchronize()
    x @ x
    torch.npu.synchronize()
    assert "no times" not in str(torch.npu.op_report())
    mm, bmm = rows()["aten::mm"], rows()["aten::bmm"]
    assert mm.total_calls == 3 and mm.tasks == bmm.tasks == 1
    assert mm.run_ms > 0 and mm.queued_ms >= bmm.run_ms > 0  # it was queued all the while


def test_metadata_of_other_layouts_counts_as_views():
    x = torch.eye(3, device="npu").to_sparse()
    quantized = torch.quantize_per_tensor(torch.ones(4, 6, device="npu"), 0.5, 3, torch.quint8)
    torch.npu.op_report(reset=True)
    x._indices(), x._nnz(), quantized.q_scale()
    found = rows()
    for operator in ("aten::_indices", "aten::_nnz", "aten::q_scale"):
        assert found[operator].calls["view"] == found[operator].total_calls == 1


def test_kernels_of_several_layouts_add_up_under_one_name():
    x = torch.eye(3, device="npu")
    sparse = x.to_sparse()
    torch.npu.op_report(reset=True)
    x + x, sparse + sparse
    assert rows()["aten::add.Tensor"].total_calls == 2


def test_record_op_times_switches_back():
    torch.npu.record_op_times(True)
    with torch.npu.record_op_times(False):
        torch.ones(3, device="npu") + 1
    torch.ones(3, device="npu") * 2
    torch.npu.synchronize()
    torch.npu.record_op_times(False)
    found = rows()
    assert found["aten::add.Tensor"].tasks == 0 and found["aten::mul.Tensor"].tasks == 1


def test_tasks_of_several_streams_and_threads_are_told_apart():
    streams = [torch.npu.Stream() for _ in range(3)]
    x = torch.ones(64, requires_grad=True, device="npu")
    with torch.npu.record_op_times():
        for stream in streams:
            stream.wait_stream(torch.npu.default_stream())
            with torch.npu.stream(stream):
                (x * 2).exp().sum().backward()  # on a thread of autograd's
        torch.npu.synchronize()
    total = torch.npu.op_report().total
    assert total.tasks >= 3 * 5 and total.run_ms > 0


def test_the_table_is_aligned_sorted_and_limited():
    x = torch.ones(8, device="npu")
    torch.npu.op_report(reset=True)
    for _ in range(5):
        x * x
    x.view(2, 4)
    x + x
    report = torch.npu.op_report(sort="calls", limit=2)
    lines = str(report).splitlines()
    assert report.rows[0].operator == "aten::mul.Tensor"
    assert report.hidden == 1 and report.total.total_calls == 7
    assert " ".join(lines[0].split()) == "operator calls by route host waits tasks queued ms run ms the host waited for"
    assert lines[2].startswith("aten::mul.Tensor") and "kernel 5" in lines[2]
    assert lines[-2].startswith("total") and "(1 more operators)" in lines[-4]
    assert lines[-1] == "(no times: they are recorded within torch.npu.record_op_times())"
    assert {line.find("kernel") for line in lines[2:4]} - {-1} == {lines[0].find("by route")}
    assert [row.operator for row in torch.npu.op_report(sort="operator").rows] == sorted(
        ["aten::mul.Tensor", "aten::view", "aten::add.Tensor"]
    )


def test_notebooks_get_a_table():
    torch.ones(3, device="npu") + 1
    html = torch.npu.op_report()._repr_html_()
    assert html.startswith("<table>") and "<td>aten::add.Tensor</td>" in html and html.endswith("</table>")


def test_bad_arguments_say_what_is_right():
    with pytest.raises(ValueError, match=r"cannot sort by 'size'; choose one of cost, run, queued"):
        torch.npu.op_report(sort="size")
    with pytest.raises(ValueError, match="cannot show -1 operators"):
        torch.npu.op_report(limit=-1)


def test_the_sync_debug_mode_names_the_cause():
    torch.npu.set_sync_debug_mode("error")
    try:
        with pytest.raises(RuntimeError, match="cause: scalar to host"):
            torch.ones((), device="npu").item()
    finally:
        torch.npu.set_sync_debug_mode("default")


def test_the_fallback_is_a_cause(run_child):
    child = run_child(
        """
        torch.library.define("report::negate", "(Tensor self) -> Tensor")
        torch.library.impl("report::negate", "CPU", lambda self: -self)
        x = torch.ones(1 << 20, device="npu")
        for _ in range(20): x = x * 2
        torch.ops.report.negate(x)
        row, = [row for row in torch.npu.op_report().rows if row.operator == "report::negate"]
        print(row.calls["fallback"], set(row.host_waits) <= {"no npu kernel"})
        """,
        NPU_FALLBACK="allow",
    )
    assert child.stdout.split() == ["1", "True"], child.stderr
