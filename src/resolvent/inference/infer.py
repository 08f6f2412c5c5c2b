"""Infer machines from traces, in five stages: source, preprocessing, corpus, noise model, result.

`try_infer` shows the stages. With `labels="auto"`, the last three are tried for candidates of
labels. The paper's algorithm is in `algorithm`; `refinement` runs it on all traces or a growing
sample.
"""

import time
from collections.abc import Iterable
from dataclasses import fields, replace
from inspect import signature
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias

from resolvent._util.math import log2
from resolvent._util.parallel import Listener, Progress, get_executor
from resolvent._util.text import described_by
from resolvent._util.validation import explain_memory_errors, quoted
from resolvent.errors import OptionError, TraceError
from resolvent.inference.conflict import Conflict
from resolvent.inference.context import (
    InferenceContext,
    first_traces,
    fit_preprocessor,
    fit_reward_levels,
    outputs_of,
)
from resolvent.inference.noise_selection import extend_result, select_noise_model
from resolvent.inference.options import InferenceOptions
from resolvent.inference.result import InferenceResult
from resolvent.inference.strategy import STRATEGIES, Strategy
from resolvent.inference.validation import UNRELIABLE, cross_validated
from resolvent.machines import Machines
from resolvent.noise.model import Noise
from resolvent.preprocess.discretize import Discretizer
from resolvent.preprocess.event_discovery import LabelCandidate, label_candidates
from resolvent.preprocess.labeling import AS_RECORDED, LabelingFunction
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces import Trace, TraceSet
from resolvent.traces.io.formats import as_traces, to_trace_set
from resolvent.traces.schema import DEFAULT_COLUMNS
from resolvent.traces.source import InMemorySource, TraceDataset, TraceSource

DISCOVERING_LABELS: Final = "finding events"
"""Name, in progress reports, of the discovery of labels."""

Traces: TypeAlias = TraceSet | TraceDataset | Iterable[Trace] | str | Path


@described_by(InferenceOptions)
def infer(  # noqa: D417  # `InferenceOptions` describes the rest
    traces: TraceSet | TraceDataset | Iterable[Trace] | str | Path,
    *,
    outputs: Iterable[str] | None = None,
    labels: str | LabelingFunction = "given",
    discretize: Discretizer | Literal["auto"] | None = None,
    noise: Noise | Literal["none", "auto"] = "auto",
    strategy: str | Strategy = "auto",
    timing: LabelTiming | str | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    options: InferenceOptions | None = None,
    progress: Listener | None = None,
) -> InferenceResult:
    """Infer the machines that explain the traces.

    The keyword arguments are the most common `InferenceOptions`, which describe them all.

    Args:
        traces: The traces; or a folder of them (`scan_traces`) that need not fit into memory; or
            single traces; or the path of a file, which is read by `read_traces`.
        options: All options, the rare ones too. Arguments of this call that differ from their
            defaults replace those of `options`.
        progress: Called now and then with the machine's name and its progress.

    Raises:
        ContradictoryTraces: when no deterministic machine over these labels can explain the
            traces, and noise is not allowed for; or when another option explains them all
            without noise, which the error names.

    >>> import gymnasium as gym, resolvent as rs
    >>> house = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    >>> pair = infer(house).machines
    >>> pair.transition.states, pair.reward.states
    (2, 2)
    >>> list(infer(house, outputs=["reward"], options=InferenceOptions(effort=2)).machines)
    ['reward']
    """
    names = {field.name for field in fields(InferenceOptions)}
    changes: dict[str, Any] = {name: value for name, value in locals().items() if name in names}
    if options is None:
        options = InferenceOptions(**changes)
    elif isinstance(options, InferenceOptions):
        changed = {name: value for name, value in changes.items() if not _is_default(name, value)}
        options = options.replacing(**changed)
    else:
        raise OptionError(
            f"options={quoted(options)}: give InferenceOptions, such as InferenceOptions(effort=2)"
        )
    named = (name for name in options.outputs or () if name not in DEFAULT_COLUMNS)
    result = infer_with(options, as_traces(traces, named), progress)
    return cross_validated(result, infer_with)


def _is_default(name: str, value: Any) -> bool:
    default = signature(infer).parameters[name].default
    return type(value) is type(default) and bool(value == default)


def infer_with(
    options: InferenceOptions, traces: TraceSet | TraceDataset, progress: Listener | None = None
) -> InferenceResult:
    """Infer machines as `infer` does, with checked options."""
    return _or_raise(try_infer(options, traces, progress))


def try_infer(
    options: InferenceOptions, traces: TraceSet | TraceDataset, progress: Listener | None = None
) -> InferenceResult | Conflict:
    """Infer machines, or return the conflict that no machines within the options explain."""
    with explain_memory_errors("machines were inferred"), get_executor(options.on):
        started = time.perf_counter()
        source = _source(options, traces)
        preprocessor = fit_preprocessor(options, source)
        context = InferenceContext(options, preprocessor, progress, started)
        if options.labels == "auto":
            return _infer_with_discovered_labels(context, source)
        result = _infer_from(context, source)
        if isinstance(result, InferenceResult) and preprocessor.rewards is not None:
            # Machines show more sharply than label sequences which steps have the same reward.
            sharper = fit_reward_levels(options, preprocessor, source, result.machines)
            if sharper not in (None, preprocessor.rewards):
                preprocessor = replace(preprocessor, rewards=sharper)
                result = _infer_from(replace(context, preprocessor=preprocessor), source)
        return result


def _source(options: InferenceOptions, traces: TraceSet | TraceDataset) -> TraceSource:
    """Return traces as shards, or refuse them."""
    if isinstance(traces, TraceSet):
        if len(traces) == 0:
            raise TraceError("there are no traces to infer from: collect or read at least one")
        return InMemorySource([traces])
    if options.refine is False:
        raise OptionError("a scanned folder is always refined: read it whole with read_traces")
    return traces


def _infer_from(context: InferenceContext, source: TraceSource) -> InferenceResult | Conflict:
    """Preprocess and scan a source, and select a noise model for its traces."""
    corpus = context.corpus_of(context.preprocessor.transform_source(source))
    return select_noise_model(context, corpus)


def update(
    result: InferenceResult, traces: TraceSet, progress: Listener | None = None
) -> InferenceResult:
    """Add traces to a result: replay them, and repair the machines where they fail."""
    options, corpus = result.options, result.inference_state.corpus
    with explain_memory_errors("machines were updated"), get_executor(options.on):
        traces = to_trace_set(traces)
        if len(traces) == 0:
            raise TraceError("there are no traces to update with: collect or read at least one")
        context = InferenceContext(options, result.preprocessor, progress)
        more = result.preprocessor.transform(traces)
        if options.labels != "auto" or not corpus.in_memory:
            return _validated_again(_or_raise(extend_result(context, result, more)), result)
        exact = replace(context, without_noise=not result.is_noisy)
        extended = extend_result(exact, result, more)
        if isinstance(extended, Conflict):  # the events discovered before do not suffice
            source = InMemorySource([corpus.extended(more).as_traces()])
            recorded = replace(result.preprocessor, labeling=AS_RECORDED)
            extended = _infer_with_discovered_labels(
                replace(context, preprocessor=recorded), source
            )
        return _validated_again(_or_raise(extended), result)


def _validated_again(result: InferenceResult, before: InferenceResult) -> InferenceResult:
    """Validate machines that were learned anew; others keep what was found before."""
    if result.inference_state.fit is not before.inference_state.fit:
        return cross_validated(result, infer_with)
    earlier = (note for note in before.warnings if note.kind in UNRELIABLE)
    return replace(result, folds=before.folds, warnings=(*earlier, *result.warnings))


def _or_raise(result: InferenceResult | Conflict) -> InferenceResult:
    """Return a result, or raise the error for a conflict that no allowed noise explains."""
    if isinstance(result, Conflict):
        raise result.error()
    return result


# ---- labels="auto" ------------------------------------------------------------


def _infer_with_discovered_labels(
    context: InferenceContext, source: TraceSource
) -> InferenceResult | Conflict:
    """Infer machines with recorded labels, if these suffice, or with discovered ones.

    Labels that explain all traces are better than noise, so noise comes last.
    """
    shards = context.preprocessor.transform_source(source)
    context = replace(context, started=time.perf_counter())
    if context.options.noise == "auto":
        result = _infer_events(replace(context, without_noise=True), shards)
        if isinstance(result, InferenceResult):
            return result
    return _infer_events(context, shards)


def _infer_events(context: InferenceContext, shards: TraceSource) -> InferenceResult | Conflict:
    """Infer machines with recorded labels, or with the first candidates that explain all traces."""
    options = context.options
    traces = first_traces(shards)
    are_derived = len(traces.labels) >= len(traces.observations) > 1  # one for each observation
    if len(traces.labels) > 1 and not are_derived:
        for timing in dict.fromkeys((options.timing, LabelTiming.CURRENT_WITH_INITIAL)):
            result = _infer_labeled(context, shards, timing)
            if isinstance(result, InferenceResult):
                return result
    if context.progress is not None:
        context.progress(DISCOVERING_LABELS, Progress(0, 0, 0, 0))
    groups = label_candidates(
        traces,
        outputs_of(options, traces),
        seed=options.seed,
        effort=options.effort,
        in_time=context.in_time,
    )
    conflicts: list[Conflict] = []
    for group in groups:
        fitting: list[tuple[LabelCandidate, InferenceResult]] = []
        for candidate in group:
            labeled = InMemorySource([candidate.labeling.transform(traces)])
            result = _infer_labeled(context, labeled, candidate.timing)
            if isinstance(result, Conflict):
                conflicts.append(result)
            else:
                fitting.append((candidate, result))
        if fitting:
            chosen, result = min(fitting, key=lambda fit: _description_length(fit[1]))
            return _with_labels(context, shards, chosen, result)
    return conflicts[-1]


def _with_labels(
    context: InferenceContext, shards: TraceSource, labels: LabelCandidate, result: InferenceResult
) -> InferenceResult | Conflict:
    """Return machines for all shards, from labels that explain the first one."""
    preprocessor = replace(context.preprocessor, labeling=labels.labeling)
    if len(shards) > 1:
        context = replace(context, preprocessor=preprocessor)
        return _infer_labeled(context, preprocessor.transform_source(shards), labels.timing)
    if context.options.strategy.merges and any(
        machine.states > labels.states.get(machine.predicts, machine.states)
        for machine in result.machines.values()
    ):  # merging has missed a smaller machine, which is known to exist
        labeled = InMemorySource([labels.labeling.transform(first_traces(shards))])
        options = replace(context.options, strategy=STRATEGIES["search"], engine="native")
        searched = _infer_labeled(replace(context, options=options), labeled, labels.timing)
        if isinstance(searched, Conflict):
            return searched
        result = min(result, searched, key=_description_length)
    return replace(result, machines=result.machines.replacing(preprocessor=preprocessor))


def _infer_labeled(
    context: InferenceContext, shards: TraceSource, timing: LabelTiming
) -> InferenceResult | Conflict:
    """Infer machines from shards that have their final labels."""
    context = replace(context, options=replace(context.options, timing=timing))
    return select_noise_model(context, context.corpus_of(shards))


def _description_length(result: InferenceResult) -> float:
    """Return about the number of bits of the transitions and outputs of machines."""
    return sum(
        machine.states * (len(machine.labels) - len(machine.trivial)) * log2(machine.states)
        + len(machine.output_value) * log2(max(len(machine.outputs), 2))
        for machine in result.machines.values()
    )


# ---- scikit-learn --------------------------------------------------------------


class MachineInference:
    """Infers machines with the methods of scikit-learn's estimators.

    `clone`, `cross_val_score` and `GridSearchCV` take it. Its parameters are those of
    `InferenceOptions`. After `fit`, `machines_` are the machines and `result_` is the result of the
    inference. A sample is a trace; `y` is ignored.

    >>> import resolvent as rs
    >>> traces = rs.collect(rs.worlds.House(), episodes=100, seed=0)
    >>> inference = MachineInference(strategy="edsm").fit(traces[:50])
    >>> inference.machines_.transition.states, inference.score(traces[50:])
    (2, 1.0)
    """

    machines_: Machines
    result_: InferenceResult

    def __init__(self, **options: Any) -> None:
        self._options: dict[str, Any] = {}
        self.set_params(**options)

    def fit(self, traces: Traces, y: object = None) -> Self:
        """Infer machines from traces."""
        return self._fitted(infer(traces, options=InferenceOptions(**self._options)))

    def partial_fit(self, traces: Traces, y: object = None) -> Self:
        """Add traces to those of earlier calls, and repair the machines if they fail."""
        if not hasattr(self, "result_"):
            return self.fit(traces)
        return self._fitted(self.result_.update(to_trace_set(traces)))

    def _fitted(self, result: InferenceResult) -> Self:
        self.result_, self.machines_ = result, result.machines
        return self

    def score(self, traces: Traces, y: object = None) -> float:
        """Return the share of outputs that the machines predict right; unseen ones are wrong."""
        scores = self.machines_.score(to_trace_set(traces)).values()
        return sum(score.all_right for score in scores) / sum(score.steps for score in scores)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all options by name."""
        return {field.name: field.default for field in fields(InferenceOptions)} | self._options

    def set_params(self, **options: Any) -> Self:
        """Set some options."""
        unknown = options.keys() - {field.name for field in fields(InferenceOptions)}
        if unknown:
            raise OptionError(f"{min(unknown)} is no option of inference: see InferenceOptions")
        self._options |= options
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self._options.items())
        return f"MachineInference({options})"
