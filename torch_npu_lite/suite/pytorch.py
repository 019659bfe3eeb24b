"""Runs test files of a PyTorch checkout on npu and on the CPU and reports the difference."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from pathlib import Path

import torch

from .area import Area, Comparison, Outcome, by_reason, compare, generic_id
from .engine import CollectionError, Run
from .progress import make_progress

EXAMPLES = 3  # tests that are named for a reason; the report file has all
GENERIC = "instantiate_device_type_tests("


class CheckoutError(ValueError):
    """The folder is no PyTorch checkout, or holds no such test file."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--src", required=True, type=Path, metavar="DIR", help="the PyTorch checkout")
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help=f"such as test_torch.py; default: all in DIR/test that use {GENERIC})"
    )
    parser.add_argument("--devices", default="npu,cpu", help="npu alone leaves the comparison out (%(default)s)")
    parser.add_argument("-k", dest="keyword", metavar="EXPRESSION", help="run the tests that match, as pytest's -k")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time (%(default)s)")
    parser.add_argument("--timeout", type=float, default=300, help="seconds that one test may take (%(default)g)")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the results there as JSON")
    parser.add_argument(
        "--journal", type=Path, default=Path("npu_suite"), metavar="DIR", help="where outcomes are kept (%(default)s)"
    )
    parser.add_argument("--resume", action="store_true", help="go on with an interrupted run: keep what has run")


def checkout_version(src: Path) -> str:
    """The version of the checkout. Raises CheckoutError when `src` is none."""
    version = src / "version.txt"
    if not version.is_file() or not (src / "test").is_dir():
        raise CheckoutError(f"--src {src}: no PyTorch checkout, it should have a file version.txt and a folder test")
    return version.read_text().strip()


def warn_of_version(version: str) -> None:
    def minor(text: str) -> list[str]:
        return text.split(".")[:2]

    if minor(version) != minor(torch.__version__):
        wanted = ".".join(minor(torch.__version__))
        print(
            f"warning: the checkout is of {version}, the installed PyTorch is {torch.__version__}; tests of another "
            f"version may fail on every device. Check out release/{wanted}",
            file=sys.stderr,
        )


def find_files(src: Path, names: list[str]) -> list[str]:
    """Test files relative to `src`: those named, relative to it or to its test folder, or all device-type tests."""
    if not names:
        files = sorted(path for path in (src / "test").rglob("test_*.py") if path.is_file())
        return [str(file.relative_to(src)) for file in files if GENERIC in file.read_text(errors="replace")]
    found = []
    for name in names:
        path = next((place for place in (f"test/{name}", name) if (src / place).is_file()), None)
        if path is None:
            raise CheckoutError(f"{name}: no such file in {src / 'test'}")
        found.append(path)
    return found


def area_of(file: str, src: Path, options: argparse.Namespace) -> Area:
    """The tests of one file. `-p torch_npu_lite` imports the device before PyTorch looks which devices there are."""
    keyword = ("-k", options.keyword) if options.keyword else ()
    return Area(
        name=file.removeprefix("test/").removesuffix(".py").replace("/", "."),
        title=file,
        paths=(str(src / file),),
        arguments=("-p", "torch_npu_lite", "--rootdir", str(src), *keyword),
        environment={"PYTORCH_TESTING_DEVICE_ONLY_FOR": "{device}"},
        directory=src / "test",
        devices=("npu", "cpu"),
        timeout=options.timeout,
    )


def run_file(area: Area, device: str, options: argparse.Namespace) -> list[Outcome]:
    """Outcomes of a file's device-type tests; a file that takes its process down while collected is one failure."""
    journal = options.journal / f"{area.name}.{device}.jsonl"
    run = Run(area.on(device), journal, options.jobs, make_progress(), resume=options.resume)
    try:
        run.run(lambda test: generic_id(test, device) != test)
    except CollectionError as error:
        print(f"  {error}")
        return [Outcome(area.title, "failed", error.reason, is_test=False)]
    return run.outcomes


def print_results(results: dict[str, Comparison]) -> None:
    width = max(map(len, results), default=4)
    print(f"\n{'file':{width}}  passed on CPU  passed on npu  on neither  differences  failures")
    for file, found in results.items():
        passed = f"{found.passed_on_cpu:15}{found.passed_on_npu:15}{sum(found.skipped.values()):12}"
        print(f"{file:{width}}{passed}{len(found.differences):13}{len(found.failures):10}")
    differences = {test: reason for found in results.values() for test, reason in found.differences.items()}
    if differences:
        print("\nDifferences: pass on the CPU and not on npu, or cannot be collected.")
        print("Failures: those of them that PyTorch does not leave out itself; they decide the exit code.")
    for reason, tests in by_reason(differences).items():
        print(f"  {len(tests)} x {reason}")
        print("".join(f"      {test}\n" for test in tests[:EXAMPLES]), end="")
        if len(tests) > EXAMPLES:
            print(f"      and {len(tests) - EXAMPLES} more")


def main(options: argparse.Namespace) -> int:
    """Runs what the command line asks for. Returns 2 for bad input.

    Returns 1 when a test fails on npu that passes on the CPU, or when the tests of a file cannot be collected.
    A test that PyTorch itself leaves out on npu, such as one for the CPU only, is reported and is no failure.
    """
    devices = options.devices.split(",")
    src = options.src.resolve()
    try:
        if not {"npu"} <= set(devices) <= {"npu", "cpu"}:
            raise CheckoutError(f"--devices {options.devices}: npu, or npu,cpu")
        if options.jobs < 1:
            raise CheckoutError(f"--jobs {options.jobs}: at least 1")
        version = checkout_version(src)
        files = find_files(src, options.files)
    except CheckoutError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    warn_of_version(version)
    results: dict[str, Comparison] = {}
    try:
        for file in files:
            area = area_of(file, src, options)
            on_npu = run_file(area, "npu", options)
            results[file] = compare(on_npu, run_file(area, "cpu", options) if "cpu" in devices else None)
    except KeyboardInterrupt:
        print("\nStopped; results are kept. The same command with --resume goes on.")
        return 130
    if not any(found.tests for found in results.values()):
        matching = f" that match -k {options.keyword}" if options.keyword else ""
        print(f"error: no device-type tests{matching} in {', '.join(files) or src / 'test'}", file=sys.stderr)
        return 2
    print_results(results)
    if options.report:
        files_found = {file: dataclasses.asdict(found) for file, found in results.items()}
        report = {"checkout": version, "torch": torch.__version__, "devices": devices, "files": files_found}
        options.report.write_text(json.dumps(report, indent=1) + "\n")
    return 1 if any(found.failures for found in results.values()) else 0
