"""What the sweeps leave out, or allow npu to differ in: exceptions.yaml."""

from __future__ import annotations

from pathlib import Path

import yaml

TABLE = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())


def exceptions(area: str, kind: str) -> dict[str, str]:
    """The reason by the pattern of each exception of this kind."""
    assert kind in TABLE["kinds"], f"no kind of exception: {kind}; known are {', '.join(TABLE['kinds'])}"
    return {pattern: group["why"] for group in TABLE[area].get(kind, []) for pattern in group["entries"]}
