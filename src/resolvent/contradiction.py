"""Why no machine can explain some traces, said so that one can act on it."""

from dataclasses import replace
from typing import Protocol

from resolvent.errors import ContradictoryTraces
from resolvent.machines.drawing import history_text
from resolvent.merging import Contradiction, find_contradiction
from resolvent.reduction import remove_trivial
from resolvent.samples import NONE, LabelTiming, SampleSet, transition_samples
from resolvent.traces import TraceSet, symbol_text


class Timed(Protocol):
    """The part of the options that decides what was read."""

    @property
    def timing(self) -> LabelTiming:
        """Which labels are read before a step is answered."""


def explain(
    rows: Contradiction,
    traces: TraceSet,
    samples: SampleSet,
    reduced: SampleSet,
    trivial: tuple[int, ...],
    machine: str,
    options: Timed,
) -> ContradictoryTraces:
    """Return the error that names both traces, both steps, their history, and what to try."""
    (first, first_step), (second, second_step) = traces.place(rows.first), traces.place(rows.second)
    start = int(traces.offsets[first])
    read = [int(code) for code in reduced.beta[start : rows.first + 1] if code != NONE]
    history = history_text(tuple(traces.labels[code] for code in read[-6:]))
    if len(read) > 6:
        history = f"… {history}"
    observation, action = samples.question(int(samples.alpha[rows.first]))
    what = {"transition": "next observations", "reward": "rewards"}[machine]
    answers = [
        symbol_text(samples.outputs[int(samples.output[row])]) for row in (rows.first, rows.second)
    ]
    return ContradictoryTraces(
        f"trace {first}, step {first_step} and trace {second}, step {second_step} read the same "
        f"labels ({history}) but have different {what} for ({symbol_text(observation)}, "
        f"{symbol_text(action)}): {answers[0]} and {answers[1]}; "
        f"{_advice(traces, samples, trivial, options)}"
    )


def _advice(traces: TraceSet, samples: SampleSet, trivial: tuple[int, ...], options: Timed) -> str:
    for timing in LabelTiming:
        if timing is options.timing:
            continue
        # Questions about bare observations: the states that the supplement paired
        # them with are those of the timing that failed.
        other = replace(transition_samples(traces, timing), output=samples.output)
        if find_contradiction(remove_trivial(other, trivial)) is None:
            return f"with the other label timing they fit: use --timing {timing}"
    if trivial and find_contradiction(samples) is None:
        return "a label taken as trivial matters here: use --keep-trivial, or name fewer --trivial"
    return (
        "the world is not deterministic under these labels: label what makes the difference, or "
        "round noisy rewards with --reward-digits"
    )
