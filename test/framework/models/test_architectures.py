"""Models of transformers, diffusers and x-transformers, evaluated and trained: npu gives what the CPU gives."""

from __future__ import annotations

import pytest
from comparison import APART, ROUNDED, Usage, differences, run, seed, unlisted_waits
from library_programs import PROGRAMS as LIBRARIES
from programs import Program
from signal_programs import PROGRAMS as SIGNALS
from text_programs import PROGRAMS as TEXT
from vision_programs import PROGRAMS as IMAGES

pytestmark = pytest.mark.conformance


@pytest.mark.parametrize("program", [*TEXT, *IMAGES, *SIGNALS, *LIBRARIES], ids=str)
def test_equals_the_cpu(program: Program, record_property):
    seed()
    module, inputs, usage, reference = program.build(), program.make_inputs(), Usage(), Usage()
    expected = run(module, inputs, "cpu", reference)
    actual = run(module, inputs, "npu", usage)
    usage.record(record_property)
    record_property("time_ratio", round(usage.seconds["npu"] / reference.seconds["cpu"], 1))
    record_property("parameters", sum(parameter.numel() for parameter in module.parameters()))

    found = differences(actual, expected)
    record_property("difference", float(f"{max(found.values(), default=0):.1g}"))
    assert usage.fallbacks == []
    assert unlisted_waits(usage) == []
    assert {name: apart for name, apart in found.items() if program.name not in ROUNDED or apart > APART} == {}
