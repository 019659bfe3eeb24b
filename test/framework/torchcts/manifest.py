"""What torchcts is told of npu: everything that its complete template has, with these changes."""

import runpy
from pathlib import Path

import torchcts

TEMPLATE = Path(torchcts.__file__).with_name("templates") / "manifest.complete.py"

manifest = runpy.run_path(str(TEMPLATE))["manifest"]
manifest["device_name"] = "npu"
manifest["backend_import"] = "torch_npu_lite"
manifest["capabilities"]["named_tensor"] = False  # deprecated in PyTorch, and no backend's business
