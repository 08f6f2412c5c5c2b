"""The two engines for state merging behind one signature, and the search in the compiled core.

Input: samples and a strategy. Output: an automaton.
"""

import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, Final, TypeAlias

import numpy as np

from resolvent import _core
from resolvent._util.progress import Progress
from resolvent._util.text import visible
from resolvent._util.validation import shown
from resolvent.errors import OptionError, TimeLimitReached
from resolvent.inference.merge_order import (
    BestFirst,
    FirstFit,
    MostLikely,
    OutputInformation,
    merge_with_backtracking,
)
from resolvent.inference.prefix_tree import PrefixTree, build_prefix_tree
from resolvent.inference.state_merging import (
    Fold,
    Order,
    RedBlue,
    Watch,
    Watcher,
    automaton_of_search,
    completed_search,
    out_of_time,
)
from resolvent.inference.strategy import NodeOutputs, ProposedMerge, Strategy, strategy_named
from resolvent.machines.automaton import (
    RawAutomaton,
    StateLimitExceeded,
    WorkLimitExceeded,
    automaton_from_columns,
)
from resolvent.preprocess.contradictions import ContradictoryRows
from resolvent.preprocess.samples import SampleSet
from resolvent.traces.vocabulary import Codes

SEARCH_BUDGET: Final = 6_000_000_000
"""Maximum number of nodes that a search visits: 20 to 40 s at 10,000 steps if it finds nothing."""

LARGEST_EFFORT: Final = 1e9


@dataclass(frozen=True, slots=True)
class MergeLimits:
    """The limits of one run of an engine, and the listener for its progress."""

    time_limit: float | None = None
    listener: Watcher | None = None
    most_states: int | None = None
    most_work: int | None = None


Engine: TypeAlias = Callable[[SampleSet, Strategy, MergeLimits], RawAutomaton]
"""Infers an automaton from samples; an unfinished one if the time limit is reached.

It raises `Contradiction` if no machine can explain the samples, `StateLimitExceeded` as soon as
there are more than the limit, and `WorkLimitExceeded`, if the engine counts work, beyond that
limit.
"""


def merge_natively(samples: SampleSet, strategy: Strategy, limits: MergeLimits) -> RawAutomaton:
    """Infer an automaton from samples; the `Engine` built for speed."""
    learner = partial(
        _core.learn,
        order=strategy.name,
        most_states=limits.most_states,
        most_work=limits.most_work or 0,
    )
    return learn_natively(samples, limits.time_limit, limits.listener, learner)


def merge_in_python(samples: SampleSet, strategy: Strategy, limits: MergeLimits) -> RawAutomaton:
    """Infer an automaton from samples; the `Engine` written to be read. It counts no work."""
    watch = Watch(limits.time_limit, limits.listener)
    if strategy.rethinks:
        return merge_with_backtracking(samples, strategy.horizon, watch, limits.most_states)
    tree = build_prefix_tree(samples)
    calls = StrategyCalls(strategy, samples, tree)
    search = RedBlue(tree, watch, calls.fits if calls.has_own_fits else None)
    try:
        search.run(calls.order(), limits.most_states)
    except TimeLimitReached:
        return completed_search(samples, search)
    return automaton_of_search(search)


ENGINES: dict[str, Engine] = {"native": merge_natively, "python": merge_in_python}
"""The engines by name; the first is the default."""


def engine_for(strategy: Strategy, requested: str) -> str:
    """Return the engine for a strategy: the requested one, or that of the strategy by default.

    The default engine cannot be distinguished from the same engine given by name.

    Raises:
        OptionError: when there is no such engine, or it does not know the strategy.

    >>> engine_for(strategy_named("rpni"), "python")
    'python'
    """
    if not isinstance(requested, str) or requested not in ENGINES:
        raise OptionError(f"unknown engine {shown(requested)}: choose one of {', '.join(ENGINES)}")
    own, default = strategy.engines[0], next(iter(ENGINES))
    if requested not in strategy.engines and requested != default:
        raise OptionError(
            f"engine '{requested}' has no strategy '{strategy.name}': take engine '{own}'"
        )
    return requested if requested in strategy.engines else own


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
) -> RawAutomaton:
    """Infer an automaton from samples with the named engine, by merging or by searching.

    Only the search uses `seed`, `effort` and `known`, and only merging uses `most_states` and
    `most_work`.
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
            samples, seed=seed, effort=effort, time_limit=time_limit, listener=listener, known=known
        )
    limits = MergeLimits(time_limit, listener, most_states, most_work)
    return ENGINES[engine](samples, strategy, limits)


def search(
    samples: SampleSet,
    *,
    seed: int = 0,
    effort: float = 1.0,
    time_limit: float | None = None,
    listener: Watcher | None = None,
    known: Codes | None = None,
    merges: bool = True,
) -> RawAutomaton:
    """Search for the smallest automaton that explains the samples; never larger than edsm's.

    It needs far fewer traces than merging. The same samples, seed and effort give the same
    automaton; with a time limit the result is not reproducible. docs/decisions/inference.md
    describes the method.

    Args:
        samples: The samples to explain.
        seed: Seed of the search.
        effort: Factor for the number of nodes visited before the best automaton so far is taken.
        time_limit: Seconds after which the best automaton so far is taken.
        listener: Called now and then with the progress.
        known: Table [state, label] of a machine that explains the samples, −1 where a label is
            never read; the result is never larger than this machine.
        merges: Whether to start from the result of merging; needed if no machine is `known`.
    """
    check_seed_and_effort(seed, effort)
    learner = partial(_core.search, seed=seed, budget=int(effort * SEARCH_BUDGET))
    if known is not None and known.size:
        table = np.ascontiguousarray(known.ravel())
        learner = partial(learner, known=table, labels=known.shape[1], merges=merges)
    return learn_natively(samples, time_limit, listener, learner)


def check_seed_and_effort(seed: int, effort: float) -> None:
    """Refuse a seed or an effort that the core cannot represent.

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
) -> RawAutomaton:
    """Run a learner of the compiled core on samples, and raise the failure that it reports."""
    tree = samples.histories.tree
    outcome = learner(
        tree,
        samples.alpha,
        samples.output,
        time_limit=time_limit or 0.0,
        progress=None if listener is None else lambda *numbers: listener(Progress(*numbers)),
    )
    if "contradiction" in outcome:
        raise ContradictoryRows(*outcome["contradiction"])
    if "given_up" in outcome:
        raise StateLimitExceeded if outcome["given_up"] == "states" else WorkLimitExceeded
    if "time_limit" in outcome:
        raise out_of_time(Progress(*outcome["time_limit"]))
    return automaton_from_columns(outcome, len(tree))


class StrategyCalls:
    """Calls to a strategy's methods for one tree, with checks of what they return.

    A user's code may do anything wrong; the result is an `OptionError` that names the strategy and
    the method.
    """

    def __init__(self, strategy: Strategy, samples: SampleSet, tree: PrefixTree) -> None:
        self._strategy = strategy
        self._samples = samples
        self._tree = tree

    @property
    def has_own_fits(self) -> bool:
        """Whether the strategy overrides `fits`; otherwise it need not be called."""
        return getattr(self._strategy.fits, "__func__", None) is not Strategy.fits

    def order(self) -> Order:
        """Return the merge order of the strategy."""
        if self._strategy.first_fit:
            return FirstFit()
        if self._strategy.weighs:
            return MostLikely(OutputInformation(self._tree), self._strategy.horizon)
        return BestFirst(self.score, self._strategy.horizon)

    def fits(self, into: int, state: int) -> bool:
        """Return whether `state` may become part of `into`."""
        red, blue = (NodeOutputs(self._samples, self._tree, node) for node in (into, state))
        may_merge = self._call("fits", red, blue)
        if not isinstance(may_merge, bool | np.bool_):
            raise self._invalid("fits", may_merge, "return True or False")
        return bool(may_merge)

    def score(self, fold: Fold) -> float:
        """Return the score of a fold."""
        score = self._call("score", ProposedMerge(self._samples, fold))
        is_number = isinstance(score, Real) and not isinstance(score, bool)
        if not is_number or score != score:  # only NaN is not itself
            raise self._invalid("score", score, "return a number, or -inf to refuse the merge")
        return score  # type: ignore[no-any-return]

    def _call(self, method: str, *arguments: object) -> Any:
        try:
            return getattr(self._strategy, method)(*arguments)
        except Exception as error:
            cause = ": ".join(filter(None, (type(error).__name__, visible(str(error)))))
            raise OptionError(
                f"{self._where(method)} raised {cause}; correct it and infer again"
            ) from error

    def _invalid(self, method: str, returned: object, remedy: str) -> OptionError:
        return OptionError(
            f"{self._where(method)} gave {visible(reprlib.repr(returned))}: {remedy}"
        )

    def _where(self, method: str) -> str:
        return f"strategy '{self._strategy.name}': {method}()"
