"""Why no machine can explain some traces, said so that one can act on it."""

from dataclasses import replace

from resolvent.errors import ContradictoryTraces
from resolvent.machines.drawing import history_text
from resolvent.merging import Contradiction, find_contradiction
from resolvent.reduction import remove_trivial
from resolvent.samples import NONE, Histories, LabelTiming, SampleSet
from resolvent.traces import TraceSet, symbol_text

_LABELS_SHOWN = 6


def explain(
    rows: Contradiction,
    traces: TraceSet,
    samples: SampleSet,
    machine: str,
    timing: LabelTiming,
    trivial: tuple[int, ...],
) -> ContradictoryTraces:
    """Return the error that names both traces, both steps, their history, and what to try."""
    (first, first_step), (second, second_step) = traces.place(rows.first), traces.place(rows.second)
    read = samples.beta[int(traces.offsets[first]) : rows.first + 1]
    labels = tuple(traces.labels[int(code)] for code in read if code != NONE)
    history = history_text(labels[-_LABELS_SHOWN:])
    if len(labels) > _LABELS_SHOWN:
        history = f"… {history}"
    # Not the samples' observation: the supplement would show beside it.
    observation = traces.observations[int(traces.observation_codes[rows.first + first])]
    action = traces.actions[int(traces.action_codes[rows.first])]
    one, other = (
        symbol_text(samples.outputs[int(samples.output[row])]) for row in (rows.first, rows.second)
    )
    what = {"transition": "next observations", "reward": "rewards"}[machine]
    return ContradictoryTraces(
        f"trace {first}, step {first_step} and trace {second}, step {second_step} read the same "
        f"labels ({history}) but have different {what} for ({symbol_text(observation)}, "
        f"{symbol_text(action)}): {one} and {other}; {_advice(traces, samples, timing, trivial)}"
    )


def _advice(
    traces: TraceSet, samples: SampleSet, timing: LabelTiming, trivial: tuple[int, ...]
) -> str:
    for other in LabelTiming:
        histories = remove_trivial(Histories.of(traces, other), trivial)
        if other is not timing and _fits(samples, histories):
            return f"with another label timing they fit: use --timing {other}"
    if trivial and _fits(samples, Histories.of(traces, timing)):
        return "a label taken as trivial matters here: use --keep-trivial, or name fewer --trivial"
    return (
        "the world is not deterministic under these labels: label what makes the difference, or "
        "round noisy rewards with --reward-digits"
    )


def _fits(samples: SampleSet, histories: Histories) -> bool:
    return find_contradiction(replace(samples, histories=histories)) is None
