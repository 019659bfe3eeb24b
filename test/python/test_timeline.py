"""Recording tasks, measuring overlap, and the files a recording makes."""

import itertools
import json

import pytest
import torch

from torch_npu_lite import timeline


def record():
    with timeline.record() as recorded:
        x = torch.ones(1 << 16).pin_memory().to("npu", non_blocking=True)
        (x * 2).cpu()
    return recorded


def test_tasks_have_names_engines_and_ordered_times():
    tasks = record().tasks
    assert {"aten::copy_", "aten::mul.Tensor"} <= {task.name for task in tasks}
    assert {"dma_in", "vector", "dma_out"} <= {task.engine for task in tasks}
    assert all(0 < task.submit_ns <= task.start_ns <= task.end_ns and not task.failed for task in tasks)
    assert [task.start_ns for task in tasks] == sorted(task.start_ns for task in tasks)


def test_nothing_is_recorded_outside_the_block():
    recorded = record()
    count = len(recorded.tasks)
    torch.ones(8, device="npu").add_(1)
    torch.npu.synchronize()
    assert len(recorded.tasks) == count


def test_tasks_of_one_stream_do_not_overlap():
    spans = [(task.start_ns, task.end_ns) for task in record().tasks if task.stream == 0]
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(spans))


@pytest.mark.parametrize(
    "a, b, common",
    [
        ([(0, 10)], [(2, 4), (6, 12)], [(2, 4), (6, 10)]),
        ([(0, 1)], [(1, 2)], []),
        ([], [(0, 5)], []),
        ([(0, 5), (5, 9)], [(3, 7)], [(3, 7)]),
    ],
)
def test_intersection(a, b, common):
    assert timeline.intersect(timeline.merge(a), timeline.merge(b)) == common


def test_merge_joins_spans_that_touch():
    assert timeline.merge([(5, 6), (0, 2), (1, 3)]) == [(0, 3), (5, 6)]


def test_overlap_of_nothing():
    assert timeline.Timeline().overlap().fraction == 0


def test_trace_file(tmp_path):
    recorded = record()
    path = tmp_path / "trace.json"
    recorded.save_trace(path)
    events = json.loads(path.read_text())["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) == len(recorded.tasks)
    assert {"process_name", "thread_name"} <= {event["name"] for event in events}


def test_picture(tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    path = tmp_path / "timeline.png"
    record().save_png(path)
    assert path.read_bytes().startswith(b"\x89PNG")
