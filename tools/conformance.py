"""Runs the areas of test/conformance.yaml and compares with the stored table: make conformance ARGS="..."."""

from __future__ import annotations

import argparse
import dataclasses
import importlib.metadata
import os
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import yaml
from packaging.requirements import Requirement

import conformance_table as table
from torch_npu_lite.suite.area import Area, Comparison, Outcome, compare
from torch_npu_lite.suite.engine import CollectionError, Run
from torch_npu_lite.suite.progress import make_progress

ROOT = Path(__file__).resolve().parent.parent
AREAS = ROOT / "test" / "conformance.yaml"
NEEDED = {"title", "paths"}
KNOWN = NEEDED | {
    *("marks", "arguments", "environment", "directory", "timeout", "per_process", "devices", "cpu_only"),
    *("figures", "requirements"),
}


def read_areas(path: Path = AREAS) -> dict[str, tuple[Area, list[str]]]:
    """The areas and the requirement lists that each needs, by name. A key that is not known is an error."""
    areas = {}
    for name, entry in yaml.safe_load(path.read_text()).items():
        if unknown := sorted(entry.keys() - KNOWN):
            raise SystemExit(f"{path}: area {name}: unknown {', '.join(unknown)}; known: {', '.join(sorted(KNOWN))}")
        if missing := sorted(NEEDED - entry.keys()):
            raise SystemExit(f"{path}: area {name} needs {', '.join(missing)}")
        if entry.get("figures", "each") != "each":
            raise SystemExit(f"{path}: area {name}: figures: {entry['figures']}; known: each")
        packages = sysconfig.get_path("purelib")
        words = map(str, entry.get("arguments", []))
        area = Area(
            name=name,
            title=entry["title"],
            paths=tuple(path.replace("{site_packages}", packages) for path in entry["paths"]),
            arguments=("-m", entry.get("marks", ""), *(word.replace("{site_packages}", packages) for word in words)),
            environment={key: str(value) for key, value in entry.get("environment", {}).items()},
            directory=ROOT / entry.get("directory", ""),
            devices=tuple(entry.get("devices", [])),
            timeout=entry.get("timeout", 300),
            tests_per_process=entry.get("per_process", 1000),
            figures_of_each=entry.get("figures") == "each",
            cpu_only=entry.get("cpu_only", Area.cpu_only),
        )
        areas[name] = area, entry.get("requirements", [])
    return areas


def is_installed(requirement: Requirement) -> bool:
    try:
        return requirement.specifier.contains(importlib.metadata.version(requirement.name), prereleases=True)
    except importlib.metadata.PackageNotFoundError:
        return False


def missing_requirements(lists: list[str]) -> list[str]:
    """Of the lists requirements/NAME.txt, those with a package that is not installed in the version wanted."""
    wanted = {name: (ROOT / "requirements" / f"{name}.txt").read_text().splitlines() for name in lists}
    return [
        name
        for name, lines in wanted.items()
        if not all(is_installed(Requirement(line)) for line in lines if line and not line.startswith("#"))
    ]


def run_area(area: Area, folder: Path, jobs: int, resume: bool) -> Comparison:
    """Runs an area, on each of its devices if it has several, and writes the reports of what failed."""

    def outcomes(part: Area) -> list[Outcome]:
        run = Run(part, folder / f"{part.name}.jsonl", jobs, make_progress(), resume=resume)
        run.run()
        write_failures(folder / f"{part.name}.failures.txt", run.outcomes)
        return run.outcomes

    if not area.devices:
        return compare(outcomes(area))
    return compare(outcomes(area.on("npu")), outcomes(area.on("cpu")), area.cpu_only)


def write_failures(path: Path, outcomes: list[Outcome]) -> None:
    failures = [f"== {o.result}: {o.id}\n{o.reason}\n\n{o.details}\n" for o in outcomes if o.failed]
    path.write_text("\n".join(failures))
    if failures:
        print(f"  reports of {len(failures)} failures: {os.path.relpath(path)}")


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="conformance", description=__doc__)
    parser.add_argument("--area", action="append", metavar="NAME", help="run this area only; may be repeated")
    parser.add_argument("--list", action="store_true", help="list the areas and what the table says of them")
    parser.add_argument("-k", dest="keyword", metavar="EXPRESSION", help="run the tests that match, as pytest's -k")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time (%(default)s)")
    parser.add_argument("--resume", action="store_true", help="go on with an interrupted run: keep what has run")
    parser.add_argument("--update", action="store_true", help="rewrite the table for the areas that ran")
    parser.add_argument("--document", action="store_true", help="run nothing, rewrite docs/conformance.md by the table")
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        parser.error(f"--jobs {options.jobs}: at least 1")
    if options.update and options.keyword:
        parser.error("--update wants whole areas; leave -k out")
    return options


def chosen_areas(options: argparse.Namespace) -> list[Area]:
    known = read_areas()
    names = options.area or list(known)
    if wrong := [name for name in names if name not in known]:
        raise SystemExit(f"conformance: no area {', '.join(wrong)}; there are {', '.join(known)}")
    lists = sorted({name for area in names for name in known[area][1]})
    if missing := missing_requirements(lists):
        if Path(sys.prefix) != ROOT / ".venv":  # the environment that setup_env.sh fills
            files = ", ".join(f"requirements/{name}.txt" for name in missing)
            raise SystemExit(f"conformance: {sys.prefix} lacks packages of {files}; choose other areas with --area")
        subprocess.run([ROOT / "tools" / "setup_env.sh", *missing], check=True)
    return [known[name][0] for name in names]


def run_areas(areas: list[Area], options: argparse.Namespace) -> tuple[dict[str, table.Entry], list[str]]:
    """Results by area, and what is worse than the stored table or could not run at all."""
    stored = table.read(ROOT)
    folder = ROOT / "build" / "conformance" / ("selected" if options.keyword else "")
    results: dict[str, table.Entry] = {}
    findings: list[str] = []
    tests = 0
    for area in areas:
        if options.keyword:
            area = dataclasses.replace(area, arguments=(*area.arguments, "-k", options.keyword))
        try:
            found = run_area(area, folder, options.jobs, options.resume)
        except CollectionError as error:  # the other areas can still run
            findings.append(f"{area.name}: {error}")
            continue
        tests += found.tests
        results[area.name] = table.entry(area, found)
        findings += table.regressions(area.name, found, stored.get(area.name), whole=not options.keyword)
    if options.keyword and tests == 0 and not findings:
        raise SystemExit(f"conformance: no test of {', '.join(results)} matches -k {options.keyword}")
    return results, findings


def main() -> int:
    options = parse()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what ends a CI job keeps results as Ctrl-C does
    titles = {name: area.title for name, (area, _) in read_areas().items()}
    stored = table.read(ROOT)
    if options.list:
        for name, title in titles.items():
            print(f"{name:20}{title}\n{'':20}{table.summary(stored.get(name))}")
        return 0
    if options.document:
        table.write(ROOT, stored, titles)
        return 0
    areas = chosen_areas(options)
    try:
        results, findings = run_areas(areas, options)
    except KeyboardInterrupt:
        print("\nStopped; results are kept. Go on with: make conformance ARGS='... --resume'")
        return 130
    for name, result in results.items():
        print(f"{name}: {table.summary(result)}")
    if findings:
        print(f"\n{len(findings)} regressions against conformance.json:")
        print("\n".join(f"  {finding}" for finding in findings))
    if options.update:
        table.write(ROOT, {**stored, **results}, titles)
        print("Rewrote conformance.json and docs/conformance.md: they have these results now")
        return 0 if len(results) == len(areas) else 1
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
