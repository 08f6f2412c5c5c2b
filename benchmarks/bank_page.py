"""The page of the bank of protocols: what was run → docs/bank.md."""

import math
import statistics
from typing import Any

from bank_contenders import AALPY, CONTENDERS, OURS

from protocols import BANK

HELD_OUT = (10_000, 100_000)
"""Steps after which fresh walks are predicted."""

_HEAD = """\
# A bank of protocols

Models of protocols and devices that we wrote after public specifications
(`tests/protocols`), and what comes of random walks through them: each walk begins anew and has
20 to 60 steps; an input is drawn, the output is the column to predict, as
[a log](how-to/data.md#logs-of-inputs-and-outputs) gives it. The models have what real systems have: sinks that swallow most
of a walk, states that are hardly ever visited, inputs that do nothing in most states.
AALpy 2.0 gets the same walks: `run_RPNI` and `run_EDSM` as they are, and `run_GSM` that merges
the first blue state in shortlex order with the red one on which most outputs agree, which takes
much less time than `run_EDSM`. *default* is `rs.infer` with no options; the other columns of ours
are strategies alone, with `noise="none"`. Figures are medians over walks drawn {seeds}; an
empty cell was not run.

<!-- Written by benchmarks/bank.py: run `make benchmark-bank` instead of editing. -->
"""
_STEPS = """
## Steps until exact

*Exact* is a machine with the states, moves and outputs of the model, all of them. The figure is
the first of the budgets 1,000, 2,000, 4,000 … that is exact together with the next one, if that
was within the limits. *Moves seen* is the first in which every input is taken in every state:
without that hardly anybody can be exact. A dash means not within the steps ({most:,} for ours,
{most_aalpy:,} for AALpy) and CPU seconds ({cap}) that there were.
"""
_WRONG = """
## Wrong predictions after {steps:,} steps

The share of the steps of fresh walks that is not predicted rightly, in per cent. A step for which
a machine has no move or no output is wrong, and so is every step after it in its walk, since the
state is not known any more: machines of AALpy's may be partial, and so may ours. A dash is a
machine that was not done within its CPU seconds.
"""
_GUESSING = """
## With guesses, after {steps:,} steps

The same where no machine is left without an answer: each guesses moves and outputs that it does
not know by what its states do that answer alike ([`guessing`](decisions/machines.md#guessing)), ours and
AALpy's by the same rule. AALpy itself has no guesses.
"""
_SECONDS = """
## CPU seconds for {steps:,} steps
"""


def page(known: dict[str, Any]) -> str:
    """Return the page."""
    results = _Results(known)
    parts = [
        _HEAD.format(seeds=results.seeds()),
        _STEPS.format(**results.limits()),
        results.steps_table(),
    ]
    for steps in HELD_OUT:
        parts += [_WRONG.format(steps=steps), results.table(steps, "wrong", "{:.2%}")]
        parts += [_GUESSING.format(steps=steps), results.table(steps, "guessing", "{:.2%}")]
        parts += [results.with_guesses(steps)]
        parts += [_SECONDS.format(steps=steps), results.table(steps, "cpu", "{:.2f}")]
    return "\n".join(parts).rstrip() + "\n"


class _Results:
    """What was run, by model and contender."""

    def __init__(self, known: dict[str, Any]) -> None:
        self.found: dict[tuple[str, str, int, int], dict[str, Any]] = {}
        self.seen: dict[str, list[float]] = {}
        for key, value in known.items():
            model, contender, seed, *steps = key.split("/")
            if model not in BANK:
                continue
            if contender == "moves seen":
                self.seen.setdefault(model, []).append(math.inf if value is None else value)
            elif contender in CONTENDERS:
                self.found[model, contender, int(seed), int(steps[0])] = value
        self.models = sorted(
            {model for model, *_ in self.found}, key=lambda one: (BANK[one].machine.states, one)
        )
        tried = {contender for _, contender, *_ in self.found}
        self.contenders = [one for one in CONTENDERS if one in tried]

    def seeds(self) -> str:
        """Say how often walks were drawn for a model."""
        drawn = {model: {key[2] for key in self.found if key[0] == model} for model in self.models}
        times = sorted({len(seeds) for seeds in drawn.values()})
        return " or ".join("once" if one == 1 else f"{one} times" for one in times) or "never"

    def limits(self) -> dict[str, Any]:
        """Return the most steps and CPU seconds that were spent on one machine."""
        ours = [steps for _, one, _, steps in self.found if one in OURS]
        theirs = [steps for _, one, _, steps in self.found if one in AALPY]
        caps = {value["stopped"] for value in self.found.values() if "stopped" in value}
        return {
            "most": max(ours, default=0),
            "most_aalpy": max(theirs, default=0),
            "cap": " or ".join(map(str, sorted(caps))) or "enough of them",
        }

    def exact_from(self, model: str, contender: str) -> float | None:
        """Return the median of the steps until exact; None where nothing was run."""
        steps = [
            self._exact_from(model, contender, seed)
            for seed in sorted({seed for one, _, seed, _ in self.found if one == model})
            if self._was_asked(model, contender, seed)
        ]
        return statistics.median(steps) if steps else None

    def _was_asked(self, model: str, contender: str, seed: int) -> bool:
        """Whether an exact machine was looked for, or could not be found by anybody."""
        asked = [steps for *key, steps in self.found if tuple(key) == (model, contender, seed)]
        shown = min(self.seen.get(model, [math.inf])) < math.inf
        return any(steps not in HELD_OUT for steps in asked) or (bool(asked) and not shown)

    def _exact_from(self, model: str, contender: str, seed: int) -> float:
        exact = {
            steps: value["exact"]
            for (*key, steps), value in self.found.items()
            if tuple(key) == (model, contender, seed) and steps not in HELD_OUT and "exact" in value
        }
        alone = max(exact, default=0)  # nothing larger was asked for, or done in time
        return next(
            (
                steps
                for steps in sorted(exact)
                if exact[steps] and (steps == alone or exact.get(2 * steps, False))
            ),
            math.inf,
        )

    def median(self, model: str, contender: str, steps: int, what: str) -> float | None:
        """Return the median of a figure over seeds; None where nothing was run."""
        values = [
            value.get(what, math.inf)
            for (one, who, _, budget), value in self.found.items()
            if (one, who, budget) == (model, contender, steps)
            and (what in value or not {"stopped", "failed"}.isdisjoint(value))
        ]
        return statistics.median(values) if values else None

    def steps_table(self) -> str:
        """Return the table of steps until exact, and in how many models each was the first."""
        lines = self._header("moves seen")
        for model in self.models:
            seen = statistics.median(self.seen.get(model, [math.inf]))
            steps = {one: self.exact_from(model, one) for one in self.contenders}
            lines.append(self._line(model, [_shown(seen, "{:,.0f}")], steps, "{:,.0f}"))
        counts = []
        for one in self.contenders:
            medians = [self.exact_from(model, one) for model in self.models]
            counts.append(f"{sum(x is not None and x < math.inf for x in medians)}")
        seen_all = sum(
            statistics.median(self.seen.get(model, [math.inf])) < math.inf for model in self.models
        )
        lines.append("| **exact** | | | " + " | ".join([str(seen_all), *counts]) + " |")
        return "\n".join([*lines, "", *self._halves()]) + "\n"

    def _halves(self) -> list[str]:
        """Say for each of ours how often it needs at most half of what AALpy's best needs."""
        lines = []
        for ours in (one for one in self.contenders if one in OURS):
            half = more = 0
            for model in self.models:
                mine = self.exact_from(model, ours)
                theirs = self._best(self.exact_from(model, one) for one in AALPY)
                if mine is not None and theirs is not None and min(mine, theirs) < math.inf:
                    half += mine <= theirs / 2
                    more += mine > theirs
            worse = [f"{steps:,} steps in {self._worse(ours, steps)}" for steps in HELD_OUT]
            lines.append(
                f"- `{ours}`: at most half the steps of AALpy's best in {half} models, more than "
                f"it in {more}; more wrong predictions than AALpy's best, or none in time, after "
                f"{', after '.join(worse)} models."
            )
        return lines

    def _worse(self, ours: str, steps: int) -> int:
        worse = 0
        for model in self.models:
            mine = self.median(model, ours, steps, "wrong")
            theirs = self._best(self.median(model, one, steps, "wrong") for one in AALPY)
            worse += mine is not None and theirs is not None and mine > theirs
        return worse

    def with_guesses(self, steps: int) -> str:
        """Say in which models the default that guesses is more wrong than AALpy's best."""
        worse: dict[str, list[str]] = {"wrong": [], "guessing": []}
        asked = 0
        for model in self.models:
            mine = self.median(model, "default", steps, "guessing")
            asked += mine is not None
            for what, models in worse.items():
                theirs = self._best(self.median(model, one, steps, what) for one in AALPY)
                if mine is not None and theirs is not None and mine > theirs:
                    models.append(model)
        told = {what: ", ".join(models) or "none" for what, models in worse.items()}
        return (
            f"Of {asked} models, `default` with guesses is more wrong than AALpy's best as it is "
            f"in: {told['wrong']}; than AALpy's best with guesses in: {told['guessing']}.\n"
        )

    @staticmethod
    def _best(figures: Any) -> float | None:
        return min((one for one in figures if one is not None), default=None)

    def table(self, steps: int, what: str, form: str) -> str:
        """Return one table of figures after so many steps."""
        figures = {
            model: {one: self.median(model, one, steps, what) for one in self.contenders}
            for model in self.models
        }
        run = [
            one
            for one in self.contenders
            if what != "guessing" or any(_is_known(row[one]) for row in figures.values())
        ]
        lines = self._header(contenders=run)
        for model, row in figures.items():
            lines.append(self._line(model, [], {one: row[one] for one in run}, form))
        return "\n".join(lines) + "\n"

    def _header(self, *more: str, contenders: list[str] | None = None) -> list[str]:
        names = ["model", "states", "inputs", *more]
        shown = self.contenders if contenders is None else contenders
        named = [f"`{one}`" if one in OURS else one for one in shown]
        columns = [*names, *named]
        return [f"| {' | '.join(columns)} |", "|---|" + "--:|" * (len(columns) - 1)]

    def _line(
        self, model: str, more: list[str], figures: dict[str, float | None], form: str
    ) -> str:
        machine = BANK[model].machine
        finite = [one for one in figures.values() if one is not None and one < math.inf]
        best = min(finite, default=None)
        cells = [
            f"**{_shown(one, form)}**" if one is not None and one == best else _shown(one, form)
            for one in figures.values()
        ]
        sizes = [str(machine.states), str(len(machine.inputs))]
        return f"| {' | '.join([model, *sizes, *more, *cells])} |"


def _is_known(figure: float | None) -> bool:
    return figure is not None and figure < math.inf


def _shown(figure: float | None, form: str) -> str:
    if figure is None:
        return ""
    return "—" if math.isinf(figure) else form.format(figure)
