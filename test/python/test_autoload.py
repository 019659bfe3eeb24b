"""How the package is loaded, by torch or by name, and what happens when it cannot be."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from shared import child_environment

import torch_npu_lite

PACKAGE = Path(torch_npu_lite.__file__).parent.parent


def run(program, path=(), **settings):
    """In a new Python that finds `path` before this package, whatever the current folder holds."""
    environment = child_environment(**settings)
    environment["PYTHONPATH"] = os.pathsep.join(map(str, [*path, PACKAGE]))
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, timeout=120)


def entry_point(folder, name, target):
    """Installs a backend for autoload: the metadata of a distribution in a folder on the path."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[torch.backends]\n{name} = {target}\n")


@pytest.fixture
def installed(tmp_path):
    """A folder that makes torch load this package, as installing it does."""
    entry_point(tmp_path, "torch_npu_lite", "torch_npu_lite:_autoload")
    return tmp_path


def test_import_of_torch_is_enough(installed):
    result = run("import torch; print(torch.ones(2, device='npu').sum().item())", [installed])
    assert result.stdout.strip() == "2.0", result.stderr


@pytest.mark.parametrize("order", ["torch, torch_npu_lite", "torch_npu_lite, torch", "torch_npu_lite, torch_npu_lite"])
def test_any_order_of_imports(installed, order):
    result = run(f"import {order}; import torch; print(torch.npu.device_count() > 0)", [installed])
    assert result.stdout.strip() == "True", result.stderr


def test_import_says_nothing(installed):
    result = run("import torch, torch_npu_lite", [installed])
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_autoload_can_be_turned_off(installed):
    program = "import torch; print(hasattr(torch, 'npu')); import torch_npu_lite; print(hasattr(torch, 'npu'))"
    result = run(program, [installed], TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert result.stdout.split() == ["False", "True"], result.stderr


def test_setting_of_the_user_is_kept(installed):
    program = "import os, torch_npu_lite; print(os.environ.get('TORCH_DEVICE_BACKEND_AUTOLOAD'))"
    assert run(program, [installed]).stdout.strip() == "None"
    assert run(program, [installed], TORCH_DEVICE_BACKEND_AUTOLOAD="0").stdout.strip() == "0"


def test_import_starts_no_thread_and_initialises_nothing():
    program = (
        "import torch, os; before = len(os.listdir('/proc/self/task'))\n"
        "import torch_npu_lite; print(len(os.listdir('/proc/self/task')) - before, torch.npu.is_initialized())"
    )
    assert run(program, TORCH_DEVICE_BACKEND_AUTOLOAD="0").stdout.split() == ["0", "False"]


def test_another_version_of_pytorch_is_named_with_the_fix(installed):
    program = "import torch; torch.__version__ = '2.99.0'; import torch_npu_lite"
    result = run(program, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert result.returncode != 0
    for part in ("2.13", "2.99.0", "pip install"):
        assert part in result.stderr


def test_failing_autoload_warns_and_an_explicit_import_raises(installed):
    (installed / "sitecustomize.py").write_text("import sys; sys.platform = 'plan9'\n")
    result = run("import torch; print(torch.ones(2).sum().item()); import torch_npu_lite", [installed])
    assert result.stdout.strip() == "2.0"
    assert "npu device is not available" in result.stderr and "plan9" in result.stderr
    assert "ImportError" in result.stderr


def test_second_out_of_tree_backend_is_named(installed, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    (other / "other_backend.py").write_text(
        "import torch\ndef load(): torch.utils.rename_privateuse1_backend('other')\n"
    )
    entry_point(other, "other_backend", "other_backend:load")
    result = run("import torch; print(torch.ones(2).sum().item())", [other, installed])
    assert result.stdout.strip() == "2.0", result.stderr
    assert "npu device is not available" in result.stderr and "'other'" in result.stderr


def test_bad_configuration_does_not_break_the_import(installed):
    program = "import torch; print(torch.npu.is_available()); torch.ones(1, device='npu')"
    result = run(program, [installed], NPU_SIM_DEVICES="many")
    assert result.stdout.strip() == "False"
    assert "NPU_SIM_DEVICES" in result.stderr and "many" in result.stderr
