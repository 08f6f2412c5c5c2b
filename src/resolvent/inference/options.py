"""The options of an inference: one type for `infer`, model files and the command line."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, fields, replace
from math import inf, ulp
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

import msgspec

from resolvent._util.cache import Store
from resolvent._util.parallel import Workers, executor_named
from resolvent._util.records import builtin
from resolvent._util.text import short, visible
from resolvent._util.validation import check_arguments, is_zero_dim, quoted
from resolvent.errors import ModelError, OptionError
from resolvent.inference.strategy import AUTO, STRATEGIES, Strategy, engine_for, strategy_named
from resolvent.noise import Noise
from resolvent.preprocess.discretize import Discretizer
from resolvent.preprocess.labeling import AS_RECORDED, LabelingFunction, as_labeling_function
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces import Label, as_symbol, label_text

_RUN_ONLY = ("engine", "time_limit", "refine", "on", "cache_dir")
"""Options that do not change which machines are inferred: files do not hold them."""

_CONVERTED = ("outputs", "strategy", "labels", "timing", "trivial", "engine")
"""Options that users pass in other forms than those declared."""


def _number(default: float | None, least: float, most: float, words: str) -> Any:
    """Declare an option that is a number in a range."""
    return field(default=default, metadata={"range": (least, most, words)})


@dataclass(frozen=True, kw_only=True)
class InferenceOptions:
    """All options of `infer`.

    Values are checked at construction; names of strategies and timings are replaced by the
    objects. The first sentence of a description is the help of the command line.

    Attributes:
        outputs: The columns that machines predict: "observation" (the next one), "reward",
            "terminated", and further columns of the traces by name. By default the two of the
            paper, as far as the traces have rewards; and whether episodes end, if that depends on
            memory that those two do not have. Traces of a log, with one observation throughout,
            no rewards and further columns, get a machine for each of these columns instead.
        strategy: The search for machines: "auto" tries several, cheap ones first, and takes the
            shortest description; "edsm" merges states by most evidence, "rpni" in the paper's
            order; "search" looks for the smallest machine and needs far fewer traces; "exact"
            also proves that it is the smallest. `result.tried` lists the attempts of "auto", and
            `result.certificates` the proofs of "exact", which needs the extra `exact`. Or a
            `Strategy` of your own. Machines with noise are the most likely ones, whatever the
            strategy.
        labels: The labels that machines read: "given" for those of the traces; "observation",
            "action" or "action+observation" to derive them, each value a label of its own; or
            "auto" to discover which of these are events, with those that act alike merged. The
            machines store the labeling function and apply it to new steps; `result.events` lists
            the events.
        discretize: Intervals for numbers in observations. A `Discretizer`, which is fitted to the
            traces unless it is fitted, or "auto" for as many intervals as shorten the
            description. The machines store it as well.
        noise: The noise that is allowed: "auto" for none as long as machines without noise
            explain all traces, and otherwise the most likely machines, whose states have
            distributions of outputs; "none" to make a contradiction between traces an error.
            `machine.distribution` returns these distributions, `result.noise` the noise of each
            kind, `result.warnings` the reasons to assume it, and `result.outliers` traces that do
            not fit at all. A `Noise` states the noise; all else is exact.
        timing: The labels that are read before a step is answered. By default all but the first,
            "current"; labels that are derived from observations count from the first on,
            "current-with-initial".
        trivial: A label that changes no state, besides "no event". In Python a list of labels, as
            sets of propositions or as the texts they print as, or "auto" to judge by the traces
            which labels a machine does not need; `result.trivial` says why.
        supplement: Pair observations with Transition Machine states for the other machines.
        remove_redundant: Leave queries with one output throughout out of the search. They are
            restored afterwards.
        remove_trivial: Leave trivial labels out of the search. They are restored as self-loops.
        reward_digits: Number of decimals that rewards are rounded to before they are compared.
        engine: The implementation: "native", or "python" for the executable specification of
            "rpni" and "edsm". A strategy of your own runs in Python, whatever the engine.
        time_limit: Maximum seconds of the inference, after which the best machines so far are
            replayed on all traces and returned. `result.unfinished` lists those that are not
            finished, and the share of outputs that they get wrong. Only reading files that takes
            longer is an error.
        refine: Learn from a sample, replay all traces, add counterexamples, and repeat until the
            machines explain all. By default with more than 500,000 steps.
        seed: Seed of the search. It matters for "auto", "search" and "exact".
        effort: Maximum work of the search relative to the default: 2 is twice as much. It counts
            work, not time, so that the same traces give the same machines.
        on: Workers for files that are scanned, and for searches side by side: "threads" of this
            process, "processes" of this machine, or "ray", a cluster: that of "ray:ADDRESS" or
            RAY_ADDRESS, or else a Ray of this machine alone. A cluster of `ray.init` is used as
            well; a Ray of this machine takes seconds to start. Or `Workers` of your own. The
            machines are the same. Ray needs the extra `ray`.
        cache_dir: A folder, or an address such as "s3://bucket/runs/7", that caches the results
            for each shard of a scanned folder, so that an interrupted inference continues from
            there when it runs again. The result is the same. With `on="ray"` all nodes have to
            reach it. Files that have changed are read again. It may be removed at any time;
            traces in memory need none.

    >>> InferenceOptions(strategy="rpni").strategy.refines, InferenceOptions().timing
    (False, <LabelTiming.CURRENT: 'current'>)
    >>> InferenceOptions.from_dict(InferenceOptions(outputs=["reward"]).as_dict()).outputs
    ('reward',)
    """

    outputs: tuple[str, ...] | None = None
    strategy: Strategy = AUTO
    labels: LabelingFunction | Literal["auto"] = AS_RECORDED
    discretize: Discretizer | Literal["auto"] | None = None
    noise: Noise | Literal["none", "auto"] = "auto"
    timing: LabelTiming = None  # type: ignore[assignment]  # the default depends on the labels
    trivial: tuple[Label | str, ...] | Literal["auto"] = "auto"
    supplement: bool = True
    remove_redundant: bool = True
    remove_trivial: bool = True
    reward_digits: int | None = None
    engine: str = "native"
    time_limit: float | None = _number(None, ulp(0.0), inf, "above 0")
    refine: bool | None = None
    seed: int = _number(0, 0, 2**64 - 1, "from 0 to 2^64 - 1")
    effort: float = _number(1.0, ulp(0.0), 1e9, "above 0 and at most 1e9")
    on: str | Workers = "threads"
    cache_dir: str | Path | None = None

    def __post_init__(self) -> None:
        check_arguments(InferenceOptions, vars(self), leaving=_CONVERTED)
        for option in fields(self):
            value, types = getattr(self, option.name), (option.type, *get_args(option.type))
            number_type = next((number for number in (bool, int, float) if number in types), None)
            if number_type is None or value is None:
                continue
            least, most, words = option.metadata.get("range", (-inf, inf, ""))
            if not least <= value <= most:
                raise OptionError(f"{option.name}={value}: give a number {words}")
            self._set(option.name, number_type(value))  # JSON does not know NumPy's numbers
        self._set("strategy", strategy_named(self.strategy))
        self._set("engine", engine_for(self.strategy, self.engine))
        if not _is_auto(self.labels):
            self._set("labels", as_labeling_function(self.labels, allow_auto=True))
        self._set("_timing_is_default", self.timing is None)
        default = LabelTiming.CURRENT
        if self.labels not in (AS_RECORDED, "auto"):
            default = LabelTiming.CURRENT_WITH_INITIAL
        timing = default if self.timing is None else self.timing
        if not isinstance(timing, str) or timing not in tuple(LabelTiming):
            names = ", ".join(LabelTiming)
            raise OptionError(f"unknown timing {quoted(timing)}: choose one of {names}")
        self._set("timing", LabelTiming(timing))
        if self.outputs is not None:
            self._set("outputs", _checked_outputs(self.outputs))
        executor_named(self.on)  # raises if unknown
        if self.cache_dir is not None:
            self._set("cache_dir", Store(str(self.cache_dir)).location)
        if not _is_auto(self.trivial):
            self._set("trivial", _checked_labels(self.trivial))
        if self.trivial and self.trivial != "auto" and not self.remove_trivial:
            raise OptionError("trivial labels are named, but remove_trivial is off: leave out one")

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def __getstate__(self) -> dict[str, Any]:
        # Workers that a user made may be a cluster, which cannot be pickled.
        return {**vars(self), "on": self.on if isinstance(self.on, str) else "threads"}

    def replacing(self, **changes: Any) -> "InferenceOptions":
        """Return these options with other values; the timing stays a default if it is one.

        >>> InferenceOptions(seed=3).replacing(labels="observation").timing
        <LabelTiming.CURRENT_WITH_INITIAL: 'current-with-initial'>
        """
        if vars(self)["_timing_is_default"]:
            changes.setdefault("timing", None)
        return replace(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        """Return the options that determine the machines, as JSON values.

        Default outputs, recorded labels and observations without discretization are left out. Noise
        is always there: files without it were written when noise was refused.
        """
        names = (option.name for option in fields(self) if option.name not in _RUN_ONLY)
        values = {name: getattr(self, name) for name in names}
        values |= {"strategy": self.strategy.name, "labels": _stored_labels(self.labels)}
        if self.trivial != "auto":
            values["trivial"] = sorted(
                name if isinstance(name, str) else label_text(frozenset(name))
                for name in self.trivial
            )
        for name, default in {"outputs": None, "labels": "given", "discretize": None}.items():
            if values[name] == default:
                del values[name]
        return {name: builtin(value) for name, value in values.items()}

    @classmethod
    def from_dict(
        cls, stored: Mapping[str, Any], strategy: Strategy | None = None
    ) -> "InferenceOptions":
        """Return the options that `as_dict` returned.

        A file holds only the name of a strategy; one that is not built in must be given.

        Raises:
            ModelError: when there is no such option, or no such strategy.
        """
        types = {**get_type_hints(cls), **_STORED_TYPES}
        values: dict[str, Any] = {"noise": "none"}
        for name, value in stored.items():
            try:
                if name not in types or name in _RUN_ONLY:
                    raise msgspec.ValidationError(f"there is no option `{visible(name)}`")
                values[name] = msgspec.convert(value, types[name])
            except msgspec.ValidationError as error:
                raise ModelError(
                    f"the machines were inferred with options unknown here: {error} ({name})"
                ) from error
        if isinstance(labels := values.get("labels"), _StoredLabels):
            events: Any = {as_symbol(source): name for source, name in labels.events}
            values["labels"] = LabelingFunction(labels.reads, events)  # type: ignore[arg-type]
        if isinstance(discretize := values.get("discretize"), dict):
            values["discretize"] = Discretizer.from_dict(discretize)
        strategy_name = values.get("strategy", AUTO.name)
        if strategy is None and strategy_name not in STRATEGIES:
            raise ModelError(
                f"the machines were inferred with strategy '{visible(strategy_name)}', which is "
                f"not built in: infer them again with it, or with one of {', '.join(STRATEGIES)}"
            )
        return cls(**{**values, "strategy": strategy or strategy_name})


class _StoredLabels(msgspec.Struct, forbid_unknown_fields=True):
    reads: str
    events: list[tuple[Any, str | list[str]]]


_STORED_TYPES: dict[str, Any] = {
    "outputs": list[str],
    "labels": str | _StoredLabels,
    "discretize": Literal["auto"] | dict[str, Any] | None,
    "noise": Literal["none", "auto"] | Noise,
    "strategy": str,
    "timing": str,
    "trivial": list[str] | Literal["auto"],
}
"""Types in files, for options whose type has no JSON form."""


def _stored_labels(labels: LabelingFunction | Literal["auto"]) -> Any:
    """Return the source of labels as JSON values: a word, unless events are named."""
    if isinstance(labels, str):
        return labels
    if labels.events is None:
        return labels.reads
    return {"reads": labels.reads, "events": [list(event) for event in labels.event_pairs()]}


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"  # an array compares element by element


def _as_tuple(name: str, values: Iterable[Any]) -> tuple[Any, ...]:
    if isinstance(values, str):
        text = short(values)
        raise OptionError(f"{name} must be a list: write ['{text}'], not '{text}'")
    if not isinstance(values, Iterable) or is_zero_dim(values):
        raise OptionError(f"{name}={quoted(values)}: give a list")
    return tuple(values)


def _checked_labels(trivial: Iterable[Label | str]) -> tuple[Label | str, ...]:
    labels = _as_tuple("trivial labels", trivial)
    for label in labels:
        is_label = isinstance(label, str | Set | list | tuple)
        if not is_label or not all(isinstance(proposition, str) for proposition in label):
            raise OptionError(f"trivial has {quoted(label)}: give labels as texts or sets of them")
    return labels


def _checked_outputs(outputs: Iterable[str]) -> tuple[str, ...]:
    names = _as_tuple("outputs", outputs)
    if not names:
        raise OptionError("outputs is empty: name columns to predict, such as 'reward'")
    for name in names:
        if not isinstance(name, str):
            wrong = quoted(name)
            raise OptionError(f"outputs holds {wrong}: name columns by strings, such as 'reward'")
        if names.count(name) > 1:
            raise OptionError(f"outputs names '{short(name)}' twice: name it once")
    return names
