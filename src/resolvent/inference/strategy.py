"""Strategies: how machines are inferred, as values with a name.

`STRATEGIES` holds the built-in ones; users derive their own from `Strategy`. Its methods get
read-only views of two nodes (`NodeOutputs`) or of a merge (`ProposedMerge`), which hold only until
the method returns. Queries are numbers here; `query` gives the observation and action of one.
docs/decisions/inference.md gives the reasons for this design.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from resolvent._util.validation import quoted
from resolvent.errors import OptionError
from resolvent.inference.state_merging import Fold, PrefixTree
from resolvent.preprocess.samples import SampleSet
from resolvent.traces.symbols import Symbol

# ---- views of the tree -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OutputCount:
    """The output for a query, and how often it was observed."""

    output: Any
    count: int


class Agreement(NamedTuple):
    """A query for which two nodes have the same output, and how often each of them has it."""

    query: int
    output: Any
    known: int
    new: int


class _View:
    __slots__ = ("_samples",)
    _samples: SampleSet

    def query(self, number: int) -> tuple[Symbol, Symbol]:
        """Return the observation and action of a query."""
        samples = self._samples
        observation, action = divmod(int(samples.alpha_keys[number]), len(samples.actions))
        return samples.observations[observation], samples.actions[action]


class NodeOutputs(_View, Mapping[int, OutputCount]):
    """The outputs of one node of the prefix tree: query → `OutputCount`.

    A node has the outputs of the nodes merged into it, too, and the counts add up.
    """

    __slots__ = ("_counts", "_outputs")

    def __init__(self, samples: SampleSet, tree: PrefixTree, node: int) -> None:
        self._samples, self._outputs, self._counts = samples, tree.outputs[node], tree.counts[node]

    def __getitem__(self, query: int) -> OutputCount:
        output = self._samples.outputs[self._outputs[query]]
        return OutputCount(output, self._counts[query])

    def __iter__(self) -> Iterator[int]:
        return iter(self._outputs)

    def __len__(self) -> int:
        return len(self._outputs)


class ProposedMerge(_View):
    """A possible merge, with all merges that it forces further down the tree.

    It extends as far as the strategy's horizon; the merge itself extends to the end.
    """

    __slots__ = ("_fold",)

    def __init__(self, samples: SampleSet, fold: Fold) -> None:
        self._samples, self._fold = samples, fold

    @property
    def agreeing(self) -> int:
        """Number of outputs that agree, each counted once however often it was observed."""
        return self._fold.agreeing

    @property
    def folded(self) -> int:
        """Number of prefix-tree nodes that the merge would remove."""
        return len(self._fold.merged)

    def agreements(self) -> Iterator[Agreement]:
        """Yield the `agreeing` outputs that agree, those nearest to the merge first."""
        for alpha, output, before, new in self._fold.agreements():
            yield Agreement(alpha, self._samples.outputs[output], before, new)


# ---- strategies --------------------------------------------------------------


class Strategy:
    """An inference strategy; derive from it to define which states are merged.

    Your own strategy needs a `name` and a `score`; all else is optional. It need not look for
    contradictions: nodes with different outputs for a query are never merged. It must not change
    during use, so a strategy with parameters is best a frozen dataclass.

    Attributes:
        name: The name in results and files.
        horizon: Number of outputs by which a merge is scored, the nearest ones; None for all.
        first_fit: Merge each state into the first one that it fits, in the order of the paper,
            without scores.
        keeps_labels: Drop no label but "no event" before the search.
        refines: By default learn from a sample if there are very many traces, and repair
            contradictions with the others.
        merges: Merges nodes of the prefix tree, and reports the number of decided ones.
        searches: Uses `seed` and `effort`, and may use all the time it gets.
        proves: Proves its machines minimal.

    The last three are set by built-in strategies only.

    >>> class Weighty(Strategy):
    ...     name = "weighty"
    ...
    ...     def score(self, merge):
    ...         return sum(min(pair.known, pair.new) for pair in merge.agreements())
    >>> import gymnasium as gym, resolvent as rs
    >>> house = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    >>> rs.infer(house, strategy=Weighty()).machines.transition.states
    2
    """

    name: str
    horizon: int | None = 1024
    first_fit: bool = False
    keeps_labels: bool = False
    refines: bool = True
    merges: bool = True
    searches: bool = False
    proves: bool = False

    def fits(self, known: NodeOutputs, new: NodeOutputs) -> bool:
        """Return whether two nodes may be merged; called for each pair that a merge forces.

        Their outputs do not differ for any query. `known` is the node that stays, `new` the one
        that becomes part of it.
        """
        return True

    def score(self, merge: ProposedMerge) -> float:
        """Return the score of a merge; the highest is made, and -inf refuses.

        A state whose merges are all refused is promoted before any merge is made. Of equals the
        merge of the earlier state is made, into the state that was promoted earlier.
        """
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Strategy):
            return NotImplemented
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({parameters})"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, repr=False)
class BuiltInStrategy(Strategy):
    """A strategy of the package; the engines know how it merges."""

    name: str
    first_fit: bool = False
    keeps_labels: bool = False
    refines: bool = True
    merges: bool = True
    searches: bool = False
    proves: bool = False

    def score(self, merge: ProposedMerge) -> float:
        """Return the number of outputs that agree, the score of `edsm`."""
        return merge.agreeing

    def __repr__(self) -> str:
        return f"STRATEGIES[{self.name!r}]"


AUTO: Final = BuiltInStrategy("auto", searches=True)
"""The shortest description that several strategies find, the cheap ones first."""

EDSM: Final = BuiltInStrategy("edsm")
"""The merge on which most outputs agree, each counted once however often it was observed."""

RPNI: Final = BuiltInStrategy("rpni", first_fit=True, refines=False)
"""The first merge that fits, in the paper's order. From few traces it finds too many states."""

LIKELIHOOD: Final = BuiltInStrategy("likelihood")
"""The merge with the most informative agreement and the most likely transition.

Outputs are more informative the rarer they are and the nearer to the merge; the distribution of
transitions is learned from earlier merges.
"""

BACKTRACKING: Final = BuiltInStrategy("backtracking")
"""The machine of `likelihood`, without the merges that make its description longer."""

SEARCH: Final = BuiltInStrategy("search", keeps_labels=True, merges=False, searches=True)
"""The smallest machine found by simulated annealing over transition tables of all labels."""

EXACT: Final = replace(SEARCH, name="exact", proves=True)
"""The smallest machine there is, with a proof, which holds only if no label was dropped before."""

STRATEGIES: Final[dict[str, Strategy]] = {
    strategy.name: strategy
    for strategy in (AUTO, EDSM, RPNI, LIKELIHOOD, BACKTRACKING, SEARCH, EXACT)
}
"""The built-in strategies by name; the first is the default."""


def strategy_named(strategy: str | Strategy) -> Strategy:
    """Return a built-in strategy by its name, or the user's own strategy after checking it.

    Raises:
        OptionError: when there is no such strategy, or it lacks a required attribute.
    """
    names = ", ".join(STRATEGIES)
    if isinstance(strategy, Strategy):
        if strategy not in STRATEGIES.values():
            _check(strategy)
        return strategy
    if isinstance(strategy, type) and issubclass(strategy, Strategy):
        raise OptionError(f"strategy {strategy.__name__} is a class: give {strategy.__name__}(...)")
    if not isinstance(strategy, str):
        raise OptionError(
            f"strategy={quoted(strategy)}: choose one of {names}, or give an instance of a class "
            f"derived from resolvent.inference.Strategy"
        )
    if strategy not in STRATEGIES:
        raise OptionError(f"unknown strategy '{strategy}': choose one of {names}")
    return STRATEGIES[strategy]


ENGINES: Final = ("native", "python")
"""The implementations of merging; the first is the default."""


def engine_for(strategy: Strategy, requested: str) -> str:
    """Return the engine for a strategy: the requested one, or that of a strategy with one only.

    A strategy that is not built in runs in Python, whatever is requested. Of the built-in ones,
    Python has "edsm" and "rpni", and "auto" with these two in Python; it is refused for others.
    """
    if not isinstance(requested, str) or requested not in ENGINES:
        raise OptionError(f"unknown engine {quoted(requested)}: choose one of {', '.join(ENGINES)}")
    if strategy not in STRATEGIES.values():
        return "python"
    if requested == "python" and strategy not in (AUTO, EDSM, RPNI):
        raise OptionError(f"engine 'python' has no strategy '{strategy.name}': use engine 'native'")
    return requested


def _check(own: Strategy) -> None:
    """Refuse an unusable strategy of the user before any work is done."""
    title = f"strategy {type(own).__name__}"
    name = getattr(own, "name", None)
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise OptionError(f"{title} has no name: set name = '...' in its class")
    if name in STRATEGIES:
        raise OptionError(f"{title} has the name of a built-in strategy, '{name}': choose another")
    for switch in ("first_fit", "keeps_labels", "refines"):
        if not isinstance(value := getattr(own, switch), bool):
            raise OptionError(f"{title}: {switch} is {quoted(value)}: choose True or False")
    for fact in ("merges", "searches", "proves"):
        if getattr(own, fact) != getattr(Strategy, fact):
            only = "which only built-in strategies may: leave it out"
            raise OptionError(f"{title} sets {fact}, {only}")
    horizon = own.horizon
    if horizon is not None and (not isinstance(horizon, int) or horizon < 1):
        raise OptionError(f"{title}: horizon={quoted(horizon)}: choose a number above 0, or None")
    if not callable(own.fits):
        raise OptionError(f"{title} has no method fits(known, new): define it, or leave it out")
    unwritten = getattr(own.score, "__func__", None) is Strategy.score and not own.first_fit
    if unwritten or not callable(own.score):
        raise OptionError(f"{title} has no method score(merge): define one that returns a number")
