"""Builds C++ extensions that use npu devices, such as custom operators: ``torch.utils.cpp_extension`` with our paths.

C++ headers are included by path: ``<aten/ops/custom_operator.h>``, ``<aten/bridge/stream.h>``, ``<runtime/stream.h>``.
With CMake, ``find_package(torch_npu_lite)`` does the same. docs/custom_operators.md has examples.
"""

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).resolve().parent


def include_paths() -> list[str]:
    """Folders that the compiler looks for headers in, besides those of ``torch.utils.cpp_extension``."""
    return [str(_PACKAGE / "include" / "torch_npu_lite")]


def library_paths() -> list[str]:
    """Folders of our shared libraries."""
    return [str(_PACKAGE / "lib")]


def _link_flags() -> list[str]:
    flags = [flag for path in library_paths() for flag in (f"-L{path}", f"-Wl,-rpath,{path}")]
    return [*flags, "-ltorch_npu_lite", "-lnpu_runtime"]


@contextmanager
def _ninja_on_path() -> Iterator[None]:
    """Lets PyTorch find the ninja of this Python environment, whether or not the environment is activated."""
    scripts, path = sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)
    searched = f"{scripts}{os.pathsep}{path}"
    if not shutil.which("ninja", path=searched):
        raise RuntimeError(
            f"building an extension needs ninja, which is neither in {scripts} nor on PATH. "
            f'Install it with: "{sys.executable}" -m pip install ninja'
        )
    os.environ["PATH"] = searched
    try:
        yield
    finally:
        os.environ["PATH"] = path


def load(name: str, sources: str | list[str], **options: Any) -> Any:
    """Compiles and loads an extension now: ``torch.utils.cpp_extension.load`` and its options.

    Does nothing but load when neither sources nor options have changed since the last time. Needs ninja, of this Python
    environment or on ``PATH``: RuntimeError when there is none.
    """
    from torch.utils import cpp_extension

    options["extra_include_paths"] = [*(options.get("extra_include_paths") or []), *include_paths()]
    options["extra_ldflags"] = [*(options.get("extra_ldflags") or []), *_link_flags()]
    with _ninja_on_path():
        return cpp_extension.load(name, sources, **options)


def NpuExtension(name: str, sources: list[str], **options: Any) -> Any:  # noqa: N802  (as CUDAExtension)
    """A ``setuptools.Extension`` for setup.py, to be built with ``torch.utils.cpp_extension.BuildExtension``."""
    from torch.utils import cpp_extension

    options["include_dirs"] = [*options.get("include_dirs", []), *include_paths()]
    options["extra_link_args"] = [*options.get("extra_link_args", []), *_link_flags()]
    return cpp_extension.CppExtension(name, sources, **options)
