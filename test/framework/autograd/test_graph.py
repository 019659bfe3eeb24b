"""Autograd's graph on npu: hooks, saved tensors, custom functions, nodes, modes, in-place rules."""

from __future__ import annotations

import inspect
import io
import warnings

import pytest
import torch
from on_both import assert_like_cpu, assert_refused_like_cpu
from torch import nn
from torch.autograd import graph
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


def leaf(device: str, *shape: int) -> torch.Tensor:
    return torch.randn(shape).to(device).requires_grad_()


# --- hooks


def tensor_hooks_in_order(device):
    x, calls = leaf(device, 3), []
    y = x * 2
    y.register_hook(lambda gradient: calls.append("y") or gradient * 10)
    removed = y.register_hook(lambda gradient: calls.append("removed"))
    x.register_hook(lambda gradient: calls.append("x") or gradient + 1)
    x.register_post_accumulate_grad_hook(lambda tensor: calls.append("accumulated"))
    removed.remove()
    y.sum().backward()
    return x.grad, calls


def retained_gradients(device):
    x = leaf(device, 3)
    y = x.exp()
    y.retain_grad()
    (y * y).sum().backward()
    return x.grad, y.grad


def module_hooks(device):
    seen = []
    layer = nn.Linear(3, 2)
    with torch.no_grad():
        layer.weight.fill_(0.5)
    layer.to(device)
    layer.register_full_backward_pre_hook(lambda module, gradient: (gradient[0] * 2,))
    layer.register_full_backward_hook(lambda module, inputs, outputs: seen.extend([inputs[0], outputs[0]]))
    layer.register_forward_hook(lambda module, arguments, output: output + 1)
    x = leaf(device, 4, 3)
    layer(x).sum().backward()
    return x.grad, layer.weight.grad, seen


def multi_gradient_hooks(device):
    a, b, c, seen = leaf(device, 2), leaf(device, 2), leaf(device, 2), []
    graph.register_multi_grad_hook((a, b, c), lambda gradients: seen.append([g is None for g in gradients]))
    graph.register_multi_grad_hook((a, b), lambda gradient: seen.append(gradient), mode="any")
    (a * b).sum().backward()
    return seen


def optimizer_in_backward(device):
    """A step for each parameter as soon as its gradient is there; no gradient is kept."""
    layer = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    for parameter in layer.parameters():
        nn.init.constant_(parameter, 0.1)
    layer.to(device)
    optimizers = {p: torch.optim.SGD([p], lr=0.1) for p in layer.parameters()}

    def step(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in layer.parameters():
        parameter.register_post_accumulate_grad_hook(step)
    for _ in range(3):
        layer(torch.ones(2, 4, device=device)).sum().backward()
    return [parameter.detach() for parameter in layer.parameters()], [p.grad for p in layer.parameters()]


def node_hooks(device):
    x = leaf(device, 3)
    y, calls = x.sin() * 2, []
    y.grad_fn.register_prehook(lambda gradients: calls.append("before") or (gradients[0] * 3,))
    y.grad_fn.register_hook(lambda inputs, outputs: calls.append((inputs[0], outputs[0])))
    y.sum().backward()
    return x.grad, calls


HOOKS = [
    tensor_hooks_in_order, retained_gradients, module_hooks, multi_gradient_hooks, optimizer_in_backward, node_hooks,
]  # fmt: skip


@pytest.mark.parametrize("program", HOOKS)
def test_hooks(program):
    assert_like_cpu(program)


# --- nodes


def names_and_links(device):
    x = leaf(device, 3)
    node = (x.exp() * x).sum().grad_fn
    names = []
    while node is not None:
        names.append((node.name(), len(node.next_functions), sorted(node.metadata)))
        node = node.next_functions[0][0] if node.next_functions else None
    return names


def saved_values(device):
    x = leaf(device, 2, 3)
    y = x.exp()
    pooled = torch.nn.functional.avg_pool1d(y[None], 2)
    return y.grad_fn._saved_result, y.sum(1).grad_fn._saved_dim, pooled.grad_fn.name()


def gradient_edges(device):
    x = leaf(device, 3)
    y = x.sin()
    edge = graph.get_gradient_edge(y)
    (gradient,) = torch.autograd.grad((y * 3).sum(), edge)
    return gradient, edge.node.name(), edge.output_nr


def disallowed_mutation_is_copied(device):
    with graph.allow_mutation_on_saved_tensors():
        x = leaf(device, 3)
        y = x.clone()
        z = y.sin()
        y.mul_(10)
        z.sum().backward()
    return x.grad


@pytest.mark.parametrize("program", [names_and_links, saved_values, gradient_edges, disallowed_mutation_is_copied])
def test_nodes(program):
    assert_like_cpu(program)


# --- saved tensors


@pytest.mark.parametrize("pinned", [False, True])
def test_saved_tensors_wait_on_the_host(pinned):
    packed = []

    class Recorder(graph.save_on_cpu):
        def __init__(self):
            super().__init__(pin_memory=pinned, device_type="npu")
            pack = self.pack_hook
            self.pack_hook = lambda tensor: packed.append(pack(tensor)) or packed[-1]

    def program(device):
        x = leaf(device, 64)
        with Recorder() if device == "npu" else graph.save_on_cpu():
            y = (x.sin() * x.exp()).prod()
        y.backward()
        return x.grad

    assert_like_cpu(program)
    stored = [tensor for _, tensor in packed if tensor.dim()]
    assert stored and all(tensor.device.type == "cpu" and tensor.is_pinned() is pinned for tensor in stored)


def test_saved_tensors_go_through_files():
    def pack(tensor):
        file = io.BytesIO()
        torch.save(tensor, file)
        return file

    def unpack(file):
        file.seek(0)
        return torch.load(file)

    def program(device):
        x = leaf(device, 8)
        with graph.saved_tensors_hooks(pack, unpack):
            y = (x.sin() * x).sum()
        y.backward()
        return x.grad

    assert_like_cpu(program)


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("preserved", [False, True])
def test_checkpoint_and_its_random_state(reentrant, preserved):
    masks = []

    def block(x):
        y = nn.functional.dropout(x, 0.5)
        masks.append(y.detach().clone())
        return y * y

    x = torch.ones(1000, device="npu", requires_grad=True)
    y = checkpoint(block, x, use_reentrant=reentrant, preserve_rng_state=preserved)
    state = torch.npu.get_rng_state()
    y.sum().backward()
    assert torch.equal(*masks) is preserved
    if preserved:
        assert torch.equal(torch.npu.get_rng_state(), state)
        assert torch.equal(x.grad, 2 * masks[0] * (masks[0] != 0) * 2)


def test_nested_and_sequential_checkpoints():
    def program(device):
        layers = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(4)]).to(device)
        x = leaf(device, 2, 4)
        y = checkpoint_sequential(layers, 2, x, use_reentrant=False)
        nested = checkpoint(lambda x: checkpoint(torch.sin, x, use_reentrant=False) * x, y, use_reentrant=False)
        nested.sum().backward()
        return [x.grad, *(parameter.grad for parameter in layers.parameters())]

    assert_like_cpu(program)


# --- custom functions


class Cube(torch.autograd.Function):
    """All that a custom function may define."""

    @staticmethod
    def forward(x):
        return x**3, 3 * x**2

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output[1])
        ctx.save_for_forward(inputs[0], output[1])

    @staticmethod
    def backward(ctx, gradient, gradient_of_slope):
        x, slope = ctx.saved_tensors
        return gradient * slope + gradient_of_slope * 6 * x

    @staticmethod
    def jvp(ctx, tangent):
        x, slope = ctx.saved_tensors
        return tangent * slope, 6 * x * tangent

    @staticmethod
    def vmap(info, in_dims, x):
        return Cube.apply(x), (in_dims[0], in_dims[0])


def cube(x: torch.Tensor) -> torch.Tensor:
    return Cube.apply(x)[0]


CUSTOM = {
    "backward": lambda x: torch.autograd.grad(cube(x).sum(), x),
    "twice": lambda x: torch.func.grad(lambda x: torch.func.grad(lambda x: cube(x).sum())(x).sum())(x),
    "jvp": lambda x: torch.func.jvp(cube, (x,), (torch.ones_like(x),)),
    "vmap": lambda x: torch.func.vmap(cube)(x),
    "per sample": lambda x: torch.func.vmap(torch.func.grad(lambda x: cube(x).sum()))(x),
    "gradcheck": lambda x: torch.autograd.gradcheck(Cube.apply, x.double(), check_forward_ad=True),
}


@pytest.mark.parametrize("use", CUSTOM.values(), ids=CUSTOM)
def test_custom_function(use):
    assert_like_cpu(lambda device: use(leaf(device, 4, 3)))


class InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        ctx.set_materialize_grads(False)
        signs = x.sign()
        ctx.mark_non_differentiable(signs)
        return x.mul_(2), signs

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient, gradient_of_signs):
        assert gradient_of_signs is None
        return gradient * 2


def test_custom_function_that_works_in_place():
    def program(device):
        x = leaf(device, 3)
        y, signs = InPlace.apply(x.clone())
        y.sum().backward()
        return x.grad, y, signs, signs.requires_grad, y.grad_fn.name()

    assert_like_cpu(program)


# --- modes and in-place rules


def gradient_modes(device):
    x = leaf(device, 3)
    with torch.no_grad():
        a = x * 2
        with torch.enable_grad():
            b = x * 2
    with torch.set_grad_enabled(False):
        c = x * 2
    with torch.inference_mode():
        d = x * 2
        view = x[1:]
    flags = [(t.requires_grad, t.is_inference(), t.is_leaf) for t in (a, b, c, d, view)]
    return flags, d.clone().is_inference(), (d.clone() * 3).requires_grad


def version_counters(device):
    x = torch.ones(3, device=device)
    view, versions = x[1:], [x._version]
    x.add_(1)
    view.mul_(2)
    with torch.no_grad():
        x.zero_()
    versions += [x._version, view._version, x.detach()._version, x.data._version]
    with torch.autograd._unsafe_preserve_version_counter(x):
        x.add_(1)
    return [*versions, x._version]


def views_written_in_place(device):
    x = leaf(device, 4, 3)
    y = x * 1
    y[1:].mul_(2)
    y.diagonal().add_(y[:, 0].sum())
    y.t()[0].sigmoid_()
    y.sum().backward()
    return x.grad


def derivatives_of_functions(device):
    functional = torch.autograd.functional

    def function(x, y):
        return (x.sin() * y).cumsum(0)

    x, y = torch.randn(3).to(device), torch.randn(3).to(device)
    scalar = lambda x, y: function(x, y).sum()  # noqa: E731
    return [
        functional.jacobian(function, (x, y), vectorize=True, strategy="forward-mode"),
        functional.jacobian(function, (x, y)),
        functional.hessian(scalar, (x, y), vectorize=True),
        functional.vhp(scalar, (x, y), (y, x)),
        functional.jvp(function, (x, y), (y, x)),
    ]


@pytest.mark.parametrize(
    "program", [gradient_modes, version_counters, views_written_in_place, derivatives_of_functions]
)
def test_modes_and_in_place(program):
    assert_like_cpu(program)


def write_to_saved(x):
    y = x.exp()
    y.add_(1)
    y.sum().backward()


def twice_without_retaining(x):
    y = x.exp().sum()
    y.backward()
    y.backward()


def write_to_inference_tensor(x):
    with torch.inference_mode():
        y = x * 1
    y.add_(1)


def differentiate_inference_tensor(x):
    with torch.inference_mode():
        y = x.detach() * 1
    (x * y).sum().backward()


REFUSED = {
    "write to saved": write_to_saved,
    "write to leaf": lambda x: x.add_(1),
    "write to view of leaf": lambda x: x[1:].add_(1),
    "write to one of several views": lambda x: (x * 1).unbind()[0].add_(1),
    "backward twice": twice_without_retaining,
    "backward of many": lambda x: (x * 1).backward(),
    "backward of none": lambda x: x.detach().sum().backward(),
    "gradient of another size": lambda x: (x * 1).backward(torch.ones(2, device=x.device)),
    "gradient set to another size": lambda x: setattr(x, "grad", torch.ones(2, device=x.device)),
    "gradient set to another dtype": lambda x: setattr(x, "grad", torch.ones(3, device=x.device).double()),
    "unused": lambda x: torch.autograd.grad(x.sum(), torch.ones(1, device=x.device, requires_grad=True)),
    "write to inference": write_to_inference_tensor,
    "save inference": differentiate_inference_tensor,
    "integers": lambda x: torch.ones(3, dtype=torch.int64, device=x.device).requires_grad_(),
    "numpy": lambda x: (x.cpu() if x.is_cpu else x.to("cpu")).numpy(),
    "deepcopy": lambda x: __import__("copy").deepcopy(x * 1),
    "forget": lambda x: (x * 1).requires_grad_(False),
}


@pytest.mark.parametrize("misuse", REFUSED.values(), ids=REFUSED)
def test_misuse_is_refused_in_the_words_of_the_cpu(misuse):
    assert_refused_like_cpu(lambda device: misuse(leaf(device, 3)))


# --- anomalies


def test_anomaly_mode_finds_nan_and_names_the_forward():
    def program(device):
        x = torch.zeros(3, device=device, requires_grad=True)
        y = torch.sqrt(x) * 0  # its derivative is inf * 0
        y.sum().backward()

    with torch.autograd.detect_anomaly(check_nan=True), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert_refused_like_cpu(program)
    assert any("torch.sqrt(x) * 0" in str(warning.message) for warning in caught)


def gather_then_spoil_the_index() -> torch.Tensor:
    x, index = torch.ones(3, device="npu", requires_grad=True), torch.zeros(2, dtype=torch.int64, device="npu")
    y = x.gather(0, index)
    index.data.fill_(99)  # autograd does not see it
    return y.sum()


def test_error_of_a_backward_task_names_its_operator():
    y = gather_then_spoil_the_index()
    with pytest.raises(torch.AcceleratorError, match=r"(?s)aten::scatter_add.*index 99 is out of bounds"):
        y.backward()
        torch.npu.synchronize()


def test_launch_blocking_and_anomaly_mode_name_the_forward_of_a_task_that_fails_in_backward(run_child):
    source = inspect.getsource(gather_then_spoil_the_index)
    child = run_child(source + "torch.autograd.set_detect_anomaly(True)\ngather_then_spoil_the_index().backward()",
                      NPU_LAUNCH_BLOCKING="1")  # fmt: skip
    assert "in gather_then_spoil_the_index" in child.stderr and "Error detected in GatherBackward0" in child.stderr
    assert "RuntimeError: index 99 is out of bounds" in child.stderr
