"""The compiled core with random columns: what it is given is checked, whatever it is.

Columns fit each other in most inputs, and in the others one of them is too short or too long, or
holds codes that are out of range. `make sanitize` runs these with the core built to notice any
access beyond an array, any undefined step and, from several threads, any race.
"""

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any, NamedTuple

import numpy as np

from fuzz.targets import Call
from resolvent import _core

REFUSED = (ValueError, TypeError, IndexError, OverflowError, RuntimeError, MemoryError)
"""How the core refuses what it is given; callers within Resolvent never let it come to that."""

_LEAST, _MOST = -(2**31), 10**6
"""Of codes; a table by codes up to 2³¹ would take gigabytes, which sanitizers do not let pass."""


class Samples(NamedTuple):
    """Columns of a random machine's samples, and how large its alphabets are."""

    alpha: Any
    output: Any
    beta: Any
    offsets: Any
    labels: int
    alphas: int
    outputs: int
    states: int
    table: Any


def samples(draw: Random) -> Samples:
    """Return what a random machine answers along random labels, with some noise at times."""
    labels, alphas, outputs = draw.randint(1, 4), draw.randint(1, 4), draw.randint(1, 3)
    states = draw.randint(1, 5)
    table = [draw.randrange(states) for _ in range(states * labels)]
    answer = [draw.randrange(outputs) for _ in range(states * alphas)]
    noise = draw.choice((0.0, 0.0, 0.1, 1.0))
    lengths = [draw.choice((0, 1, 5, 30)) for _ in range(draw.choice((0, 1, 3, 20)))]
    alpha, output, beta = [], [], []
    for length in lengths:
        state = 0
        for _ in range(length):
            read = draw.randrange(-1, labels)
            asked = draw.randrange(-1, alphas)
            state = state if read < 0 else table[state * labels + read]
            told = -1 if asked < 0 else answer[state * alphas + asked]
            if told >= 0 and draw.random() < noise:
                told = draw.randrange(outputs)
            beta.append(read)
            alpha.append(asked)
            output.append(told)
    offsets = np.cumsum([0, *lengths], dtype=np.int64)
    return Samples(
        _ids(alpha), _ids(output), _ids(beta), offsets, labels, alphas, outputs, states, _ids(table)
    )


def _ids(values: list[int]) -> Any:
    return np.array(values, np.int32)


def spoiled(draw: Random, column: Any) -> Any:
    """Return a column of another length, type or shape, or with a number that is out of range."""
    way = draw.randrange(7)
    if way == 0:
        return column[:-1]
    if way == 1:
        return np.append(column, column[:1])
    if way == 2:
        return column.astype(draw.choice((np.int64, np.int32, np.float64, np.uint8)))
    if way == 3:
        return column[::2]
    if way == 4:
        return column.reshape(1, -1)
    changed = column.copy()
    if len(changed):
        numbers = (-2, -1, 0, 1, 5, 100, _LEAST, _MOST)
        changed[draw.randrange(len(changed))] = draw.choice(numbers)
    return changed


def _maybe(draw: Random, given: dict[str, Any]) -> dict[str, Any]:
    """Return arguments of which one is spoiled, in a third of all cases."""
    if draw.random() < 0.67:
        return given
    name = draw.choice(sorted(given))
    value = given[name]
    if isinstance(value, np.ndarray):
        return given | {name: spoiled(draw, value)}
    if isinstance(value, bool) or not isinstance(value, int):
        return given
    return given | {name: draw.choice((-1, 0, 1, value - 1, value + 1, -(2**40)))}


def _tree(draw: Random, given: Samples) -> Any:
    columns = _maybe(draw, {"beta": given.beta, "offsets": given.offsets})
    return _core.build_history_tree(**columns)


def _answers(given: Samples) -> dict[str, Any]:
    return {"alpha": given.alpha, "output": given.output}


def _rows(given: Samples) -> dict[str, Any]:
    return {
        "alpha": given.alpha,
        "output": given.output,
        "beta": given.beta,
        "offsets": given.offsets,
    }


def learn(draw: Random) -> object:
    """Merge states in either order, and complete what was settled."""
    given = samples(draw)
    tree = _tree(draw, given)
    order = draw.choice(("edsm", "rpni"))
    found = _core.learn(tree, **_maybe(draw, _answers(given)), order=order)
    return found, _core.find_conflict(tree, **_answers(given)), _core.history_columns(tree)


def search(draw: Random) -> object:
    """Search for a small machine, from nothing or a table that is known."""
    given = samples(draw)
    tree = _tree(draw, given)
    more: dict[str, Any] = {"seed": draw.randrange(9), "budget": draw.choice((0, 10, 2000))}
    if draw.random() < 0.5:
        more |= {"known": given.table, "labels": given.labels, "merges": draw.random() < 0.5}
    return _core.search(tree, **_maybe(draw, _answers(given) | more))


def repair(draw: Random) -> object:
    """Repair a machine, of which some moves are known, and bound its states from below."""
    given = samples(draw)
    tree = _tree(draw, given)
    places = draw.sample(range(len(given.table)), draw.randint(0, len(given.table)))
    places.sort()
    moves = {
        "states": given.states,
        "state": _ids([one // given.labels for one in places]),
        "label": _ids([one % given.labels for one in places]),
        "target": _ids([int(given.table[one]) for one in places]),
    }
    asked = _maybe(draw, _answers(given) | moves)
    bound = _core.min_states_bound(tree, **asked, work=draw.choice((0, 100, 10_000)))
    return bound, _core.repair(tree, **asked, seed=0, budget=draw.choice((0, 10, 1000)))


def complete(draw: Random) -> object:
    """Complete a machine of which some states are settled."""
    given = samples(draw)
    tree = _tree(draw, given)
    nodes = len(tree)
    access = _ids([0, *(draw.randrange(nodes) for _ in range(draw.randint(0, 3)))])
    parents = _core.history_columns(tree)[1].tolist()
    state = [0]
    for parent in parents[1:]:  # what is above a settled node is settled, too
        state.append(-1 if state[parent] < 0 else draw.randrange(-1, len(access)))
    settled = _ids(state)
    columns = _answers(given) | {"access": access, "settled": settled}
    return _core.complete(tree, **_maybe(draw, columns))


def labels_deleted(draw: Random) -> object:
    """Leave out labels, and tally answers."""
    given = samples(draw)
    tree = _tree(draw, given)
    named = [draw.randrange(given.labels) for _ in range(draw.randint(0, 3))]
    columns = _answers(given) | {"named": named, "labels": given.labels}
    told = _core.delete_labels(tree, **_maybe(draw, columns))
    return told, _core.tally_outputs(**_maybe(draw, _answers(given) | {"alphas": given.alphas}))


def tables_tried(draw: Random) -> object:
    """Settle a table in an answer tree, find its first clash, and merge as it says."""
    given = samples(draw)
    tree = _tree(draw, given)
    answers = _core.output_tree(tree, **_answers(given), labels=given.labels)
    table = _maybe(draw, {"table": given.table})
    settled = answers.canonical(**table)
    clash = _core.first_conflict(**_maybe(draw, _rows(given) | {"labels": given.labels} | table))
    return settled, clash, _core.merge_as(tree, **_answers(given), **table, labels=given.labels)


def noisy(draw: Random) -> object:
    """Weigh, grow and compare machines that allow for noise."""
    given = samples(draw)
    moves = {"transitions": given.table, "labels": given.labels}
    quiet = _ids([draw.randrange(2) for _ in range(given.labels)])
    weighed = _core.noisy_machine_evidence(**_maybe(draw, _rows(given) | moves))
    rivals = _core.transition_alternatives(**_maybe(draw, _rows(given) | moves | {"part": 10**6}))
    grown = _core.grow_noisy_machine(
        **_maybe(draw, _rows(given) | {"quiet": quiet, "most_states": 4, "part": 10**6}),
        seed=0,
        effort=0.05,
    )
    return weighed, rivals, grown


def hidden(draw: Random) -> object:
    """Grow a machine whose labels lie, or whose starts are random."""
    given = samples(draw)
    columns = _rows(given) | {"labels": given.labels, "no_event": draw.randrange(-1, given.labels)}
    return _core.grow_latent_machine(
        **_maybe(draw, columns | {"most_states": 3, "part": 10**6}),
        noisy_labels=draw.random() < 0.5,
        random_starts=draw.random() < 0.5,
        seed=0,
        effort=0.02,
    )


def codes(draw: Random) -> object:
    """Recode columns, find what is distinct in them, and where episodes start."""
    size = draw.choice((0, 1, 7, 300))
    kinds = draw.randint(1, 6)
    column = _ids([draw.randrange(kinds) for _ in range(size)])
    other = _ids([draw.randrange(kinds) for _ in range(size)])
    table = _ids([draw.randrange(9) for _ in range(kinds)])
    numbers = np.array([draw.choice((0, 1, -5, 2**62, -(2**63))) for _ in range(size)], np.int64)
    places = np.sort(np.array([draw.randint(0, size) for _ in range(draw.randint(0, 4))], np.int64))
    ordered = np.sort(numbers)
    return (
        _core.recode(**_maybe(draw, {"codes": column, "table": table})),
        _core.recode_with_inserted(
            **_maybe(draw, {"codes": column, "table": table, "at": places, "inserted": 3})
        ),
        _core.used_codes(**_maybe(draw, {"codes": column, "size": kinds})),
        _core.distinct_pairs(
            **_maybe(draw, {"first": column, "second": other, "firsts": kinds, "seconds": kinds})
        ),
        _core.numbered(numbers),
        _core.distinct_integers(numbers, draw.choice((0, 1, 3, 10**6))),
        _core.starts_in_order([ordered], [numbers], draw.choice((size, size, size + 1))),
        _core.repeated_code(draw.randrange(9), size),
        _core.key_residues(numbers, draw.choice((1, 2, 12345)), draw.choice((1, 7, 2**61))),
    )


def columns_of(draw: Random) -> tuple[Any, dict[str, int], int]:
    """Return the columns of traces, how large their alphabets are, and how many traces."""
    lengths = [draw.randint(1, 20) for _ in range(draw.choice((1, 2, 40)))]
    steps, seen = sum(lengths), sum(lengths) + len(lengths)
    sizes = {name: draw.randint(1, 4) for name in ("observations", "labels", "actions")}

    def column(length: int, size: int) -> Any:
        return _ids([draw.randrange(size) for _ in range(length)])

    given = {
        "observation": column(seen, sizes["observations"]),
        "label": column(seen, sizes["labels"]),
        "action": column(steps, sizes["actions"]),
        "offsets": np.cumsum([0, *lengths], dtype=np.int64),
        "ended": column(len(lengths), 2),
        **sizes,
    }
    outputs = {"outputs": [column(steps, 3)], "output_sizes": [3]}
    return _core.TraceColumns(**_maybe(draw, given), **outputs), sizes, len(lengths)


def replay(draw: Random) -> object:
    """Replay traces through random machines in several threads, and number their steps."""
    held, sizes, traces = columns_of(draw)
    states = draw.randint(1, 4)
    table = _ids([draw.randrange(-1, states) for _ in range(states * sizes["labels"])])
    supplemented = draw.random() < 0.5
    machines = [(table, _core.NEXT_OBSERVATION, False), (table, 0, supplemented)]
    threads = draw.choice((1, 2, 4))
    options = {
        name: draw.random() < 0.7
        for name in ("outputs", "augmented_states", "unknown_states", "earliest", "states")
    }
    lags = {"first": draw.randint(0, 1), "lag": draw.randint(0, 1)}
    rank = {"rank": _ids(list(range(traces)))}
    shown = held.replay(machines, **_maybe(draw, rank | lags), **options, threads=threads)
    numbers = {
        name: np.array([draw.getrandbits(40) for _ in range(size)], np.int64)
        for name, size in zip(("observation", "label", "action"), sizes.values(), strict=True)
    }
    keys = held.keys(
        **_maybe(draw, numbers), outputs=[np.arange(3, dtype=np.int64)], threads=threads
    )
    return shown, keys


def walks(draw: Random) -> object:
    """Walk through tables: states of machines, and steps of worlds."""
    given = samples(draw)
    moves = {"transitions": given.table, "labels": given.labels}
    rows = {"beta": given.beta, "offsets": given.offsets}
    walked = _core.walk_states(**_maybe(draw, moves | rows))
    column = _ids([draw.randrange(3) for _ in given.beta])
    asked = _core.QueriedSteps(given.beta, given.offsets, column, draw.choice((3, 3, 2)))
    clashes = asked.conflicts(
        **_maybe(draw, moves | {"output": column[::-1].copy(), "condition": column}),
        condition_states=draw.choice((1, 3, 2**40)),
        enough=draw.choice((0, 1, 10**6)),
    )
    states, actions = given.states, draw.randint(1, 3)
    following = _ids([draw.randrange(states) for _ in range(states * actions)])
    ends = _ids([draw.randrange(2) for _ in range(states * actions)])
    starts = _ids([draw.randrange(states) for _ in range(draw.randint(0, 3))])
    walk = _core.walk(
        **_maybe(draw, {"next_state": following, "ends": ends, "starts": starts}),
        actions=actions,
        max_steps=draw.choice((1, 5, 50)),
    )
    for _ in range(20):
        if walk.done:
            break
        walk.feed(np.array([draw.randrange(actions) for _ in range(40)], np.int64))
    return walked, clashes, walk.take()


def q_learned(draw: Random) -> object:
    """Add situations, choose and update, with numbers that may name nothing."""
    actions = draw.randint(1, 3)
    learner = _core.QLearner(actions, 0.1, 0.9, draw.randrange(9))
    for _ in range(draw.randint(1, 4)):
        learner.add(draw.random())
    for _ in range(10):
        one, other = draw.randint(-1, 3), draw.randint(-1, 3)
        with suppress(*REFUSED):
            learner.update(one, draw.randint(-1, 2), 1.0, other, draw.random() < 0.5)
        with suppress(*REFUSED):
            learner.choose(one, draw.random())
        with suppress(*REFUSED):
            learner.set_values(one, np.zeros(draw.randint(0, 3)))
    return learner.values()


def folded(draw: Random) -> object:
    """Promote and fold states step by step, and undo it, in any order."""
    given = samples(draw)
    folding = _core.SteppedFolding(**_maybe(draw, _rows(given)))
    for _ in range(20):
        way = draw.randrange(5)
        with suppress(*REFUSED):
            if way < 2:
                folding.promote(draw.randint(0, 6))
            elif way < 4:
                folding.try_fold(draw.randint(0, 6), draw.randint(0, 6))
            else:
                folding.undo()
    return folding.snapshot()


CALLS: tuple[Callable[[Random], object], ...] = (
    learn, search, repair, complete, labels_deleted, tables_tried, noisy, hidden, codes, replay,
    walks, q_learned, folded,
)  # fmt: skip


def _target(function: Callable[[Random], object]) -> Call:
    def prepare(draw: Random) -> tuple[Callable[[], object], str]:
        return lambda: function(draw), function.__name__

    return Call(f"core-{function.__name__}", prepare, REFUSED)


TARGETS = tuple(map(_target, CALLS))
