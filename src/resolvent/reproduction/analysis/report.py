"""Results → what a folder of them shows: a page of tables, and figures."""

from pathlib import Path
from typing import Any

from resolvent.atomic_file import atomic_write
from resolvent.errors import MissingExtra
from resolvent.reproduction.analysis import paper
from resolvent.reproduction.analysis.figures import draw_baselines, draw_policy
from resolvent.reproduction.analysis.tables import tables
from resolvent.reproduction.running.store import Results

LEGEND = """\
- *rpni* is the paper's order of merging, *edsm* the one by most evidence, with which our default
  begins. *HMM, dense* is as published,
  *HMM, sparse* computes the same without the zeros. *ILP, all traces* is what the paper ran,
  *ILP, conflicts* the published loop that adds traces as they conflict. *LRM, adapted* does
  not read the first label, which here counts for nothing.
- *seconds* are those of the processor, for the method alone, in a process of its own on one
  thread; traces are made and results judged outside. A figure without a range is of one
  repetition. `> n` was stopped after n seconds, and not repeated if it was so the first time;
  what is said of its machine is about the best it had by then.
- *times ours* compares medians, a stopped run counting as its limit.
- *compared with the truth*: world and machine are walked together through all that can be
  reached. `exact`: the true machine but for the names of states. `true states`: the true
  states one for one, but some answers are unseen, or wrong because a question was taken to
  be redundant. `right, other states`: no wrong answer, other states. `wrong`: other states,
  and some reward, end or move is predicted wrongly.
- *wrong on fresh traces*: the share of steps of 1,000 new random traces whose reward, or
  for a pair of machines whose reward or next observation, is predicted wrongly."""


def write_report(folder: Path, results: Results) -> list[Path]:
    """Write README.md and the figures beside the results, and return their paths.

    Without matplotlib there are no figures, and the page says so.
    """
    written: list[Path] = []
    lack = None
    try:
        for name, draw in (("baselines", draw_baselines), ("policy", draw_policy)):
            for suffix in (".png", ".svg") if results.of(name) else ():
                draw(folder / f"{name}{suffix}", results)
                written.append(folder / f"{name}{suffix}")
    except MissingExtra as error:
        lack = str(error)
    page = folder / "README.md"
    with atomic_write(page) as file:
        file.write(markdown(results, lack).encode())
    return [page, *written]


def markdown(results: Results, lack: str | None = None) -> str:
    """Write the page of tables; `lack` is why there are no figures, if there are none."""
    blocks = ["# The paper's experiments, run again", conditions(results.about), LEGEND]
    blocks += [table.markdown() for table in tables(results)]
    if failures := troubles(results):
        blocks += ["### What did not run", "\n".join(f"- {line}" for line in failures)]
    drawn = [name for name in ("baselines", "policy") if results.of(name)]
    blocks += [f"![{name}]({name}.png)" for name in drawn] if lack is None else [lack]
    return "\n\n".join(blocks) + "\n"


def conditions(about: dict[str, Any]) -> str:
    """Say how and where results were made."""
    machine, settings = about["machine"], about["settings"]
    packages = ", ".join(f"{name} {one}" for name, one in about["packages"].items() if one)
    return (
        f"`{about['command']}`, with a limit of {settings['time_limit']:,.0f} s and "
        f"{settings['memory_limit_mb'] / 1024:.0f} GB a run, on {machine['processor']} "
        f"({machine['cores']} cores, {machine['system']}), Python {about['python']}, {packages}. "
        f"Repetition n has the seed n, its fresh traces 1,000,000 + n. "
        f"The paper's figures are from an {paper.PROCESSOR}."
    )


def troubles(results: Results) -> list[str]:
    """Say which runs failed, and why; each reason once for a method."""
    found: dict[str, None] = {}
    for one in results.records:
        if one["status"] in ("error", "not installed"):
            place = f"{one['experiment']}, {one['setting']}, {one['method']}"
            found[f"{place}: {one['status']}, {one['error']}"] = None
    return [*found, *_different_traces(results)]


def _different_traces(results: Results) -> list[str]:
    """Say where methods of one repetition did not see the same traces, which never should be."""
    seen: dict[tuple[str, str, int], set[str]] = {}
    for one in results.records:
        if "traces_sha256" in one:
            place = (one["experiment"], one["setting"], one["repetition"])
            seen.setdefault(place, set()).add(one["traces_sha256"])
    return [
        f"{experiment}, {setting}, repetition {repetition}: methods saw different traces"
        for (experiment, setting, repetition), digests in seen.items()
        if len(digests) > 1
    ]
