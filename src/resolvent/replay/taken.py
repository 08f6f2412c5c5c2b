"""A shard + the states that machines are in there → which steps are taken, and how traces begin."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.replay.coded import CodedShard
from resolvent.replay.kinds import Kinds
from resolvent.traces import Codes
from resolvent.traces.column_names import ACTION, LABEL, OBSERVATION, REWARD


def steps_taken(
    shard: CodedShard,
    states: Mapping[str, Codes],
    *,
    paid: Codes | None = None,
    lag: bool = False,
) -> Kinds:
    """Return the different steps of a shard, in common codes.

    The columns are `observation`, `action`, `following` and `label`, the two that a step leads
    to, and `ended`; the states of machines by `state_of` their kinds; `paid` as it is given; and
    with `lag` also `read`, the label before the step.
    """
    traces, codes = shard.traces, shard.codes
    ended = np.zeros(traces.steps, np.int32)
    ended[traces.offsets[1:] - 1] = traces.terminated
    columns = {
        OBSERVATION: traces.at_step(codes[OBSERVATION]),
        ACTION: codes[ACTION],
        "following": traces.after_step(codes[OBSERVATION]),
        LABEL: traces.after_step(codes[LABEL]),
        "ended": ended,
        **{state_of(kind): column for kind, column in states.items()},
    }
    if paid is not None:
        columns["paid"] = paid
    if lag:
        columns["read"] = traces.at_step(codes[LABEL])
    return Kinds.of(columns, *_places(shard))


def starts_taken(shard: CodedShard, states: Mapping[str, Codes]) -> Kinds:
    """Return how the traces of a shard begin: `observation`, `label`, and the states."""
    traces = shard.traces
    rows, number = traces.offsets[:-1], np.arange(len(traces))
    columns = {
        OBSERVATION: shard.codes[OBSERVATION][rows + number],
        LABEL: shard.codes[LABEL][rows + number],
        **{state_of(kind): column[rows] for kind, column in states.items()},
    }
    return Kinds.of(columns, shard.first + number, np.zeros(len(traces), np.int64))


def state_of(kind: str) -> str:
    """Return the name of the column with a machine's states; kinds may be called as columns are."""
    return f"state of {kind}"


def _places(shard: CodedShard) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the trace among all, and the step in it, of every step."""
    offsets, lengths = shard.traces.offsets, shard.length
    trace = np.repeat(np.arange(len(lengths)), lengths)
    return trace + shard.first, np.arange(offsets[-1]) - offsets[trace]


def paid_at_steps(shard: CodedShard) -> Codes:
    """Return what every step paid, in the codes of what a Reward Machine answers with."""
    codes, alphabets = shard.codes[REWARD], shard.alphabets
    if REWARD not in alphabets.answers:
        return codes
    return _core.recode(codes, alphabets.in_answers(REWARD, shard.rounding[REWARD]))
