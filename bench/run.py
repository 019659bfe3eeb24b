"""Speed of the npu as ratios to PyTorch on the CPU: python bench/run.py [--quick] [--only add] [--json FILE].

Each case runs in one process on both devices, interleaved, after its results were compared. The whole set runs twice:
with glibc's malloc as it is, and tuned not to give large blocks back, which is the strongest CPU eager. Times never
make it fail.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TUNED = {"MALLOC_MMAP_THRESHOLD_": str(4 << 30), "MALLOC_TRIM_THRESHOLD_": str(8 << 30)}
MALLOC = {"default": {}, "tuned": TUNED}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the time, with wide intervals")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--malloc", choices=[*MALLOC, "both"], default="both")
    parser.add_argument("--device", default="npu", help="cpu compares the CPU with itself: the noise of the machine")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)  # measure here, write to this file
    return parser.parse_args()


def measure(options: argparse.Namespace) -> dict[str, Any]:
    import torch
    from cases import all_cases
    from rich.progress import track

    rows, latencies = [], []
    cases = [case for case in all_cases() if options.only in case.name]
    for case in track(cases, description="measuring", transient=True):
        row: dict[str, Any] = {"name": case.name, "goal": case.goal}
        try:
            row |= measure_case(case, options)
        except (RuntimeError, AssertionError) as error:  # a case that does not work is a row that says so
            row["error"] = str(error).splitlines()[0]
        rows.append(row)
    if options.device != "cpu" and not options.only:
        import latency

        latencies = [vars(each) for each in latency.measure(idle_s=1 if options.quick else 5)]
    return {"rows": rows, "latencies": latencies, "torch": torch.__version__, "threads": torch.get_num_threads()}


def measure_case(case: Any, options: argparse.Namespace) -> dict[str, float]:
    import torch
    from measure import Side, compare

    synchronize = torch.get_device_module(options.device).synchronize
    npu, cpu = case.make(options.device), case.make("cpu")
    if case.check:
        actual, expected = npu.result(), cpu.result()
        synchronize()  # a copy into pinned memory is only queued
        if isinstance(actual, torch.Tensor):
            actual = actual.cpu()
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)
    result = compare(
        Side(npu.timer(), synchronize, case.host_only),
        Side(cpu.timer(), lambda: None, case.host_only),
        quadruples=5 if options.quick else 30,
        block_s=0.01 if options.quick else 0.02,
    )
    return result.to_json()


def run_child(options: argparse.Namespace, malloc: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "result.json"
        command = [sys.executable, __file__, "--child", str(output), "--only", options.only, "--device", options.device]
        command += ["--quick"] if options.quick else []
        subprocess.run(command, check=True, env=os.environ | MALLOC[malloc])
        return json.loads(output.read_text())


def main() -> None:
    options = parse()
    if options.child:
        options.child.write_text(json.dumps(measure(options)))
        return
    modes = list(MALLOC) if options.malloc == "both" else [options.malloc]
    report = {mode: run_child(options, mode) for mode in modes}
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")

    from report import show

    show(report, options.device)


if __name__ == "__main__":
    main()
