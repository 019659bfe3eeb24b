"""Builds a wheel into dist/, looks for paths of this machine in it, and uses it in a new virtual environment."""

import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIBRARIES = ("torch_npu_lite/lib/libnpu_runtime.so", "torch_npu_lite/lib/libtorch_npu_lite.so", "torch_npu_lite/_C.")
TRIAL = """
import torch
x = torch.ones(2, device="npu") + 1
assert x.tolist() == [2.0, 2.0] and x.device.type == "npu"
print(f"{x} with torch {torch.__version__}, without another import")
"""


def run(*command: str, **options: str) -> None:
    print("+", *command, flush=True)
    if subprocess.run(command, **options).returncode != 0:  # type: ignore[call-overload]
        sys.exit(f"error: this command failed: {' '.join(command)}")


def build() -> Path:
    out = ROOT / "dist"
    run(sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-w", str(out), str(ROOT))
    return max(out.glob("*.whl"), key=os.path.getmtime)


def problems(wheel: Path) -> list[str]:
    """Missing files, paths of the build machine, and run paths that are not relative."""
    forbidden = {str(ROOT), str(Path.home()), sysconfig.get_path("purelib"), sys.base_prefix}
    found = []
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        found += [f"{name} is missing" for name in LIBRARIES if not any(n.startswith(name) for n in names)]
        for name in names:
            content = archive.read(name)
            found += [f"{name} names {path}" for path in sorted(forbidden) if path.encode() in content]
            if name.endswith(".so"):
                found += [f"{name} has the run path {path}" for path in run_paths(content) if "$ORIGIN" not in path]
    return found


def run_paths(library: bytes) -> list[str]:
    with tempfile.NamedTemporaryFile() as file:
        file.write(library)
        file.flush()
        text = subprocess.run(["readelf", "-d", file.name], capture_output=True, text=True, check=True).stdout
    return [path for paths in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", text) for path in paths.split(":")]


def use(wheel: Path) -> None:
    index = ["--extra-index-url", os.environ["TORCH_INDEX_URL"]] if os.environ.get("TORCH_INDEX_URL") else []
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "venv", f"{folder}/venv")
        run(f"{folder}/venv/bin/python", "-m", "pip", "install", "-q", *index, str(wheel))
        run(f"{folder}/venv/bin/python", "-c", TRIAL, cwd=folder)


def main() -> None:
    wheel = build()
    found = problems(wheel)
    if found:
        sys.exit("\n".join(["error: the wheel does not fit other machines:", *found]))
    print(f"{wheel.name}: {wheel.stat().st_size >> 20} MiB, no path of this machine")
    use(wheel)
    print("make wheel: passed")


if __name__ == "__main__":
    main()
