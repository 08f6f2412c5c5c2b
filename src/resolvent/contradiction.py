"""Why no machine can explain some traces, said so that one can act on it."""

from collections.abc import Callable
from typing import TypeAlias

from resolvent.errors import ContradictoryTraces
from resolvent.machines.drawing import history_text
from resolvent.merging import Contradiction, find_contradiction
from resolvent.reduction import remove_trivial
from resolvent.samples import NONE, Histories, LabelTiming, SampleSet
from resolvent.traces import Symbol, TraceSet, symbol_text

_LABELS_SHOWN = 6
_LETTERS_SHOWN = 60

Naming: TypeAlias = Callable[[int], str]
"""Says what to call a trace, given its number."""

Asking: TypeAlias = Callable[[TraceSet, Histories], SampleSet]
"""Makes the samples of one kind of machine, without supplement.

The supplement tells nothing that the history does not, so the samples with it
contradict each other exactly where those without it do.
"""


def explain(
    rows: Contradiction,
    traces: TraceSet,
    ask: Asking,
    machine: str,
    timing: LabelTiming,
    trivial: tuple[int, ...],
    name: Naming = "trace {}".format,
) -> ContradictoryTraces:
    """Return the error that names both traces, both steps, their history, and what to try."""
    samples = ask(traces, remove_trivial(Histories.of(traces, timing), trivial))
    (first, first_step), (second, second_step) = traces.place(rows.first), traces.place(rows.second)
    read = samples.beta[int(traces.offsets[first]) : rows.first + 1]
    labels = tuple(traces.labels[int(code)] for code in read if code != NONE)
    history = history_text(labels[-_LABELS_SHOWN:])
    if len(labels) > _LABELS_SHOWN:
        history = f"… {history}"
    observation = traces.observations[int(traces.observation_codes[rows.first + first])]
    action = traces.actions[int(traces.action_codes[rows.first])]
    one, other = (
        symbol_text(samples.outputs[int(samples.output[row])]) for row in (rows.first, rows.second)
    )
    what = {"transition": "next observations", "reward": "rewards"}[machine]
    advice = _advice(traces, ask, machine, timing, trivial)
    return ContradictoryTraces(
        f"{name(first)}, step {first_step} and {name(second)}, step {second_step} read the same "
        f"labels ({history}) but have different {what} for ({_beginning(observation)}, "
        f"{_beginning(action)}): {' and '.join(_around_difference(one, other))}; {advice}"
    )


def _beginning(symbol: Symbol) -> str:
    text = symbol_text(symbol)
    return text if len(text) <= _LETTERS_SHOWN else f"{text[:_LETTERS_SHOWN]}…"


def _around_difference(one: str, other: str) -> tuple[str, str]:
    """Return two texts, or of long ones, such as images, the part where they begin to differ.

    >>> _around_difference("0" * 100 + "A" + "0" * 100, "0" * 100 + "B" + "0" * 100)[0][:24]
    '…00000000000000000000A00'
    """
    if max(len(one), len(other)) <= _LETTERS_SHOWN:
        return one, other
    same = next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if len({*pair}) > 1), 0
    )
    begin = max(0, same - 20)
    window = slice(begin, begin + _LETTERS_SHOWN)
    return f"{'…' * (begin > 0)}{one[window]}…", f"{'…' * (begin > 0)}{other[window]}…"


def fitting_timing(
    traces: TraceSet, ask: Asking, timing: LabelTiming, trivial: tuple[int, ...]
) -> LabelTiming | None:
    """Return another timing under which the traces do not contradict each other."""
    for other in LabelTiming:
        histories = remove_trivial(Histories.of(traces, other), trivial)
        if other is not timing and find_contradiction(ask(traces, histories)) is None:
            return other
    return None


def _advice(
    traces: TraceSet, ask: Asking, machine: str, timing: LabelTiming, trivial: tuple[int, ...]
) -> str:
    if other := fitting_timing(traces, ask, timing, trivial):
        return f"with another label timing they fit: timing='{other}' (--timing {other})"
    if trivial and find_contradiction(ask(traces, Histories.of(traces, timing))) is None:
        return (
            "a label taken as trivial matters here: name fewer as trivial, "
            "or remove_trivial=False (--keep-trivial)"
        )
    advice = "the world is not deterministic under these labels: label what makes the difference"
    if machine == "reward":
        advice += ", or round noisy rewards: reward_digits=N (--reward-digits N)"
    return advice
