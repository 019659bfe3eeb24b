"""torch.compile on npu: Dynamo's front end with the backends that run PyTorch's operators; Inductor says what works."""

import copy

import pytest
import torch

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

BACKENDS = ("eager", "aot_eager")


@pytest.fixture(autouse=True)
def forget_compiled_code():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize("backend", BACKENDS)
def test_functions_compute_what_they_do_on_the_cpu(backend):
    def function(x, y):
        return torch.nn.functional.gelu(x @ y).sum(-1).softmax(0), x.shape[0] * y.mean()

    compiled = torch.compile(function, backend=backend, fullgraph=True)
    x, y = torch.randn(8, 16), torch.randn(16, 4)
    for actual, expected in zip(compiled(x.npu(), y.npu()), function(x, y), strict=True):
        assert actual.device.type == "npu"
        torch.testing.assert_close(actual.cpu(), expected)


def train(model, x, target, compile_=lambda model: model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    step = compile_(model)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(step(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("backend", BACKENDS)
def test_training_steps_equal_those_of_the_cpu(backend):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 5)
    )
    ours = copy.deepcopy(model).npu()
    x, target = torch.randn(6, 1, 8, 8), torch.randint(0, 5, (6,))
    expected = train(model, x, target)
    actual = train(ours, x.npu(), target.npu(), lambda m: torch.compile(m, backend=backend, fullgraph=True))
    assert actual == pytest.approx(expected, rel=1e-4)
    for one, other in zip(ours.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(one.cpu(), other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_streams_and_events_survive_compilation(backend):
    stream = torch.npu.Stream()

    def function(x):
        with torch.npu.stream(stream):
            y = x * 2
        torch.npu.current_stream().wait_stream(stream)
        return y + 1

    compiled = torch.compile(function, backend=backend)
    x = torch.ones(4, device="npu")
    torch.npu.synchronize()
    assert compiled(x).tolist() == [3.0] * 4
    assert torch.npu.current_stream() == torch.npu.default_stream()


@pytest.mark.parametrize("backend", BACKENDS)
def test_streams_that_are_context_managers_are_compiled_as_one_graph(backend):
    stream = torch.npu.Stream()

    def function(x):
        with stream:
            y = x * 2
        torch.accelerator.current_stream().wait_stream(stream)
        return y + 1

    x = torch.ones(4, device="npu")
    torch.npu.synchronize()
    assert torch.compile(function, backend=backend, fullgraph=True)(x).tolist() == [3.0] * 4
    assert torch.npu.current_stream() == torch.npu.default_stream()


def test_checkpoints_recompute_with_the_same_random_numbers():
    def block(x):
        return torch.nn.functional.dropout(x, 0.5).sin()

    def function(x):
        return torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)

    compiled = torch.compile(function, backend="aot_eager")
    draws = []
    for _ in range(2):
        x = torch.ones(1000, device="npu", requires_grad=True)
        y = compiled(x)
        y.sum().backward()
        assert 400 < y.count_nonzero() < 600
        torch.testing.assert_close(x.grad, y.detach().ne(0) * 2 * torch.cos(torch.tensor(2.0, device="npu")))
        draws.append(y.detach())
    assert not torch.equal(*draws)


def test_compiled_code_follows_the_device_of_its_arguments():
    compiled = torch.compile(lambda x: torch.arange(3, device=x.device) + x, backend="aot_eager", fullgraph=True)
    for device in ("npu:0", "npu:1", "cpu"):
        assert compiled(torch.ones(3, device=device)).device == torch.device(device)


def test_inductor_says_what_works_instead():
    compiled = torch.compile(lambda x: x.sin() + 1)
    with pytest.raises(Exception, match=r"(?s)generates no code for npu devices.*aot_eager") as caught:
        compiled(torch.ones(4, device="npu"))
    assert "KeyError" not in str(caught.value)


def test_dynamo_knows_npu_devices():
    from torch._dynamo.device_interface import get_interface_for_device

    interface = get_interface_for_device("npu:1")
    assert interface is get_interface_for_device(torch.device("npu"))
    assert interface.is_available() and interface.device_count() == torch.npu.device_count()
    with interface.device(1):
        assert interface.current_device() == 1
    assert interface.Worker.get_device_properties("npu:0").name == torch.npu.get_device_name(0)
    assert interface.get_raw_stream(0) == torch.npu.current_stream(0).native_handle
    stream = torch.npu.Stream()
    interface._set_stream_by_id(stream.stream_id, stream.device_index, stream.device_type)
    try:
        assert torch.npu.current_stream() == stream
    finally:
        torch.npu.set_stream(torch.npu.default_stream())


def test_importing_torch_does_not_import_dynamo(run_child):
    child = run_child(
        """
        import sys
        torch.ones(1, device="npu")
        print("torch._dynamo" in sys.modules, "torch._inductor" in sys.modules)
        import torch._dynamo.device_interface as interfaces
        print("npu" in interfaces.device_interfaces, interfaces.__spec__.name)
        """
    )
    expected = "False False\nTrue torch._dynamo.device_interface\n"
    assert (child.returncode, child.stdout) == (0, expected), child.stderr
