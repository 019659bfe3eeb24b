"""The command line: python -m torch_npu_lite.suite pytorch --src DIR [FILE ...]."""

from __future__ import annotations

import argparse
import importlib.util
import signal
import sys

from . import pytorch

NEEDED = ("pytest", "expecttest", "hypothesis", "numpy")  # by PyTorch's own test tools


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m torch_npu_lite.suite", description="Runs test suites on npu.")
    commands = parser.add_subparsers(required=True, metavar="SUITE")
    pytorch.add_arguments(commands.add_parser("pytorch", help=pytorch.__doc__, description=pytorch.__doc__))
    options = parser.parse_args()
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        print(f"error: needs {', '.join(missing)}: pip install {' '.join(missing)}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what ends a CI job keeps results as Ctrl-C does
    return pytorch.main(options)


if __name__ == "__main__":
    sys.exit(main())
