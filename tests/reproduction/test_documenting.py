from pathlib import Path

import pytest
from test_analysis import RESULTS
from tiny import ABOUT, compared, failed

from resolvent.errors import ResolventError
from resolvent.reproduction.analysis.documenting import (
    BEGIN,
    END,
    compact,
    section,
    with_cells_of,
    with_section,
)
from resolvent.reproduction.running.settings import EXPERIMENTS
from resolvent.reproduction.running.store import Results

DOCS = Path(__file__).parent.parent.parent / "docs"


def kept():
    return Results.from_lines((DOCS / "reproduction" / "results.jsonl").read_bytes())


def test_the_tables_in_the_docs_are_what_the_results_give():
    page = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    assert with_section(page, section(kept())) == page


def test_the_results_in_the_docs_are_of_all_experiments_and_say_nothing_of_where():
    results = kept()
    assert all(results.of(name) for name in EXPERIMENTS)
    assert b"/home" not in results.lines()
    assert b"/tmp" not in results.lines()


def test_compact_results_give_the_same_tables():
    assert section(compact(RESULTS)) == section(RESULTS)


def test_cells_of_others_take_the_place_of_ones_own():
    slow = [failed("ilp", "time limit", seconds=20.0), compared("hmm", 0), compared("hmm", 1)]
    other = [compared("ilp", n, seconds=100.0, time_limit=600.0) for n in range(2)]
    both = with_cells_of(Results(ABOUT, slow), Results(ABOUT | {"command": "longer"}, other))
    assert both.about == ABOUT
    assert both.records == [*slow[1:], *other]
    assert "a limit of 20 or 600 s" in section(both)
    assert "a limit of 20 s" in section(Results(ABOUT, slow))


def test_results_of_another_machine_or_version_are_not_added():
    newer = ABOUT | {"packages": {"numpy": "3.0", "highspy": None}}
    with pytest.raises(ResolventError, match="do not go together"):
        with_cells_of(RESULTS, Results(newer, RESULTS.records))


def test_only_what_is_between_the_marks_is_replaced():
    page = f"# Mine\n\n{BEGIN}\nold\n{END}\n\nyours\n"
    assert with_section(page, "new") == f"# Mine\n\n{BEGIN}\n\nnew\n\n{END}\n\nyours\n"
    assert with_section(with_section(page, "new"), "new") == with_section(page, "new")


@pytest.mark.parametrize("page", ["", f"{BEGIN} and no end", f"{END} {BEGIN}"])
def test_a_page_without_marks_is_refused(page):
    with pytest.raises(ResolventError, match="add the lines"):
        with_section(page, "new")
