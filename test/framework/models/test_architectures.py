"""Models of transformers, diffusers and x-transformers, evaluated and trained: npu gives what the CPU gives."""

from __future__ import annotations

import pytest
from comparison import Usage, largest_differences, run, seed, unlisted_waits
from library_programs import PROGRAMS as LIBRARIES
from programs import Program
from signal_programs import PROGRAMS as SIGNALS
from text_programs import PROGRAMS as TEXT
from vision_programs import PROGRAMS as IMAGES

pytestmark = pytest.mark.conformance

# Of the largest magnitude among all evaluation results, losses, parameters, gradients or buffers. Nearly all programs
# are bit-equal; in a few a convolution or an LSTM differs in its last bits, and five steps carry that on.
TOLERANCE = 5e-6


@pytest.mark.parametrize("program", [*TEXT, *IMAGES, *SIGNALS, *LIBRARIES], ids=str)
def test_equals_the_cpu(program: Program, record_property):
    seed()
    module, inputs, usage, reference = program.build(), program.make_inputs(), Usage(), Usage()
    expected = run(module, inputs, "cpu", reference)
    actual = run(module, inputs, "npu", usage)
    usage.record(record_property)
    record_property("time_ratio", round(usage.seconds["npu"] / reference.seconds["cpu"], 1))
    record_property("parameters", sum(parameter.numel() for parameter in module.parameters()))

    differences = largest_differences(actual, expected)
    record_property("difference", float(f"{max(found.relative for found in differences.values()):.1g}"))
    assert usage.fallbacks == []
    assert unlisted_waits(usage) == []
    too_large = {kind: found for kind, found in differences.items() if found.relative > TOLERANCE}
    assert too_large == {}
