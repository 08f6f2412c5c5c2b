"""Noisy samples + a machine's moves → for each move, how sure it is where it leads."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.errors import ModelError
from resolvent.noise.evidence import weigh
from resolvent.noise.likely import PART, Likely
from resolvent.samples import SampleSet
from resolvent.traces.symbols import NO_EVENT
from resolvent.traces.vocabulary import Codes


@dataclass(frozen=True, eq=False)
class Rivals:
    """For each move, the likeliest other target, and how much less likely that is.

    `target` is [state, label], −1 where a move has no rival: where it is never read, where its
    label is read often and changes no state at all, as "no event" is taken to, or where
    there is one state alone. `log_odds` is
    the logarithm of how many times as likely the target is that the move has.
    """

    target: Codes
    log_odds: NDArray[np.float64]


def rivals(samples: SampleSet, transitions: Codes) -> Rivals:
    """Weigh each move of a machine against other targets, all other moves as they are.

    Traces that read the move are read anew with another target, the three that answers up to
    the next label speak for most or staying, and all answers weighed as by `weigh`. Of more than
    200,000 rows a part of the traces is taken, so what is sure is surer still.

    >>> import numpy as np, resolvent as rs
    >>> from resolvent.samples import Histories, LabelTiming, output_samples
    >>> def told(key, end):
    ...     return rs.Trace(["a", "b", end], [None, key, None], ["go", "go"], [0, 0])
    >>> traces = rs.TraceSet([told("key", "c"), told("lamp", "d")] * 20)
    >>> histories = Histories.of(traces, LabelTiming.CURRENT)
    >>> samples = output_samples(traces, histories, "observation")
    >>> key, lamp = (samples.labels.code(frozenset({name})) for name in ("key", "lamp"))
    >>> moves = np.full((2, len(samples.labels)), -1, np.int32)
    >>> moves[0, [key, lamp]] = 1, 0
    >>> found = rivals(samples, moves)
    >>> int(found.target[0, key]), bool(found.log_odds[0, key] > 10)
    (0, True)
    """
    states, labels = transitions.shape
    if labels == 0:
        nowhere = np.full((states, 0), -1, np.int32)
        return Rivals(nowhere, np.zeros(nowhere.shape))
    try:
        target, log_odds = _core.rival_moves(
            samples.alpha,
            samples.output,
            samples.beta,
            samples.offsets,
            transitions=np.ascontiguousarray(transitions, np.int32).ravel(),
            labels=labels,
            part=PART,
        )
    except ValueError as wrong:
        raise ModelError(f"the moves do not fit the samples: {wrong}") from None
    target = target.reshape(states, labels)
    # If "no event" changes something is not decided by the evidence alone.
    if (silence := samples.labels.get(NO_EVENT)) is not None:
        target[:, silence] = -1
    return Rivals(target, log_odds.reshape(states, labels))


MOST_CHANGES = 50
"""Single moves that `settled_moves` changes at most: each time, all are weighed again."""


def settled_moves(samples: SampleSet, likely: Likely) -> Likely:
    """Change single moves of a machine for as long as that makes all answers likelier.

    A search goes by a score that is not quite the evidence, and may leave a move that leads
    elsewhere with better odds. A move that a state hangs on stays.
    """
    stays = np.arange(likely.states, dtype=np.int32)[:, None]
    moves = np.where(likely.transitions < 0, stays, likely.transitions)
    best = likely.log_evidence
    refused: set[tuple[int, int]] = set()
    for _ in range(MOST_CHANGES):
        better = _with_one_changed(samples, moves, best, refused)
        if better is None:
            break
        moves, best = better
    if best == likely.log_evidence:
        return likely
    moves = _read(samples, moves)
    return replace(
        likely,
        transitions=moves,
        log_evidence=best,
        sizes={**likely.sizes, likely.states: best},
        by_size={**likely.by_size, likely.states: moves},
        noise=weigh(samples, moves).noise,
    )


def _with_one_changed(
    samples: SampleSet, moves: Codes, best: float, refused: set[tuple[int, int]]
) -> tuple[Codes, float] | None:
    """Return likelier moves of which one is another, and how likely they are; None if none is.

    Changes that leave a state unreached, or are no better on all samples, are `refused` from
    then on; others with lesser odds are tried after them.
    """
    found = rivals(samples, moves)
    log_odds = np.where(found.target < 0, np.inf, found.log_odds).ravel()
    for place in np.argsort(log_odds, kind="stable").tolist():
        if log_odds[place] >= 0:
            break
        target = int(found.target.flat[place])
        if (place, target) in refused:
            continue
        changed = moves.copy()
        changed.flat[place] = target
        if _reaches_all(_read(samples, changed)):
            log_evidence = weigh(samples, changed).log_evidence
            if log_evidence > best:
                return changed, log_evidence
        refused.add((place, target))
    return None


def _read(samples: SampleSet, moves: Codes) -> Codes:
    """Return the moves that samples read, −1 for all others."""
    table = np.ascontiguousarray(moves.ravel())
    states = _core.walk_states(table, moves.shape[1], samples.beta, samples.offsets)
    before = np.roll(states, 1)
    before[samples.offsets[:-1][np.diff(samples.offsets) > 0]] = 0
    read = np.flatnonzero(samples.beta >= 0)
    made = np.full(moves.shape, -1, np.int32)
    places = before[read], samples.beta[read]
    made[places] = moves[places]
    return made


def _reaches_all(moves: Codes) -> bool:
    """Whether moves lead from the first state to all others."""
    met, queue = {0}, [0]
    for state in queue:
        new = {target for target in moves[state].tolist() if target >= 0} - met
        met |= new
        queue += sorted(new)
    return len(met) == len(moves)
