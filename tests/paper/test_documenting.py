from pathlib import Path

import pytest
from test_analysis import RESULTS

from resolvent.errors import ResolventError
from resolvent.paper.report import BEGIN, END, compact, section, troubles, with_section
from resolvent.paper.reproduce import EXPERIMENTS
from resolvent.paper.store import Results

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


def test_all_runs_in_the_docs_ran_and_those_of_a_repetition_saw_the_same_traces():
    assert troubles(kept()) == []


def test_compact_results_give_the_same_tables():
    assert section(compact(RESULTS)) == section(RESULTS)


def test_only_what_is_between_the_marks_is_replaced():
    page = f"# Mine\n\n{BEGIN}\nold\n{END}\n\nyours\n"
    assert with_section(page, "new") == f"# Mine\n\n{BEGIN}\n\nnew\n\n{END}\n\nyours\n"
    assert with_section(with_section(page, "new"), "new") == with_section(page, "new")


@pytest.mark.parametrize("page", ["", f"{BEGIN} and no end", f"{END} {BEGIN}"])
def test_a_page_without_marks_is_refused(page):
    with pytest.raises(ResolventError, match="add the lines"):
        with_section(page, "new")
