"""Custom operators as docs/custom_operators.md shows them: built, run, differentiated, compiled, exported."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import torch
import torch.utils.cpp_extension
from shared import ROOT, child_environment

import torch_npu_lite
from torch_npu_lite import cpp_extension
from torch_npu_lite.testing import Gate

EXAMPLE = ROOT / "examples" / "custom_operator"
CHECKS = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")  # the fourth knows CPU, CUDA and XPU only
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """Imports a file of the example; C++ is compiled into a folder of the test's."""
    if not shutil.which("c++"):
        pytest.skip("there is no C++ compiler to build an extension with")
    if not (Path(torch_npu_lite.__file__).parent / "include").exists():
        pytest.skip("the package was built without its headers; cmake --install or pip install brings them")
    patch = pytest.MonkeyPatch()
    patch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path_factory.mktemp("extensions")))
    patch.syspath_prepend(EXAMPLE)
    yield importlib.import_module
    patch.undo()


@pytest.fixture
def swish(example):
    example("cpp_operators")
    return torch.ops.example.swish


@pytest.fixture
def row_norms(example):
    example("cpp_operators")
    return torch.ops.example.row_norms


@pytest.fixture
def standardize(example):
    return example("python_operators").standardize


def test_every_piece_of_the_document_is_in_the_example(example):
    sources = "\n".join(path.read_text() for path in sorted(EXAMPLE.iterdir()) if path.is_file())
    pieces = re.findall(r"^```(\w+)\n(.*?)^```", (ROOT / "docs" / "custom_operators.md").read_text(), re.M | re.S)
    assert len(pieces) > 12
    assert [text for _, text in pieces if text not in sources and "opcheck" not in text] == []


def test_ninja_of_the_environment_is_found_or_asked_for(tmp_path, monkeypatch):
    (tmp_path / "ninja").touch(mode=0o755)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(torch.utils.cpp_extension, "load", lambda *_, **__: shutil.which("ninja"))
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    assert cpp_extension.load("nothing", []) == str(tmp_path / "ninja")
    (tmp_path / "ninja").unlink()
    with pytest.raises(RuntimeError, match=rf"needs ninja, .* neither in {tmp_path} nor on PATH.*-m pip install ninja"):
        cpp_extension.load("nothing", [])
    assert os.environ["PATH"] == "/nowhere"


def test_the_scripts_run(example):
    for script, shown in (("cpp_operators", "as on the CPU: True"), ("python_operators", "variance 1.0000 on npu:0")):
        command = [sys.executable, str(EXAMPLE / f"{script}.py")]
        run = subprocess.run(command, capture_output=True, text=True, env=child_environment(), timeout=300)
        assert run.returncode == 0 and shown in run.stdout, run.stdout + run.stderr


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(0,), (), (5,), (300, 40)])
def test_results_are_those_of_the_cpu(swish, dtype, shape):
    x = torch.randn(shape, dtype=dtype)
    assert torch.equal(swish(x.npu(), 0.7).cpu(), swish(x, 0.7))
    assert torch.equal(swish(x.npu().t() if x.dim() == 2 else x.npu()).cpu(), swish(x.t() if x.dim() == 2 else x))


def test_calls_do_not_wait_and_follow_the_stream(swish, row_norms, standardize):
    x = torch.zeros(64, 8, device="npu")
    torch.npu.op_stats(reset=True)
    with Gate():
        x += 3
        results = swish(x), row_norms(x), standardize(x)
        x.zero_()  # after them in the stream
    assert all(counts["host_waits"] == counts["fallback"] == 0 for counts in torch.npu.op_stats().values())
    assert torch.equal(results[0].cpu(), swish(torch.full((64, 8), 3.0)))
    assert torch.equal(results[1].cpu(), torch.full((64,), 72.0).sqrt())
    assert results[2].abs().max().item() == 0


def test_streams_and_memory_that_is_dropped_at_once(swish):
    side, x = torch.npu.Stream(), torch.full((4096,), 2.0, device="npu")
    side.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(side), Gate(side):
        y = swish(x.clone())
        torch.full((4096,), -9.0, device="npu")  # takes the memory of the copy, later in the stream
    side.synchronize()
    assert torch.equal(y.cpu(), swish(torch.full((4096,), 2.0)))


def test_the_other_device(swish):
    x = torch.ones(4, device="npu:1")
    assert swish(x).device == x.device
    with pytest.raises(RuntimeError, match=r"same device.*npu:0 and npu:1"):
        torch.ops.example.swish_backward(x.to("npu:0"), x, 1.0)


def test_host_tensors_are_refused_by_name(swish):
    on_npu = torch._C.DispatchKeySet(torch._C.DispatchKey.PrivateUse1)
    with pytest.raises(RuntimeError, match="example::swish: out is written and must be on npu, but is on cpu"):
        swish.default.redispatch(on_npu, torch.tensor(2.0))
    with pytest.raises(RuntimeError, match="checking argument x"):
        swish.default.redispatch(on_npu, torch.ones(3))


def test_statistics_and_error_reports_name_the_operator(swish):
    x = torch.ones(4, device="npu")
    torch.npu.op_report(reset=True)
    with torch.npu.record_op_times():
        swish(x)
        torch.npu.synchronize()
    row = next(row for row in torch.npu.op_report().rows if row.operator == "example::swish")
    assert row.calls["kernel"] == row.tasks == 1
    with pytest.raises(RuntimeError, match="swish: expected a tensor of float or double, got Long"):
        swish(x.long())
    torch.ops.example.swish_backward(x.half(), x.half(), 1.0)  # which the work has no code for
    with pytest.raises(torch.AcceleratorError, match=r"example::swish_backward failed on npu:0.*'Half'"):
        torch.npu.synchronize()


def test_autograd(swish, row_norms, standardize):
    x = torch.randn(6, 5, dtype=torch.float64, device="npu", requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: swish(x, 1.3), (x,))
    assert torch.autograd.gradcheck(standardize, (x,))
    y = torch.randn(300, 4, device="npu", requires_grad=True)
    row_norms(y).sum().backward()
    assert torch.allclose(y.grad, y.detach() / y.detach().norm(dim=1, keepdim=True))


def test_opcheck(swish, row_norms, standardize):
    x = torch.randn(6, 5, device="npu", requires_grad=True)
    for operator in (swish.default, row_norms.default, standardize):
        torch.library.opcheck(operator, (x,), test_utils=CHECKS)
    for operator in (swish.default, standardize):
        torch.library.opcheck(operator, (x.detach().cpu().requires_grad_(),))


class Program(torch.nn.Module):
    def forward(self, x):
        y = torch.ops.example.standardize(torch.ops.example.swish(x, 2.0))
        return torch.ops.example.row_norms(y)


@pytest.fixture
def program(swish, standardize):
    return Program()


def test_compile_and_export(program):
    x = torch.randn(8, 10, device="npu", requires_grad=True)
    expected, compiled = program(x), torch.compile(program, backend="aot_eager", fullgraph=True)(x)
    assert torch.equal(compiled.detach().cpu(), expected.detach().cpu())
    grads = [torch.autograd.grad(y.sum(), x)[0].cpu() for y in (expected, compiled)]
    assert torch.allclose(*grads)
    exported = torch.export.export(program, (x.detach(),))
    assert "example.swish.default" in str(exported.graph)
    assert torch.equal(exported.module()(x.detach()).cpu(), expected.detach().cpu())


def test_vmap(standardize):
    x = torch.randn(3, 4, 6, device="npu")
    assert torch.allclose(torch.vmap(standardize)(x), standardize(x))


@pytest.mark.conformance
def test_cmake_builds_the_library(example, tmp_path):
    package = Path(torch_npu_lite.__file__).parent
    if not shutil.which("cmake"):
        pytest.skip("cmake is not installed")
    prefixes = f"{Path(torch.__file__).parent / 'share/cmake'};{package / 'share/cmake'}"
    for command in (
        ["cmake", "-S", EXAMPLE, "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={prefixes}", "-DCMAKE_BUILD_TYPE=Debug"],
        ["cmake", "--build", tmp_path],
    ):
        done = subprocess.run(command, capture_output=True, text=True, env=child_environment())
        assert done.returncode == 0, done.stdout + done.stderr
    program = f"""
import torch
torch.ops.load_library("{tmp_path / "libcustom_operator.so"}")
print(torch.ops.example.swish(torch.ones(3, device="npu")).tolist())
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=child_environment())
    assert "[0.731" in run.stdout, run.stderr
