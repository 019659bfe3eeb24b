"""What make conformance calls a regression, and the document it writes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from shared import ROOT

from torch_npu_lite.suite.area import Area, Outcome, compare

sys.path.insert(0, str(ROOT / "tools"))

import conformance
import conformance_table as table

AREA = Area("few", "Few", (), figures_of_each=True)


def entry(*outcomes: Outcome) -> table.Entry:
    return table.entry(AREA, compare(outcomes))


def regressions(*outcomes: Outcome, stored: table.Entry | None = None, whole: bool = True) -> list[str]:
    return table.regressions("few", compare(outcomes), stored, whole=whole)


A, B = Outcome("t::a", "passed"), Outcome("t::b", "passed")
C = Outcome("t::c", "xfailed", "rounds once more")
STORED = entry(A, B, C)
OTHERS = "few: t: {} tests pass that are not the 2 of the table; --update accepts it"


def test_same_results_are_no_regression():
    assert regressions(A, B, C, stored=STORED) == []


def test_test_that_fails_now_is_a_regression():
    hung = Outcome("t::b", "hung", "no result after 1 s")
    assert regressions(A, hung, C, stored=STORED) == ["few: t::b: hung: no result after 1 s"]


def test_test_that_skips_now_is_a_regression_of_a_whole_run():
    others = [Outcome(f"u::new_{i}", "passed") for i in range(3)]
    now = (A, Outcome("t::b", "skipped", "not today"), C, *others)
    assert regressions(*now, stored=STORED, whole=False) == []
    more = "few: 1 tests more are skipped than the table says: not today; --update accepts it"
    assert regressions(*now, stored=STORED) == [more, OTHERS.format(1)]


def test_test_that_skips_in_the_place_of_another_is_a_regression():
    skipped = {name: Outcome(f"t::{name}", "skipped", "no") for name in "bc"}
    stored = entry(A, skipped["b"], Outcome("t::c", "passed"))
    assert regressions(A, B, skipped["c"], stored=stored) == [OTHERS.format(2)]


@pytest.mark.parametrize("others", [(), (Outcome("t::new", "passed"),), (Outcome("u::new", "passed"),)])
def test_removed_test_is_a_regression_of_a_whole_run_whatever_came_in_its_place(others: tuple[Outcome, ...]):
    assert regressions(A, C, *others, stored=STORED, whole=False) == []
    passed = 1 + sum(other.id.startswith("t::") for other in others)
    assert regressions(A, C, *others, stored=STORED) == [OTHERS.format(passed)]


def test_table_without_files_is_compared_by_counts():
    stored = {key: value for key, value in STORED.items() if key != "files"}
    assert regressions(A, B, C, stored=stored) == []
    (finding,) = regressions(A, stored=stored)
    assert finding.startswith("few: 1 tests fewer pass on npu than the table says")


def test_known_difference_that_becomes_a_failure_is_a_regression():
    crashed, failed = Outcome("t::c", "crashed", "signal SIGSEGV"), Outcome("t::c", "failed", "ValueError: no")
    assert regressions(A, B, crashed, stored=STORED) == ["few: t::c: crashed: signal SIGSEGV"]
    assert regressions(A, B, crashed, stored=entry(A, B, crashed)) == []
    assert regressions(A, B, crashed, stored=entry(A, B, failed)) == ["few: t::c: crashed: signal SIGSEGV"]
    for better in (C, Outcome("t::c", "passed")):
        assert regressions(A, B, better, stored=entry(A, B, failed)) == []


def test_new_test_that_fails_is_a_regression():
    failed = Outcome("t::d", "failed", "ValueError: no")
    assert regressions(A, B, C, failed, stored=STORED) == ["few: t::d: ValueError: no"]
    assert regressions(A, B, failed) == ["few: t::d: ValueError: no"]


def test_file_that_cannot_be_collected_is_a_regression():
    broken = Outcome("u.py", "failed", "ModuleNotFoundError: No module named 'u'", is_test=False)
    finding = "few: u.py: not collected: ModuleNotFoundError: No module named 'u'"
    assert regressions(A, B, C, broken, stored=STORED) == [finding]
    assert table.regressions(
        "few", compare([A, B, C, broken], [A, B, Outcome("t::c", "passed"), broken]), STORED, whole=True
    ) == [finding]


def test_document_groups_differences_by_reason(tmp_path: Path):
    (tmp_path / "docs").mkdir()
    document = tmp_path / "docs" / "conformance.md"
    document.write_text("# Conformance\n\nWritten by hand.\n")
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "exceptions.yaml").write_text("few: {}")
    differing = [Outcome(f"f.py::test_{i}", "failed", "ValueError: a_b") for i in range(5)]
    measured = Outcome("f.py::test_bert", "passed", figures={"cosine": 0.99})
    for _ in range(2):  # what was generated before is replaced
        table.write(tmp_path, {"few": entry(*differing, measured), "gone": STORED}, {"few": "Few", "later": "Later"})
    text = document.read_text()
    assert text.startswith("# Conformance\n\nWritten by hand.\n")
    assert text.count("| Few | 6 | 1 | 0 | 5 |") == 1
    assert "- Few: ValueError: a\\_b: `test_0`, `test_1`, `test_2` and 2 more" in text
    assert "Not run yet:\n\n- Later\n" in text
    assert "| test | cosine |\n|---|---|\n| test_bert | 0.99 |" in text
    assert list(table.read(tmp_path)) == ["few"]
    assert json.loads((tmp_path / "conformance.json").read_text())["areas"]["few"]["figures"]


def test_no_differences_speaks_of_areas_that_have_run():
    same = {"few": entry(Outcome("t::a", "passed"))}
    assert "## Differences\n\nNone.\n" in table.document("", same, {"few": "Few"}, {})
    waiting = table.document("", same, {"few": "Few", "later": "Later"}, {})
    assert "## Differences\n\nNone in the areas above that have run.\n" in waiting


def test_exceptions_are_listed_by_area_with_their_reasons():
    few = {"rounded": [{"why": "adds_up otherwise", "within": "2e-5", "entries": ["a*", "b"]}]}
    exceptions = {"kinds": {"rounded": "values may differ"}, "few": few}
    text = table.document("", {"few": entry(A)}, {"few": "Few"}, exceptions)
    assert "- Few: values may differ within 2e-5: adds\\_up otherwise: `a*`, `b`\n" in text


def test_figures_are_summed_unless_those_of_each_test_are_wanted():
    outcomes = [Outcome(f"t::{i}", "passed", figures={"compared": i, "refused": 1}) for i in (2, 3)]
    sums = table.entry(Area("few", "Few", ()), compare(outcomes))["figures"]
    assert sums == {"all tests": {"compared": 5, "refused": 2}}
    assert entry(*outcomes)["figures"] == {"t::2": outcomes[0].figures, "t::3": outcomes[1].figures}


def test_document_follows_from_the_table_and_the_areas():
    titles = {name: area.title for name, (area, _) in conformance.read_areas().items()}
    text = (ROOT / "docs" / "conformance.md").read_text()
    assert text == table.document(text, table.read(ROOT), titles, table.exceptions(ROOT)), (
        "make conformance ARGS=--document rewrites it"
    )


def test_unknown_key_of_an_area_is_named(tmp_path: Path):
    areas = tmp_path / "areas.yaml"
    areas.write_text("few: {title: Few, paths: [a.py], mark: slow}\n")
    with pytest.raises(SystemExit, match=r"area few: unknown mark; known: .*marks"):
        conformance.read_areas(areas)


def test_every_area_names_what_exists():
    for area, lists in conformance.read_areas().values():
        for path in area.paths:
            assert Path(path).is_absolute() or (area.directory / path).exists(), f"{area.name}: {path}"
        for name in lists:
            assert (ROOT / "requirements" / f"{name}.txt").exists(), f"{area.name}: {name}"


def test_every_test_left_to_make_conformance_has_an_area():
    folders = [area.directory / path for area, _ in conformance.read_areas().values() for path in area.paths]
    marked = [file for file in (ROOT / "test").rglob("test_*.py") if "pytest.mark." + "conformance" in file.read_text()]
    without = [str(file.relative_to(ROOT)) for file in marked if not any(file.is_relative_to(f) for f in folders)]
    assert without == [], "add them to test/conformance.yaml"


def test_unknown_area_lists_those_there_are():
    command = [sys.executable, ROOT / "tools" / "conformance.py", "--area", "operator"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "no area operator; there are operators, modules" in ended.stderr


def test_a_keyword_that_matches_nothing_is_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(conformance, "run_area", lambda *_: compare([]))
    options = conformance.parse(["-k", "nosuchtest"])
    with pytest.raises(SystemExit, match="no test of few matches -k nosuchtest"):
        conformance.run_areas([AREA], options)
