"""A pair of machines + its traces → the Reward Machine with its rewards on the edges."""

import numpy as np
from numpy.typing import NDArray

from resolvent.errors import ModelError
from resolvent.machines import UNSEEN, Edge, EdgeRewardMachine, Guard, Machines, RewardMachine
from resolvent.preprocess.samples import rounded
from resolvent.replay.replaying import states_at_steps
from resolvent.traces.symbols import Label, label_order, label_text
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes


def edge_rewards(pair: Machines, traces: TraceSet) -> EdgeRewardMachine:
    """Return the Reward Machine with rewards on its edges; see `EdgeRewardMachine.from_pair`."""
    if not len(traces):
        raise ModelError("there are no traces: give those the machines were inferred from")
    if pair.timing.lag:
        raise ModelError(
            "the machines read labels a step late, but on an edge it is the label a step leads to "
            "that pays: infer them with timing 'current'"
        )
    reward = pair.reward
    states = states_at_steps(pair, traces)[reward.name]
    _check_known(states, traces)
    # Under both timings without a lag, the label read after a step is that of the
    # observation it led to.
    read = traces.after_step(traces.label_codes)
    keys, first, case = np.unique(
        states.astype(np.int64) * len(traces.labels) + read, return_index=True, return_inverse=True
    )
    paid = np.array(rounded(traces.rewards, reward.digits))[traces.reward_codes]
    differs = paid != paid[first][case]
    if np.any(differs):
        row = int(np.argmax(differs))
        raise _not_a_function(traces, paid, int(states[row]), (int(first[case[row]]), row))
    goes_on = np.ones(traces.steps, bool)
    goes_on[traces.offsets[1:] - 1] = ~traces.terminated
    always_ends = np.bincount(case, goes_on) == 0

    labels_of: dict[tuple[int, int, float], list[Label]] = {}
    for key, ends, amount in zip(keys.tolist(), always_ends, paid[first].tolist(), strict=True):
        source, code = divmod(key, len(traces.labels))
        target = _target(reward, source, traces.labels[code], bool(ends))
        labels_of.setdefault((source, target, amount), []).append(traces.labels[code])
    edges = _edges(labels_of)
    terminal = {edge.target for edge in edges if edge.target == reward.states}
    return EdgeRewardMachine(int(states[0]), frozenset(terminal), edges)


def _edges(labels_of: dict[tuple[int, int, float], list[Label]]) -> tuple[Edge, ...]:
    """Return one edge for each source, target and reward, guarded by exactly its labels."""
    names = frozenset[str]().union(*(label for labels in labels_of.values() for label in labels))
    return tuple(
        Edge(source, target, Guard.exactly(sorted(labels, key=label_order), names), amount)
        for (source, target, amount), labels in sorted(labels_of.items())
    )


def _target(reward: RewardMachine, source: int, label: Label, ends: bool) -> int:
    """Return the target of an edge; one state more than the machine has stands for the end."""
    target = reward.step(source, label)
    return reward.states if ends or target is UNSEEN else target


def _check_known(states: Codes, traces: TraceSet) -> None:
    """Refuse traces that the machine cannot follow, or that do not start in one state."""
    if np.any(states < 0):
        trace, step = traces.locate(int(np.argmax(states < 0)))
        raise ModelError(
            f"trace {trace}, step {step}: the reward machine was never shown the labels before it: "
            f"give the traces it was inferred from"
        )
    starts = states[traces.offsets[:-1]]
    differing = int(np.argmax(starts != starts[0]))
    if differing:
        raise ModelError(
            f"trace 0 starts in state {starts[0]} of the reward machine and trace {differing} in "
            f"state {starts[differing]}, for their first labels differ: a machine with rewards on "
            f"its edges starts in one state"
        )


def _not_a_function(
    traces: TraceSet, paid: NDArray[np.float64], state: int, rows: tuple[int, int]
) -> ModelError:
    label = traces.labels[int(traces.after_step(traces.label_codes)[rows[0]])]
    places = ((*traces.locate(row), paid[row]) for row in rows)
    first, second = (f"{amount:g} in trace {trace}, step {step}" for trace, step, amount in places)
    return ModelError(
        f"in state {state} of the reward machine the label {label_text(label)!r} pays {first}, and "
        f"{second}: the reward depends on observation and action too, which a machine with rewards "
        f"on its edges cannot see; give what pays a label of its own"
    )
