"""The C++ example is built against the package as an outside program would be, and runs without Python."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from shared import ROOT, child_environment

import torch_npu_lite


@pytest.mark.timeout(600)
def test_example_builds_and_runs(tmp_path):
    package = Path(torch_npu_lite.__file__).parent
    if not (package / "share/cmake/torch_npu_lite").exists():
        pytest.skip("the package was built without its CMake files; cmake --install or pip install brings them")
    if not shutil.which("cmake"):
        pytest.skip("cmake is not installed")
    prefixes = f"{Path(torch.__file__).parent / 'share/cmake'};{package / 'share/cmake'}"
    source = ROOT / "examples/libtorch"
    environment = child_environment()
    for command in (
        ["cmake", "-S", source, "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={prefixes}", "-DCMAKE_BUILD_TYPE=Debug"],
        ["cmake", "--build", tmp_path],
    ):
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
    run = subprocess.run([tmp_path / "two_streams"], capture_output=True, text=True, env=dict(os.environ), timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "two streams: 1" in run.stdout and "equal to the CPU" in run.stdout
