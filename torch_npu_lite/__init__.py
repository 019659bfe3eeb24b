"""PyTorch on a simulated NPU: ``torch.ones(2, device="npu")``.

Installed, the package is loaded by ``import torch`` itself (entry point ``torch.backends``); ``import torch_npu_lite``
does the same, in either order. Loading neither starts threads nor initialises devices.
"""

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator

TORCH = "2.13"  # the PyTorch this package was built for

_autoload_error: Exception | None = None


@contextlib.contextmanager
def _without_autoload() -> Iterator[None]:
    """Importing torch would load this package a second time."""
    name = "TORCH_DEVICE_BACKEND_AUTOLOAD"
    previous = os.environ.get(name)
    os.environ[name] = "0"
    try:
        yield
    finally:
        if previous is None:
            del os.environ[name]
        else:
            os.environ[name] = previous


def _check_platform() -> None:
    if sys.platform != "linux":
        raise ImportError(f"torch_npu_lite runs on Linux only; this is {sys.platform}.")


def _check_torch(version: str, other_backend: str) -> None:
    if not version.startswith(f"{TORCH}."):
        raise ImportError(
            f"torch_npu_lite was built for PyTorch {TORCH}, but PyTorch {version} is installed. "
            f'Install the right one with: pip install "torch=={TORCH}.*"'
        )
    if other_backend not in ("privateuseone", "npu"):
        raise ImportError(
            f"the device backend '{other_backend}' is loaded already, and PyTorch has room for one out-of-tree "
            "backend in a process. Uninstall one of the two, or set "
            "TORCH_DEVICE_BACKEND_AUTOLOAD=0 and import the one you want."
        )


def _load() -> None:
    _check_platform()
    with _without_autoload():
        import torch
    _check_torch(torch.__version__, torch._C._get_privateuse1_backend_name())
    from torch_npu_lite import _register

    _register.register()


def _torch_is_importing() -> bool:
    spec = getattr(sys.modules.get("torch"), "__spec__", None)
    return getattr(spec, "_initializing", False)


def _autoload() -> None:
    """Entry point of the group ``torch.backends``. Never breaks ``import torch``: says why npu is missing instead."""
    if _autoload_error is None:
        return
    warnings.warn(f"The npu device is not available: {_autoload_error}", RuntimeWarning, stacklevel=2)
    sys.modules.pop(__name__, None)  # an explicit import tries again, and raises


try:
    _load()
except Exception as error:
    if not _torch_is_importing():
        raise
    _autoload_error = error
