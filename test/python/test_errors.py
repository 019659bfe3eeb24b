"""Which exception types the runtime's errors become."""

import signal
import subprocess
import sys

import pytest
import torch
from shared import child_environment

from torch_npu_lite.testing import Gate


def test_operands_on_different_devices():
    with pytest.raises(RuntimeError, match=r"npu:0.*npu:1|npu:1.*npu:0"):
        torch.ones(2, device="npu:0") + torch.ones(2, device="npu:1")
    with pytest.raises(RuntimeError, match="cpu"):
        torch.ones(2, device="npu") + torch.ones(2)


def test_pinned_npu_tensor_is_refused():
    with pytest.raises(RuntimeError, match="pinned"):
        torch.empty(2, device="npu", pin_memory=True)


def test_copy_into_overlapping_elements_is_refused():
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.zeros(1, device="npu").expand(3).copy_(torch.ones(3, device="npu"))


def test_copy_of_other_sizes_is_refused():
    with pytest.raises(RuntimeError, match=r"3.*2|2.*3"):
        torch.zeros(2, device="npu").copy_(torch.ones(3))


def test_item_of_many_elements_is_refused():
    with pytest.raises(RuntimeError, match="2 elements"):
        torch.ones(2, device="npu").item()


def test_destroyed_stream_is_named():
    from torch_npu_lite import _C

    stream_id = _C.create_stream(0, 0)
    device_type = torch.npu.current_stream().device_type
    stream = torch.Stream(stream_id=stream_id, device_index=0, device_type=device_type)
    _C.destroy_stream(0, stream_id)
    with pytest.raises(ValueError, match=str(stream_id)):
        stream.synchronize()


@pytest.mark.parametrize("wait", ["torch.npu.synchronize()", "x.cpu()", "x.sum().item()", "stream.synchronize()"])
def test_ctrl_c_ends_a_wait(wait):
    program = f"""
import signal, torch
from torch_npu_lite.testing import Gate
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start with it ignored
x = torch.ones(1 << 16, device="npu")
stream = torch.npu.current_stream()
gate = Gate()
try:
    print("waiting", flush=True)
    {wait}
except KeyboardInterrupt:
    print("interrupted", flush=True)
    gate.open()
    torch.npu.synchronize()
    print(x.cpu().sum().item(), flush=True)
"""
    command = [sys.executable, "-c", program]
    child = subprocess.Popen(command, env=child_environment(), stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline().strip() == "waiting"
    child.send_signal(signal.SIGINT)
    rest, _ = child.communicate(timeout=60)
    # A signal that arrives before the wait begins ends it just the same.
    assert rest.split() == ["interrupted", "65536.0"]


def test_waiting_leaves_the_gil_to_others():
    import threading

    gate = Gate()
    opener = threading.Thread(target=gate.open)
    x = torch.ones(4, device="npu")
    opener.start()
    assert x.sum().item() == 4.0
    opener.join()
