"""The two engines behind one signature, and the door to the compiled one."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol

import numpy as np

from resolvent import _core
from resolvent.arguments import shown
from resolvent.errors import OptionError
from resolvent.inference.conflict import Contradiction, find_contradiction  # noqa: F401
from resolvent.merging.automaton import (
    Automaton,
    TooManyStates,
    TooMuchWork,
    automaton_from_columns,
)
from resolvent.merging.python_engine import merge_in_python
from resolvent.merging.strategy import Strategy, strategy_named
from resolvent.merging.watch import Watcher, out_of_time
from resolvent.progress import Progress
from resolvent.samples import SampleSet
from resolvent.traces.vocabulary import Codes

SEARCH_BUDGET: Final = 6_000_000_000
"""Nodes that a search looks at, at most: 20 to 40 s at 10,000 steps if nothing is found."""

LARGEST_EFFORT: Final = 1e9


class Engine(Protocol):
    """Infers an automaton from samples; one that is not finished, if it takes longer than allowed.

    Raises:
        Contradiction: when no machine can explain the samples.
        TooManyStates: as soon as there are more than `most_states`.
        TooMuchWork: when it takes more than `most_work`, where the engine counts that.
    """

    def __call__(
        self,
        samples: SampleSet,
        strategy: Strategy,
        time_limit: float | None,
        listener: Watcher | None,
        most_states: int | None = None,
        most_work: int | None = None,
    ) -> Automaton:
        """Merge states as a strategy has it."""


def merge_natively(
    samples: SampleSet,
    strategy: Strategy,
    time_limit: float | None,
    listener: Watcher | None,
    most_states: int | None = None,
    most_work: int | None = None,
) -> Automaton:
    """Infer an automaton from samples; the `Engine` built for speed."""
    learner = partial(
        _core.learn, order=strategy.name, most_states=most_states, most_work=most_work or 0
    )
    return learn_natively(samples, time_limit, listener, learner)


def search(
    samples: SampleSet,
    *,
    seed: int = 0,
    effort: float = 1.0,
    time_limit: float | None = None,
    listener: Watcher | None = None,
    known: Codes | None = None,
    merges: bool = True,
) -> Automaton:
    """Search for the smallest automaton that explains the samples; never larger than edsm's.

    It needs far fewer traces than merging. The same samples, seed and effort
    give the same automaton. `effort` multiplies how much is tried at most before
    the best found so far is taken; so does a time limit, but not reproducibly.
    `known` is a table [state, label] of a machine that explains the samples, −1 where a label
    is never read: what is found is never larger than that one either. With one known, the
    search need not begin with what merging finds (`merges`).
    docs/decisions/search.md says how it works.
    """
    check_seed_and_effort(seed, effort)
    budget = int(effort * SEARCH_BUDGET)
    searching = partial(_core.search, seed=seed, budget=budget)
    if known is not None and known.size:
        table = np.ascontiguousarray(known.ravel())
        searching = partial(searching, known=table, labels=known.shape[1], merges=merges)
    return learn_natively(samples, time_limit, listener, searching)


def check_seed_and_effort(seed: int, effort: float) -> None:
    """Refuse a seed or an effort that the core cannot count in.

    Raises:
        OptionError: when one of them is out of range.
    """
    if not 0 <= seed < 2**64:
        raise OptionError(f"the seed is {seed}: it must be at least 0 and below 2^64")
    if not 0 <= effort <= LARGEST_EFFORT:
        raise OptionError(f"the effort is {effort:g}: choose a number from 0 to {LARGEST_EFFORT:g}")


def learn_natively(
    samples: SampleSet,
    time_limit: float | None,
    listener: Watcher | None,
    learner: Callable[..., dict[str, Any]],
) -> Automaton:
    """Have the core learn an automaton from samples, and raise what it says went wrong."""
    tree = samples.histories.tree
    found = learner(
        tree,
        samples.alpha,
        samples.output,
        time_limit=time_limit or 0.0,
        progress=None if listener is None else lambda *numbers: listener(Progress(*numbers)),
    )
    if "contradiction" in found:
        raise Contradiction(*found["contradiction"])
    if "given_up" in found:
        raise TooManyStates if found["given_up"] == "states" else TooMuchWork
    if "time_limit" in found:
        raise out_of_time(Progress(*found["time_limit"]))
    return automaton_from_columns(found, len(tree))


ENGINES: dict[str, Engine] = {"native": merge_natively, "python": merge_in_python}
"""The engines by name; the first is the default."""


def engine_for(strategy: Strategy, asked: str) -> str:
    """Return the engine to run a strategy: the one asked for, or another if that was the default.

    The default cannot be told from the same engine asked for by name, so it stands
    for "the strategy's own".

    Raises:
        OptionError: when there is no such engine, or none of that name for the strategy.

    >>> engine_for(strategy_named("edsm"), "python")
    'python'
    """
    if not isinstance(asked, str) or asked not in ENGINES:
        raise OptionError(f"unknown engine {shown(asked)}: choose one of {', '.join(ENGINES)}")
    own, default = strategy.engines[0], next(iter(ENGINES))
    if asked not in strategy.engines and asked != default:
        raise OptionError(
            f"engine '{asked}' has no strategy '{strategy.name}': take engine '{own}'"
        )
    return asked if asked in strategy.engines else own


def merge(
    samples: SampleSet,
    *,
    order: str | Strategy = "edsm",
    engine: str = "native",
    time_limit: float | None = None,
    listener: Watcher | None = None,
    seed: int = 0,
    effort: float = 1.0,
    most_states: int | None = None,
    most_work: int | None = None,
    known: Codes | None = None,
) -> Automaton:
    """Infer an automaton from samples with the named engine, by merging or by searching.

    Only the search makes use of `seed`, `effort` and `known`, and only merging of
    `most_states` and `most_work`.
    """
    strategy = strategy_named(order)
    engine = engine_for(strategy, engine)
    if time_limit is not None and not time_limit > 0:
        raise OptionError(f"the time limit is {time_limit:g} s: it must be above 0")
    if strategy.proves:
        raise OptionError(f"strategy '{strategy.name}' starts from an automaton: merge another way")
    if strategy.chooses:
        raise OptionError(f"strategy '{strategy.name}' chooses among others: name one of them")
    if strategy.searches:
        return search(
            samples,
            seed=seed,
            effort=effort,
            time_limit=time_limit,
            listener=listener,
            known=known,
        )
    return ENGINES[engine](samples, strategy, time_limit, listener, most_states, most_work)
