"""Builds the C++ libraries with CMake and Ninja and puts them into the package; the rest is in pyproject.toml."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import setuptools
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# No build step may load an installed torch_npu_lite along with torch.
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"

ROOT = Path(__file__).resolve().parent
TORCH = "2.13"


def check_setuptools() -> None:
    if int(setuptools.__version__.split(".")[0]) < 77:
        sys.exit(
            f"error: building torch_npu_lite needs setuptools 77 or later, but {setuptools.__version__} is installed. "
            f'Run: "{sys.executable}" -m pip install -r requirements/build.txt'
        )


def check_platform() -> None:
    if sys.platform != "linux":
        sys.exit(f"error: torch_npu_lite supports Linux only; this is {sys.platform}.")


def check_torch() -> None:
    install = f'"{sys.executable}" -m pip install "torch=={TORCH}.*"'
    try:
        found = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        sys.exit(f"error: building torch_npu_lite needs PyTorch {TORCH}. Install it with: {install}")
    if not found.startswith(f"{TORCH}."):
        sys.exit(f"error: torch_npu_lite needs PyTorch {TORCH}, but {found} is installed. Replace it with: {install}")


def find_tool(name: str) -> str:
    """The program of this Python environment, or else the one on PATH."""
    found = shutil.which(name, path=sysconfig.get_path("scripts")) or shutil.which(name)
    if not found:
        sys.exit(f'error: {name} is missing. Install it with: "{sys.executable}" -m pip install {name}')
    return found


def build_folder(in_place: bool) -> Path:
    """build/release, unless it belongs to another Python, as when pip builds in an environment of its own."""
    release = ROOT / "build" / "release"
    cache = release / "CMakeCache.txt"
    python = re.search(r"^Python3_EXECUTABLE:\w+=(.*)$", cache.read_text(), re.MULTILINE) if cache.exists() else None
    return release if in_place or (python and python[1] == sys.executable) else ROOT / "build" / "wheel"


class CMakeBuild(build_ext):
    """Replaces the compiler calls of setuptools; the CMake install rules say which file goes where."""

    def run(self) -> None:
        check_platform()
        check_torch()
        in_place = bool(self.inplace or self.editable_mode)
        build = build_folder(in_place)
        prefix = ROOT if in_place else Path(self.build_lib).resolve()
        cmake = find_tool("cmake")
        configure = [cmake, "-S", str(ROOT), "-B", str(build), "-G", "Ninja"]
        configure += [f"-DCMAKE_MAKE_PROGRAM={find_tool('ninja')}", f"-DPython3_EXECUTABLE={sys.executable}"]
        if not (build / "CMakeCache.txt").exists():
            configure += ["-DNPU_BUILD_TESTS=OFF"]  # make test turns them on in build/release
        self.call(configure)
        self.call([cmake, "--build", str(build)])
        self.call([cmake, "--install", str(build), "--prefix", str(prefix)])

    def call(self, command: list[str]) -> None:
        print("+", *command, flush=True)
        if subprocess.run(command).returncode != 0:
            sys.exit("error: the C++ build failed; the message above says why.")

    def get_outputs(self) -> list[str]:
        return []

    def get_output_mapping(self) -> dict[str, str]:
        return {}


check_setuptools()
setup(ext_modules=[Extension("torch_npu_lite._C", sources=[])], cmdclass={"build_ext": CMakeBuild})
