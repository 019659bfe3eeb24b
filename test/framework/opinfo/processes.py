"""Programs in processes of their own, with settings of the device, and the digests that they print."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from shared import ROOT, child_environment


def start(*arguments: object, **settings: str) -> subprocess.Popen:
    """Starts Python with these arguments in the repository's root; sets of strings have one order in all of them."""
    command = [sys.executable, *map(str, arguments)]
    pipe = subprocess.PIPE
    path = os.pathsep.join(filter(None, [str(ROOT / "test"), os.environ.get("PYTHONPATH", "")]))
    environment = child_environment(PYTHONHASHSEED="0", PYTHONPATH=path, **settings)
    return subprocess.Popen(command, env=environment, cwd=ROOT, stdout=pipe, stderr=pipe, text=True)


def finish(process: subprocess.Popen) -> str:
    """What a process printed; it must end well."""
    output, errors = process.communicate()
    assert process.returncode == 0, f"{process.args}: {output[-2000:]}\n{errors[-2000:]}"
    return output


def printed(output: str) -> dict[str, str]:
    """Digests by case."""
    lines = [json.loads(line) for line in output.splitlines()]
    return {line["case"]: line["digest"] for line in lines}


def differences(one: dict[str, str], other: dict[str, str]) -> list[str]:
    return sorted(case for case in one.keys() | other.keys() if one.get(case) != other.get(case))
