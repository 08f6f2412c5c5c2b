"""What an inference is asked to do: one type for `infer`, its files and the command line."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import asdict, dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, get_type_hints

import msgspec
import numpy as np

from resolvent.arguments import is_single, shown
from resolvent.errors import ModelError, OptionError
from resolvent.inference.engine import check_seed_and_effort, engine_for
from resolvent.inference.strategy import STRATEGIES, Strategy, strategy_named
from resolvent.keeping import Store
from resolvent.noise import Noise
from resolvent.samples import LabelTiming
from resolvent.senses import Discretise
from resolvent.traces import Label, as_symbol, label_text
from resolvent.traces.labelling import GIVEN, Labelling, as_labelling
from resolvent.wording import short, visible
from resolvent.workers import Workers, workers_named

_RUN_ONLY = ("engine", "time_limit", "refine", "on", "resume")
"""Options that say how machines are found and not which ones: files do not hold them."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What `infer` is asked to do; `infer` says what each option means.

    Values are checked when options are made, and names of strategies and timings become
    what they stand for.

    >>> Options(strategy="rpni").strategy.refines, Options().timing
    (False, <LabelTiming.CURRENT: 'current'>)
    >>> Options.from_dict(Options(outputs=["reward"]).as_dict()).outputs
    ('reward',)
    """

    outputs: tuple[str, ...] | None = None
    strategy: Strategy = STRATEGIES["auto"]
    labels: Labelling | Literal["auto"] = GIVEN
    discretise: Discretise | Literal["auto"] | None = None
    noise: Noise | Literal["none", "auto"] = "auto"
    timing: LabelTiming = None  # type: ignore[assignment]  # what fits the labels
    trivial: tuple[Label | str, ...] | Literal["auto"] = "auto"
    supplement: bool = True
    remove_redundant: bool = True
    remove_trivial: bool = True
    reward_digits: int | None = None
    engine: str = "native"
    time_limit: float | None = None
    refine: bool | None = None
    seed: int = 0
    effort: float = 1.0
    on: str | Workers = "threads"
    resume: str | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "strategy", strategy_named(self.strategy))
        put(self, "engine", engine_for(self.strategy, self.engine))
        if not _is_auto(self.labels):
            put(self, "labels", as_labelling(self.labels, found=True))
        if not (_is_auto(self.discretise) or isinstance(self.discretise, Discretise | None)):
            raise OptionError(
                f"discretise={shown(self.discretise)}: give a Discretise, 'auto', or None for "
                f"observations as they are"
            )
        named = isinstance(self.noise, str) and self.noise in ("none", "auto")
        if not named and not isinstance(self.noise, Noise):
            raise OptionError(
                f"noise={shown(self.noise)}: choose 'auto', 'none', or say what is noisy by a Noise"
            )
        put(self, "timing", _timing(self.timing, made=self.labels not in (GIVEN, "auto")))
        put(self, "outputs", _outputs(self.outputs))
        for name in ("supplement", "remove_redundant", "remove_trivial"):
            put(self, name, _switch(name, getattr(self, name)))
        if self.refine is not None:
            put(self, "refine", _switch("refine", self.refine))
        put(self, "seed", _whole("seed", self.seed))
        if self.reward_digits is not None:
            put(self, "reward_digits", _whole("reward_digits", self.reward_digits))
        put(self, "effort", _number("effort", self.effort))
        check_seed_and_effort(self.seed, self.effort)
        workers_named(self.on)  # to refuse what nobody knows
        if self.resume is not None:
            if not isinstance(self.resume, str | Path) or "\0" in str(self.resume):
                raise OptionError(f"resume={shown(self.resume)}: name a folder by a text or path")
            put(self, "resume", Store(str(self.resume)).place)
        if self.time_limit is not None:
            put(self, "time_limit", _number("time_limit", self.time_limit))
            if not self.time_limit > 0:
                raise OptionError(f"the time limit is {self.time_limit:g} s: it must be above 0")
        if not _is_auto(self.trivial):
            put(self, "trivial", _labels(self.trivial))
            if self.trivial and not self.remove_trivial:
                raise OptionError(
                    "trivial labels are named, but remove_trivial is off: leave out one"
                )

    def __getstate__(self) -> dict[str, Any]:
        # Workers that somebody made may be a cluster, which cannot be written down.
        return {**vars(self), "on": self.on if isinstance(self.on, str) else "threads"}

    def as_dict(self) -> dict[str, Any]:
        """Return the options that shape the machines, as JSON values.

        Those that only say how they are found (the engine, limits) are left out, and
        so are the outputs where these are the default ones, labels that are given, and
        observations that are taken as they are. Noise is always there: files that do not
        speak of it were written when it was refused.
        """
        given = {name: value for name, value in vars(self).items() if name not in _RUN_ONLY}
        if self.outputs is None:
            del given["outputs"]
        else:
            given["outputs"] = list(self.outputs)
        given["labels"] = _labels_stored(self.labels)
        if given["labels"] == "given":
            del given["labels"]
        if isinstance(self.noise, Noise):
            given["noise"] = asdict(self.noise)
        if self.discretise is None:
            del given["discretise"]
        elif self.discretise != "auto":
            given["discretise"] = self.discretise.as_dict()
        if self.trivial != "auto":
            given["trivial"] = sorted(
                name if isinstance(name, str) else label_text(frozenset(name))
                for name in self.trivial
            )
        return {**given, "strategy": self.strategy.name, "timing": str(self.timing)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], strategy: Strategy | None = None) -> "Options":
        """Return the options that `as_dict` wrote down.

        A file knows of a strategy its name alone; one that is not built in is to be given.

        Raises:
            ModelError: when there is no such option here, or no such strategy.
        """
        types = {**get_type_hints(cls), **_STORED_TYPES}
        given: dict[str, Any] = {"noise": "none"}
        for name, value in stored.items():
            try:
                if name not in types or name in _RUN_ONLY:
                    raise msgspec.ValidationError(f"there is no option `{visible(name)}`")
                given[name] = msgspec.convert(value, types[name])
            except msgspec.ValidationError as error:
                raise ModelError(
                    f"the machines were inferred with options unknown here: {error} ({name})"
                ) from error
        if isinstance(made := given.get("labels"), _StoredLabels):
            events: Any = {as_symbol(source): name for source, name in made.events}
            given["labels"] = Labelling(made.reads, events)  # type: ignore[arg-type]
        if isinstance(numbers := given.get("discretise"), dict):
            given["discretise"] = Discretise.from_dict(numbers)
        named = given.get("strategy", cls.strategy.name)
        if strategy is None and named not in STRATEGIES:
            raise ModelError(
                f"the machines were inferred with strategy '{visible(named)}', which is "
                f"not built in: infer them again with it, or with one of {', '.join(STRATEGIES)}"
            )
        return cls(**{**given, "strategy": strategy or named})


class _StoredLabels(msgspec.Struct, forbid_unknown_fields=True):
    reads: str
    events: list[tuple[Any, str | list[str]]]


_STORED_TYPES: dict[str, Any] = {
    "outputs": list[str],
    "labels": str | _StoredLabels,
    "discretise": Literal["auto"] | dict[str, Any] | None,
    "noise": Literal["none", "auto"] | Noise,
    "strategy": str,
    "timing": str,
    "trivial": list[str] | Literal["auto"],
}
"""The types of options that stand in a file as something simpler than what they are here."""


def _switch(name: str, given: Any) -> bool:
    if not isinstance(given, bool | np.bool_):
        raise OptionError(f"{name} is {shown(given)}: choose True or False")
    return bool(given)


def _is_auto(given: Any) -> bool:
    return isinstance(given, str) and given == "auto"  # an array compares item by item


def _whole(name: str, given: Any) -> int:
    if isinstance(given, bool | np.bool_) or not isinstance(given, Integral):
        raise OptionError(f"{name} is {shown(given)}: choose a whole number")
    return int(given)


def _number(name: str, given: Any) -> float:
    if isinstance(given, bool | np.bool_) or not isinstance(given, Real):
        raise OptionError(f"{name} is {shown(given)}: choose a number")
    try:
        return float(given)
    except OverflowError:
        raise OptionError(f"{name} is {shown(given)}: choose a number below 1e308") from None


def _labels_stored(labels: Labelling | Literal["auto"]) -> Any:
    """Return how labels are made as JSON values: a word, unless events are named."""
    if isinstance(labels, str):
        return labels
    if labels.events is None:
        return labels.reads
    return {"reads": labels.reads, "events": [list(one) for one in labels.plain_events()]}


def _timing(timing: LabelTiming | str | None, made: bool) -> LabelTiming:
    if timing is None:
        return LabelTiming.CURRENT_WITH_INITIAL if made else LabelTiming.CURRENT
    if isinstance(timing, str) and timing in tuple(LabelTiming):
        return LabelTiming(timing)
    known = ", ".join(LabelTiming)
    raise OptionError(f"unknown timing {shown(timing)}: choose one of {known}")


def _labels(trivial: Iterable[Label | str]) -> tuple[Label | str, ...]:
    if isinstance(trivial, str):
        raise OptionError(f"trivial labels come as a list: write ['{trivial}'], not '{trivial}'")
    if not isinstance(trivial, Iterable) or is_single(trivial):
        raise OptionError(f"trivial={shown(trivial)}: give a list of labels")
    named = tuple(trivial)
    for one in named:
        if not isinstance(one, str | Set | list | tuple) or not all(
            isinstance(proposition, str) for proposition in one
        ):
            raise OptionError(f"trivial holds {shown(one)}: give labels as texts or sets of them")
    return named


def _outputs(outputs: Iterable[str] | None) -> tuple[str, ...] | None:
    if outputs is None:
        return None
    if isinstance(outputs, str):
        name = short(outputs)
        raise OptionError(f"outputs come as a list: write ['{name}'], not '{name}'")
    if not isinstance(outputs, Iterable) or is_single(outputs):
        raise OptionError(f"outputs={shown(outputs)}: give a list of names, such as ['reward']")
    named = tuple(outputs)
    if not named:
        raise OptionError("outputs is empty: name what machines should predict, such as 'reward'")
    for name in named:
        if not isinstance(name, str):
            raise OptionError(
                f"outputs holds {shown(name)}: name columns by strings, such as 'reward'"
            )
        if named.count(name) > 1:
            raise OptionError(f"outputs names '{short(name)}' twice: name it once")
    return named
