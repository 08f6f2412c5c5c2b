"""Strategies: values that say how machines are found, and what is true of that way.

`STRATEGIES` holds the built-in ones; users derive their own from `Strategy`.
docs/decisions/strategies.md says why they are cut this way.
"""

from dataclasses import dataclass
from typing import Final

from resolvent.arguments import shown
from resolvent.errors import OptionError
from resolvent.merging.answers import Answers, ProposedMerge

_NATIVE: Final = "native"
_PYTHON: Final = "python"


class Strategy:
    """How machines are found; derive from it to say yourself which states are one.

    A strategy of your own has a `name` and a `score`; all else is optional. It
    never has to look for contradictions: two nodes that answer a question
    differently are not merged, whatever it says. It must not change while it is
    used, so that one with parameters is best a frozen dataclass.

    Attributes:
        name: What results and files call it.
        horizon: How many answers a merge is scored by, the nearest ones; None for all.
        first_fit: Take for each state, in the order of the paper, the first one that
            it fits, and ask for no score.
        keeps_labels: Drop no label but "no event" before the search.
        refines: By itself learn from some of very many traces, and repair what the
            others contradict.
        merges: It merges nodes of the prefix tree, and tells how many are settled.
        searches: It makes use of `seed` and `effort`, and may use all the time it gets.
        proves: It gives certificates.
        weighs: It weighs answers by what they tell, and moves by what is usual.
        rethinks: It asks of each merge whether the machine is shorter without it.
        chooses: It runs others, and takes the machine with the shortest description.
        engines: Those that can run it, the default first.

    The last seven are for built-in strategies to say.

    >>> class Weighty(Strategy):
    ...     name = "weighty"
    ...
    ...     def score(self, merge):
    ...         return sum(min(one.known, one.new) for one in merge.agreements())
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
    weighs: bool = False
    rethinks: bool = False
    chooses: bool = False
    engines: tuple[str, ...] = (_PYTHON,)

    def fits(self, known: Answers, new: Answers) -> bool:
        """Say whether two nodes may be one; asked for each pair that a merge forces.

        They have answered no question differently. `known` is the node that
        stays, `new` the one that would become part of it.
        """
        return True

    def score(self, merge: ProposedMerge) -> float:
        """Say how good a merge is; the best one is made, and -inf refuses.

        A state whose every merge is refused becomes a state of its own before
        any merge is made. Of equals the merge of the earlier state is made, into the
        state that was found earlier.
        """
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Strategy):
            return NotImplemented
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({given})"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Auto(Strategy):
    """The shortest description among what several strategies find, the cheap ones first.

    Orders of merging that differ are tried where the first one leaves doubt, then the search;
    each within an effort that is counted in work, not in seconds.
    """

    name = "auto"
    searches = True
    chooses = True
    engines = (_NATIVE, _PYTHON)


@dataclass(frozen=True)
class Edsm(Strategy):
    """The merge on which most answers agree.

    An answer counts once however often it was seen, so repeated traces change nothing.
    """

    name = "edsm"
    engines = (_NATIVE, _PYTHON)

    def score(self, merge: ProposedMerge) -> float:
        """Count the answers that agree."""
        return merge.agreeing


@dataclass(frozen=True)
class Rpni(Strategy):
    """The first merge that fits, in the paper's order.

    It needs all traces that can be had: from few it finds far too many states.
    """

    name = "rpni"
    first_fit = True
    refines = False
    engines = (_NATIVE, _PYTHON)


@dataclass(frozen=True)
class Telling(Strategy):
    """The merge whose agreement tells most, and whose move is most usual.

    Answers tell more the rarer they are and the nearer to the merge; what is usual is
    learned from merges made before. Real systems have sinks, where everything agrees, and
    requests that change nothing: both mislead the counting of `edsm`.
    """

    name = "telling"
    weighs = True
    engines = (_NATIVE, _PYTHON)


@dataclass(frozen=True)
class Rethink(Strategy):
    """What `telling` finds, without the merges that make it longer to describe.

    Some hundred times as dear as merging once, where traces are few; the more there are, the
    less is tried.
    """

    name = "rethink"
    weighs = True
    rethinks = True
    engines = (_NATIVE, _PYTHON)


@dataclass(frozen=True)
class SmallestFound(Strategy):
    """The smallest machine that annealing over transition tables finds.

    Such a search finds the loops of labels that change nothing by itself.
    """

    name = "search"
    keeps_labels = True
    merges = False
    searches = True
    engines = (_NATIVE,)


@dataclass(frozen=True)
class SmallestProven(Strategy):
    """The smallest machine there is, with a certificate.

    A proof would not hold for a machine that reads labels which were dropped before it.
    """

    name = "exact"
    keeps_labels = True
    merges = False
    searches = True
    proves = True
    engines = (_NATIVE,)


STRATEGIES: Final[dict[str, Strategy]] = {
    one.name: one
    for one in (Auto(), Edsm(), Rpni(), Telling(), Rethink(), SmallestFound(), SmallestProven())
}
"""The built-in strategies by name; the first is the default."""

_TO_CHOOSE = ("first_fit", "keeps_labels", "refines")
_BUILT_IN = ("merges", "searches", "proves", "weighs", "rethinks", "chooses", "engines")


def strategy_named(given: str | Strategy) -> Strategy:
    """Return the strategy that a user means: a built-in one by its name, or one of their own.

    Raises:
        OptionError: when there is no such strategy, or when it lacks what one needs.

    >>> strategy_named("rpni").refines
    False
    >>> strategy_named("bfs")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    resolvent.errors.OptionError: unknown strategy 'bfs': choose one of auto, edsm, rpni, ...
    """
    known = ", ".join(STRATEGIES)
    if isinstance(given, Strategy):
        if given not in STRATEGIES.values():
            _check(given)
        return given
    if isinstance(given, type) and issubclass(given, Strategy):
        raise OptionError(f"strategy {given.__name__} is a class: give {given.__name__}(...)")
    if not isinstance(given, str):
        raise OptionError(
            f"a {type(given).__name__} is no strategy: choose one of {known}, or derive a class "
            f"from resolvent.Strategy"
        )
    if given not in STRATEGIES:
        raise OptionError(f"unknown strategy '{given}': choose one of {known}")
    return STRATEGIES[given]


def _check(own: Strategy) -> None:
    """Refuse a user's strategy that could not be asked, before any work is done."""
    kind = f"strategy {type(own).__name__}"
    name = getattr(own, "name", None)
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise OptionError(f"{kind} has no name: write name = '...' in its class")
    if name in STRATEGIES:
        raise OptionError(f"{kind} has the name of a built-in one, '{name}': choose another")
    for fact in _TO_CHOOSE:
        if not isinstance(getattr(own, fact), bool):
            raise OptionError(
                f"{kind}: {fact} is {shown(getattr(own, fact))}: choose True or False"
            )
    for fact in _BUILT_IN:
        if getattr(own, fact) != getattr(Strategy, fact):
            raise OptionError(f"{kind} sets {fact}, which only built-in ones do: leave it out")
    horizon = own.horizon
    if horizon is not None and (not isinstance(horizon, int) or horizon < 1):
        raise OptionError(f"{kind}: horizon is {shown(horizon)}: choose a number above 0, or None")
    if not callable(own.fits):
        raise OptionError(f"{kind} has no method fits(known, new): leave it out, or write one")
    unwritten = getattr(own.score, "__func__", None) is Strategy.score and not own.first_fit
    if unwritten or not callable(own.score):
        raise OptionError(f"{kind} has no method score(merge): write one that returns a number")
