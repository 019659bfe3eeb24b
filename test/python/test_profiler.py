"""PyTorch's own profilers on npu, which has no tracer of its own there yet."""

import torch


def test_events_around_each_operator_time_it(capfd):
    x = torch.ones(256, 256, device="npu")
    with torch.autograd.profiler.profile(use_device="npu") as profile:
        (x @ x).sum().item()
    times = {event.name: event.device_time_total for event in profile.function_events}
    assert times["aten::mm"] > 0
    assert times["aten::sum"] > 0
    assert capfd.readouterr().err.count("please report a bug") == 0
