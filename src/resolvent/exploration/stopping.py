"""Why exploring stopped, as a statement with its numbers."""

from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from resolvent.errors import ModelError
from resolvent.wording import amount, listed

Kind: TypeAlias = Literal[
    "optimal",
    "target",
    "budget",
    "interrupted",
    "failed",
    "nothing pays",
    "out of reach",
    "chance",
    "readings",
]
"""Nothing is better; nothing is better by more than asked for; no steps are left; somebody
interrupted; the environment failed; nothing ever paid; what is left could not be reached; the
world is random; what is seen are numbers that do not come back."""

MORE: Final = "say with reward_range what could be paid, or try on with a larger budget"


@dataclass(frozen=True)
class Statement:
    """Why exploring stopped, and what holds then.

    `states` are the sizes of the machines, `moves` how many of their moves were tested,
    `open_steps` how many steps could still be better, and `gap` by how much acting otherwise
    could be better at most, from any of the starts. `capped` counts the episodes that a limit
    on their length cut, and `cut` names a step after which the environment always did so.
    `contradiction` says what showed the world to be random, if it is, `failure` what went wrong
    in the environment, if it did, and `labels` what labels were made of, if nobody told any.

    `at_most` is how many states there may be of, where somebody said so. Then `tests` counts
    what rules out that there are more than were found: after each state every word of labels
    that known steps can read, of as many labels as there may be more states and one, and a
    question that tells where it led from every other state. It is None where words were only
    sampled. `untold` counts other machines, of no more states, that explain everything as well
    and that no known step tells from those found.
    """

    kind: Kind
    steps: int
    episodes: int
    states: dict[str, int]
    situations: int
    moves: int
    open_steps: int
    gap: float
    depth: int
    reward_range: tuple[float, float]
    capped: int = 0
    confidence: float | None = None
    contradiction: str | None = None
    at_most: int | None = None
    tests: int | None = None
    untold: int = 0
    labels: str = ""
    failure: str | None = None
    cut: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ModelError(f"a statement cannot be {self.kind!r}: use {listed(get_args(Kind))}")

    @property
    def worlds(self) -> str:
        """The worlds for which the statement holds, in words."""
        found = listed([f"{size} {kind}" for kind, size in self.states.items()])
        pays = "{:g} to {:g}".format(*self.reward_range)
        has = f"the states that were found ({found})"
        if self.at_most is not None and self.tests is not None:
            has = f"at most {amount(self.at_most, 'state')} in each machine ({found} were found)"
        seen = amount(self.steps, "step")
        return f"every world that agrees with the {seen} seen, has {has} and pays {pays}"

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        told = asdict(self)
        told["reward_range"] = list(self.reward_range)
        told["gap"] = self.gap if self.gap < float("inf") else None
        return {**told, "text": str(self)}

    def __str__(self) -> str:
        text = f"{self._why()}{self._left()}"
        if self.capped:
            were = "was" if self.capped == 1 else "were"
            text += f"; {amount(self.capped, 'episode')} did not end and {were} cut"
        if self.cut:
            text += (
                f"; the environment cut each episode that did {self.cut}: the plan takes it that "
                f"it would have gone on, so if that is an end, have the environment terminate"
            )
        if self.labels:
            text += f"; labels: {self.labels}"
        return text

    def _why(self) -> str:
        seen = amount(self.steps, "step")
        tested = f"{amount(self.moves, 'move')} of labels tested, up to {self.depth} in a row"
        if self.at_most is not None:
            tested += self._more_states(self.at_most)
        if self.untold:
            others = amount(self.untold, "other machine")
            tested += f"; {others} explain all of it as well, and no known step tells them apart"
        if self.kind == "optimal":
            return f"optimal in {self.worlds}; {tested}"
        if self.kind == "target":
            return f"at most {self.gap:.4g} below the best in {self.worlds}; {tested}"
        if self.kind == "nothing pays":
            return (
                "nothing that was tried pays differently from anything else, so that no way to act "
                f"is better than another; {MORE}"
            )
        if self.kind == "out of reach":
            where = "begins in starts that no longer came up"
            if self.contradiction is not None:
                where = f"is a matter of chance ({self.contradiction})"
            below = f"at most {self.gap:.4g} below the best in {self.worlds}"
            return f"what could still be better {where}: {below}"
        if self.kind == "chance":
            random = f"the world is random ({self.contradiction}); after {seen}"
            if self.gap == float("inf"):
                return f"{random} nothing was paid that tells how to act: {MORE}"
            sure = f"{100 * (self.confidence or 0):.6g}%"
            return f"{random} with {sure} confidence at most {self.gap:.4g} below the best"
        if self.kind == "readings":
            return (
                f"what is seen are numbers that hardly ever come back: in {seen} "
                f"{self.situations:,} different situations; make intervals of them, "
                "for example with name_of=lambda seen: tuple(round(float(one), 1) for one in seen)"
            )
        spent = {"budget": "the budget is spent", "failed": "the environment failed"}
        why = f"{spent.get(self.kind, 'interrupted')} after {seen}"
        return f"{why} ({self.failure})" if self.failure else why

    def _more_states(self, at_most: int) -> str:
        if self.tests is None:
            return f"; up to {amount(at_most, 'state')}, words of labels were only sampled"
        return (
            f"; {amount(self.tests, 'test')} of the words that known steps can read after each "
            f"state rule out more states, up to {at_most}"
        )

    def _left(self) -> str:
        if self.kind not in ("budget", "interrupted", "failed"):
            return ""
        if self.gap == float("inf"):
            return f"; nothing was paid that tells how to act: {MORE}"
        below = f", at most {self.gap:.4g} below the best"
        if not self.open_steps:
            return f"{below}; nothing better is left to try, but not all is tested"
        were = "was" if self.open_steps == 1 else "were"
        left = amount(self.open_steps, "step")
        return f"{below}; {left} could be better and {were} never taken"
