"""Tables, the page and the figures, on hand-made results; and the page in the documentation."""

from pathlib import Path
from runpy import run_path

import pytest
from tiny import ABOUT, ablated, compared, failed, learned

from resolvent.errors import MissingExtra, ResolventError
from resolvent.paper.experiments import EXPERIMENTS
from resolvent.paper.report import draw_baselines, markdown, problems, section, write_report
from resolvent.paper.reproduce import Results
from resolvent.paper.tables import (
    ablation_table,
    baseline_table,
    number,
    policy_table,
    small_percent,
    tables,
)

OURS = [compared("rpni", n, seconds=seconds) for n, seconds in enumerate((0.02, 0.01, 0.04))]
RECORDS = [
    *OURS,
    *(compared("ilp", n, seconds=2.0 + n) for n in range(3)),
    failed("hmm", "time limit", seconds=20.3, memory_mb=99.6),
    compared(
        "lrm", correctness="wrong", states=10, fresh={"steps": 1_000, "wrong": 125, "unseen": 0}
    ),
    failed("ilp-conflicts", "not installed", error='pip install "resolvent[baselines]"'),
    failed("aalpy", "error", error="ValueError: no"),
    failed("aalpy-edsm", "memory limit", seconds=3.0, memory_mb=8_200.0),
    ablated("full--rpni", seconds=0.03, reachable={"queries": 200, "wrong": 3, "unseen": 0}),
    failed("keep-both--rpni", "time limit", seconds=20.0)
    | {"experiment": "ablation", "setting": "low"},
    learned("machines", 0, [1.0, 1.8, 1.9, 1.99]),
    learned("machines", 1, [1.0, 1.6, 1.7, 1.8]),
    learned("observation", 0, [0.0, -0.2, 0.1, 0.2]),
]
RESULTS = Results(ABOUT, RECORDS)


def rows(table):
    return {row[0]: dict(zip(table.header, row, strict=True)) for row in table.rows}


def test_the_baseline_table():
    found = rows(baseline_table(RESULTS.of("baselines"), "3x3"))
    ours = found["ours, rpni"]
    assert (ours["seconds"], ours["times ours"]) == ("0.020 (0.010–0.040)", "1")
    assert (ours["the paper's seconds"], ours["compared with the truth"]) == ("1.3", "exact")
    ilp = found["ILP, all traces"]
    assert (ilp["seconds"], ilp["times ours"]) == ("3.0 (2.0–4.0)", "150")
    lrm = found["LRM, adapted"]
    assert (lrm["RM states"], lrm["wrong on fresh traces"]) == ("10", "12.50%")
    assert lrm["compared with the truth"] == "wrong"


def test_stopped_and_failed_runs_are_in_the_table():
    found = rows(baseline_table(RESULTS.of("baselines"), "3x3"))
    stopped = found["HMM"]
    # 20.3 s against a median of 0.02 s
    assert (stopped["seconds"], stopped["times ours"]) == ("> 20", "> 1,015")
    assert (stopped["memory"], stopped["the paper's seconds"]) == ("100 MB", "104.0")
    assert found["ILP, conflicts"]["seconds"] == "not installed"
    assert found["AALpy, first fit"]["seconds"] == "error"
    assert found["AALpy, EDSM"]["seconds"] == "memory limit (8,200 MB)"
    assert problems(RESULTS) == [
        'baselines, 3x3, ilp-conflicts: not installed, pip install "resolvent[baselines]"',
        "baselines, 3x3, aalpy: error, ValueError: no",
    ]


def test_seconds_are_those_of_the_processor():
    busy = [compared("ilp", n, seconds=60.0, processor_seconds=3.0) for n in range(3)]
    row = rows(baseline_table([*OURS, *busy], "3x3"))["ILP, all traces"]
    assert (row["seconds"], row["times ours"]) == ("3.0 (3.0–3.0)", "150")
    busy = [failed("ilp", "time limit", seconds=60.0, processor_seconds=20.0)]
    row = rows(baseline_table([*OURS, *busy], "3x3"))["ILP, all traces"]
    assert (row["seconds"], row["times ours"]) == ("> 20", "> 1,000")


def test_methods_that_did_not_see_the_same_traces_are_reported():
    same = [compared(name, traces_sha256="aa") for name in ("rpni", "ilp")]
    assert problems(Results(ABOUT, same)) == []
    other = compared("lrm", traces_sha256="bb")
    assert problems(Results(ABOUT, [*same, other])) == [
        "baselines, 3x3, repetition 0: methods saw different traces"
    ]


def test_a_method_that_finishes_only_sometimes_shows_both():
    some = [compared("ilp", 0, seconds=5.0), failed("ilp", "time limit", seconds=20.0)]
    table = baseline_table([*OURS, *some], "3x3")
    row = rows(table)["ILP, all traces"]
    assert (row["seconds"], row["times ours"]) == ("5.0, > 20 (1×)", "> 625")
    some.insert(0, compared("ilp", 1, seconds=6.0))  # now the one in the middle has finished
    row = rows(baseline_table([*OURS, *some], "3x3"))["ILP, all traces"]
    assert row["times ours"] == "300"


def test_repetitions_that_disagree_show_it():
    some = [compared("lrm", n, states=n, correctness="wrong") for n in (4, 9)]
    some += [compared("lrm", 5), failed("lrm", "error", error="x")]
    row = rows(baseline_table([*OURS, *some], "3x3"))["LRM, adapted"]
    assert (row["RM states"], row["times ours"]) == ("2–9", "–")
    assert row["compared with the truth"] == "wrong (2×), exact (1×)"


def test_the_ablation_table_has_the_papers_cells():
    found = rows(ablation_table(RESULTS.of("ablation"), "low"))
    assert found["full pipeline"]["rpni"] == "7 / 2, 0.030 s, 1.50%"
    assert found["full pipeline"]["the paper"] == "7 / 2, 412.2 s"
    assert found["without both removals"]["rpni"] == "> 20 s"
    assert found["without supplement"]["the paper"] == "7 / 218, 26,976.9 s"


def test_the_policy_table_gives_shares_of_the_optimum():
    found = rows(policy_table(RESULTS.of("policy")))
    machines = found["machines (the paper's schedule)"]
    assert machines["value after 1,500 episodes"] == "85.0% ± 5.0%"  # 1.8 and 1.6, of 2
    assert machines["value after 3,000"] == "94.8% ± 4.7%"
    # Returns are half of each value: the means are 0.836 and 0.7625.
    assert machines["return, 100 episodes to 1,500"] == "0.80 ± 0.04 of 3.00"
    assert machines["episodes until within 1%"] == "3,000 (1 of 2)"
    assert found["observation only"]["episodes until within 1%"] == "never"


def test_experiments_without_results_have_no_table():
    assert [one.title for one in tables(RESULTS)] == [
        "3×3 grid, 275 traces",
        "Ablation, 1,000 traces",
        "What is learned in the 25×25 world",
    ]
    assert list(tables(Results(ABOUT, []))) == []


def test_the_page_names_its_conditions(tmp_path):
    written = write_report(tmp_path, RESULTS)
    names = [path.name for path in written]
    assert names == ["README.md", "baselines.png", "baselines.svg", "policy.png", "policy.svg"]
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    for text in ("Abacus", "`resolvent reproduce --quick`", "20 s", "numpy 2.0", "i7-9750H"):
        assert text in page
    assert "highspy None" not in page
    assert all(table.markdown() in page for table in tables(RESULTS))
    assert (tmp_path / "policy.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_results_give_the_same_picture(tmp_path):
    for name in ("one.svg", "two.svg"):
        draw_baselines(tmp_path / name, RESULTS)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_without_matplotlib_there_are_tables(tmp_path, monkeypatch):
    def missing():
        raise MissingExtra("no matplotlib")

    monkeypatch.setattr("resolvent.viz.curves.import_matplotlib", missing)
    assert [path.name for path in write_report(tmp_path, RESULTS)] == ["README.md"]
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "no matplotlib" in page
    assert "![" not in page


def test_every_method_failing_is_still_a_page():
    only = Results(ABOUT, [failed("rpni", "error", error="x"), failed("ilp", "error", error="x")])
    assert "error" in markdown(only)


# --- The page in the documentation ---

DOCS = Path(__file__).parent.parent.parent / "docs"
UPDATE = run_path(str(DOCS / "reproduction" / "update.py"))
BEGIN, END = UPDATE["BEGIN"], UPDATE["END"]
compact, with_section = UPDATE["compact"], UPDATE["with_section"]


def stored():
    return Results.from_lines((DOCS / "reproduction" / "results.jsonl").read_bytes())


def test_the_tables_in_the_docs_are_what_the_results_give():
    page = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    assert with_section(page, section(stored())) == page


def test_the_results_in_the_docs_are_of_all_experiments_and_say_nothing_of_where():
    results = stored()
    assert all(results.of(name) for name in EXPERIMENTS)
    assert b"/home" not in results.lines()
    assert b"/tmp" not in results.lines()


def test_all_runs_in_the_docs_ran_and_those_of_a_repetition_saw_the_same_traces():
    assert problems(stored()) == []


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


def test_seconds_and_shares():
    assert [number(seconds) for seconds in (0.01234, 1.26, 4174.6)] == ["0.012", "1.3", "4,175"]
    shares = (0.0, 0.00001, 0.125)
    assert [small_percent(share) for share in shares] == ["0", "< 0.01%", "12.50%"]
