"""However the device runs its tasks, the bits are the same: blocking launches, no inlining, one worker, many workers.

Each run is a process of its own that prints digests of what op_db's operators give, random numbers included; what it
refuses the CPU refuses as well. Two runs at a time do not disturb each other either.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from digests import FAILED, REFUSED, digests, shard_of
from processes import differences, finish, printed, start

PROGRAM = Path(__file__).with_name("digests.py")
WAYS = {
    "blocking": {"NPU_LAUNCH_BLOCKING": "1"},
    "no inlining": {"NPU_SIM_INLINE": "0"},
    "one worker": {"NPU_SIM_WORKERS": "1"},
    "four workers": {"NPU_SIM_WORKERS": "4", "NPU_SIM_INLINE": "0"},
}
SHARDS = 16
QUICK = (3, 200)  # one shard of so many
QUICK_SAMPLES = 2

Digests = dict[str, str]


def failures(found: Digests) -> list[str]:
    return [f"{case}: {digest}" for case, digest in found.items() if digest.startswith(FAILED)]


@pytest.mark.conformance
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_same_bits_in_every_way(shard, record_property):
    """Two runs with the default settings at a time, then one in each other way."""
    together = [start(PROGRAM, shard, SHARDS) for _ in range(2)]
    default, second = (printed(finish(process)) for process in together)
    record_property("compared", len(default))
    record_property("refused", sum(digest.startswith(REFUSED) for digest in default.values()))
    assert failures(default) == []
    assert differences(second, default) == []
    for way, settings in WAYS.items():
        found = printed(finish(start(PROGRAM, shard, SHARDS, **settings)))
        assert (way, differences(found, default)) == (way, [])


def test_a_second_process_gives_the_bits_of_this_one():
    blocking = start(PROGRAM, *QUICK, QUICK_SAMPLES, **WAYS["blocking"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = dict(digests(shard_of(*QUICK), QUICK_SAMPLES))
    assert len(own) > 0
    assert failures(own) == []
    assert differences(printed(finish(blocking)), own) == []
