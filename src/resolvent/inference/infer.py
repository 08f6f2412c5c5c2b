"""Infer machines from traces, in five stages: source, preprocessing, corpus, noise model, result.

Each stage is a function from value to value. The paper's algorithm is in `algorithm`,
`refinement` runs it on all traces or a growing sample, and `noise_selection` selects the noise
model.
"""

import time
from collections.abc import Iterable
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from resolvent._util.docstrings import described_by
from resolvent._util.math import log2
from resolvent._util.parallel import get_executor
from resolvent._util.progress import Listener, Progress
from resolvent._util.text import amount
from resolvent._util.validation import shown, telling_of_memory
from resolvent.errors import ContradictoryTraces, OptionError, TraceError
from resolvent.inference.conflict import Conflict
from resolvent.inference.context import InferenceContext, outputs_of
from resolvent.inference.noise_selection import extend_result, select_noise_model
from resolvent.inference.options import InferenceOptions
from resolvent.inference.result import InferenceResult
from resolvent.inference.strategy import STRATEGIES, Strategy
from resolvent.machines import Machines
from resolvent.noise.model import Noise
from resolvent.noise.rewards import FEWEST_VALUES, find_reward_levels
from resolvent.preprocess.auto_discretize import auto_discretize
from resolvent.preprocess.discretize import Discretizer
from resolvent.preprocess.event_discovery import discover_labels
from resolvent.preprocess.labeling import AS_RECORDED, LabelingFunction
from resolvent.preprocess.reward_levels import RewardLevels
from resolvent.preprocess.timing import LabelTiming
from resolvent.preprocess.transform import Preprocessor
from resolvent.replay import states_at_steps
from resolvent.traces import Trace, TraceSet
from resolvent.traces.io.formats import as_traces, to_trace_set
from resolvent.traces.scan.dataset import TraceDataset
from resolvent.traces.schema import ACTION, DEFAULT_COLUMNS, REWARD
from resolvent.traces.source import InMemorySource, TraceSource, look_at

EVERYTHING = LabelingFunction("action+observation")
"""Labels that hold the whole step: the action and the observation."""

DISCOVERING_LABELS = "finding events"
"""Name of the activity that a listener is told while labels are discovered."""


@described_by(InferenceOptions)
def infer(  # noqa: D417  # `InferenceOptions` describes the rest
    traces: TraceSet | TraceDataset | Iterable[Trace] | str | Path,
    *,
    outputs: Iterable[str] | None = None,
    labels: str | LabelingFunction = "given",
    discretise: Discretizer | Literal["auto"] | None = None,
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
    changes: dict[str, Any] = {
        "outputs": outputs,
        "labels": labels,
        "discretise": discretise,
        "noise": noise,
        "strategy": strategy,
        "timing": timing,
        "seed": seed,
        "time_limit": time_limit,
    }
    if options is None:
        options = InferenceOptions(**changes)
    elif isinstance(options, InferenceOptions):
        changed = {name: value for name, value in changes.items() if not _is_default(name, value)}
        options = options.replacing(**changed)
    else:
        raise OptionError(
            f"options={shown(options)}: give InferenceOptions, such as InferenceOptions(effort=2)"
        )
    named = (name for name in options.outputs or () if name not in DEFAULT_COLUMNS)
    return infer_with(options, as_traces(traces, named), progress)


def _is_default(name: str, value: Any) -> bool:
    default = signature(infer).parameters[name].default
    return type(value) is type(default) and bool(value == default)


def infer_with(
    options: InferenceOptions,
    traces: TraceSet | TraceDataset,
    progress: Listener | None = None,
    rewards: RewardLevels | None = None,
) -> InferenceResult:
    """Infer machines as `infer` does, with checked options and known levels of rewards."""
    return _or_raise(try_infer(options, traces, progress, rewards))


def try_infer(
    options: InferenceOptions,
    traces: TraceSet | TraceDataset,
    progress: Listener | None = None,
    rewards: RewardLevels | None = None,
) -> InferenceResult | Conflict:
    """Infer machines, or return the conflict that no machines within the options explain."""
    with telling_of_memory("machines were inferred"), get_executor(options.on):
        return _inferred(options, traces, progress, rewards)


def update(
    result: InferenceResult, traces: TraceSet, progress: Listener | None = None
) -> InferenceResult:
    """Add traces to a result: replay them, and repair the machines where they fail."""
    with telling_of_memory("machines were updated"), get_executor(result.options.on):
        traces = to_trace_set(traces)
        if len(traces) == 0:
            raise TraceError("there are no traces to update with: collect or read at least one")
        return _or_raise(_updated(result, traces, progress))


def _or_raise(result: InferenceResult | Conflict) -> InferenceResult:
    """Return a result, or raise the error for a conflict that no allowed noise explains."""
    if isinstance(result, Conflict):
        raise result.error()
    return result


def _inferred(
    options: InferenceOptions,
    traces: TraceSet | TraceDataset,
    progress: Listener | None,
    rewards: RewardLevels | None,
) -> InferenceResult | Conflict:
    started = time.perf_counter()
    source = _source(options, traces)
    preprocessor = _fitted_preprocessor(options, source, rewards)
    context = InferenceContext(options, preprocessor, progress, started)
    if options.labels == "auto":
        return _with_discovered_labels(context, preprocessor.on_shards(source))
    result = _from_source(context, source)
    if isinstance(result, Conflict) or preprocessor.rewards is None or rewards is not None:
        return result
    # Machines show more sharply than label histories which steps have the same reward.
    sharper = _reward_levels(options, preprocessor, source, result.machines)
    if sharper in (None, preprocessor.rewards):
        return result
    return _from_source(replace(context, senses=replace(preprocessor, rewards=sharper)), source)


def _from_source(context: InferenceContext, source: TraceSource) -> InferenceResult | Conflict:
    """Preprocess and scan a source, and select a noise model for its traces."""
    return select_noise_model(context, context.corpus_of(context.senses.on_shards(source)))


def _source(options: InferenceOptions, traces: TraceSet | TraceDataset) -> TraceSource:
    """Return traces as shards, or refuse them."""
    if isinstance(traces, TraceSet):
        if len(traces) == 0:
            raise TraceError("there are no traces to infer from: collect or read at least one")
        return InMemorySource([traces])
    if options.refine is False:
        raise OptionError("a scanned folder is always refined: read it whole with read_traces")
    return traces


def _fitted_preprocessor(
    options: InferenceOptions, source: TraceSource, rewards: RewardLevels | None
) -> Preprocessor:
    """Return the preprocessing of raw steps, fitted to the first traces of a source."""
    intervals = _fitted_intervals(options, source)
    labelling = AS_RECORDED
    if not isinstance(options.labels, str):
        labelling = _following_inputs(options.labels, intervals, source)
    preprocessor = Preprocessor(labelling, intervals)
    return replace(preprocessor, rewards=rewards or _reward_levels(options, preprocessor, source))


def _fitted_intervals(options: InferenceOptions, source: TraceSource) -> Discretizer | None:
    """Return intervals for the numbers in observations."""
    discretise = options.discretise
    if discretise is None or (discretise != "auto" and discretise.is_fitted):
        return discretise
    traces = _first_traces(source)
    if discretise == "auto":
        return auto_discretize(traces, outputs_of(options, traces))
    return discretise.fit(traces)


def _following_inputs(
    labelling: LabelingFunction, intervals: Discretizer | None, source: TraceSource
) -> LabelingFunction:
    """Return labels derived from actions if those given equal the actions, as a log's inputs do.

    Otherwise they would name numbers that the actions, put into intervals, no longer have.
    """
    if labelling.is_given and intervals is not None and intervals.of == ACTION:
        traces = _first_traces(source)
        of_actions = LabelingFunction("action")
        if of_actions.on(traces) == traces:
            return of_actions
    return labelling


def _reward_levels(
    options: InferenceOptions,
    preprocessor: Preprocessor,
    source: TraceSource,
    machines: Machines | None = None,
) -> RewardLevels | None:
    """Return the levels that rewards vary around, if they do; those of the first traces.

    Machines show which steps have the same reward but for noise.
    """
    noise, timing = options.noise, options.timing
    is_stated = isinstance(noise, Noise) and noise.rewards == "gaussian"
    is_output = options.outputs is None or REWARD in options.outputs
    if is_stated and options.reward_digits is not None:
        raise OptionError(
            "reward_digits rounds rewards, and noise takes them for the values that they vary "
            "around: leave out one"
        )
    if not (noise == "auto" or is_stated) or not is_output or options.reward_digits is not None:
        return None
    traces = replace(preprocessor, rewards=None).on(_first_traces(source))
    memory = None
    if machines is not None:
        memory = np.zeros(traces.steps, np.int64)
        for kind, states in states_at_steps(machines, traces).items():
            memory = memory * (machines[kind].states + 1) + states + 1
    if options.labels == "auto":  # the same past, whatever turns out to be an event
        traces, timing = EVERYTHING.on(traces), LabelTiming.CURRENT_WITH_INITIAL
    levels = find_reward_levels(traces, timing, stated=is_stated, memory=memory)
    if levels is None and is_stated and machines is None:
        raise _no_levels(traces)
    return levels


def _no_levels(traces: TraceSet) -> OptionError:
    """Return the error for rewards that do not vary as the user states."""
    why = "the traces have no rewards: leave it out"
    if REWARD in traces.columns:
        different_rewards = amount(len(traces.rewards), "different reward")
        why = f"{different_rewards} at {amount(traces.steps, 'step')}"
        if len(traces.rewards) < FEWEST_VALUES:
            why += " are compared as they are: say rewards='flipped', or leave it out"
        else:
            why += " do not vary around few values: leave it out, or round them with reward_digits"
    return OptionError(f"Noise: rewards is 'gaussian', but {why}")


def _first_traces(source: TraceSource) -> TraceSet:
    """Return the traces of the first shard that has any; others may be damaged and skipped."""
    for number in range(len(source)):
        traces, _ = look_at(source, number)
        if len(traces):
            break
    return traces


def _with_discovered_labels(
    context: InferenceContext, shards: TraceSource
) -> InferenceResult | Conflict:
    """Infer machines with the labels there are, if these suffice, or with discovered ones.

    Events that explain all traces are better than noise, so noise comes last.
    """
    options = context.options
    context = replace(context, started=time.perf_counter())
    if options.noise != "auto":
        return _discovered(context, shards)
    result = _discovered(replace(context, options=replace(options, noise="none")), shards)
    if isinstance(result, Conflict):
        return _discovered(context, shards)
    # The user allowed for noise, though none was needed.
    options = replace(result.options, noise=options.noise)
    provenance = result.machines.provenance
    if provenance is not None:
        provenance = msgspec.structs.replace(provenance, options=options.as_dict())
    machines = result.machines.replacing(provenance=provenance)
    return replace(result, options=options, machines=machines)


def _discovered(context: InferenceContext, shards: TraceSource) -> InferenceResult | Conflict:
    options = context.options

    def infer_from(
        shards: TraceSource,
        labelling: LabelingFunction,
        timing: LabelTiming,
        strategy: Strategy = options.strategy,
    ) -> InferenceResult | Conflict:
        part = replace(
            context,
            options=replace(options, timing=timing, strategy=strategy),
            senses=replace(context.senses, labelling=labelling),
        )
        return select_noise_model(part, part.corpus_of(shards))

    traces = _first_traces(shards)
    are_derived = len(traces.labels) >= len(traces.observations) > 1  # one for each observation
    if len(traces.labels) > 1 and not are_derived:
        for timing in dict.fromkeys((options.timing, LabelTiming.CURRENT_WITH_INITIAL)):
            result = infer_from(shards, AS_RECORDED, timing)
            if isinstance(result, InferenceResult):
                return result
    if context.progress is not None:
        context.progress(DISCOVERING_LABELS, Progress(0, 0, 0, 0))
    conflicts: list[Conflict] = []

    def infer_or_raise(labeled: TraceSet, timing: LabelTiming) -> InferenceResult:
        result = infer_from(InMemorySource([labeled]), AS_RECORDED, timing)
        if isinstance(result, Conflict):
            conflicts.append(result)
        return _or_raise(result)

    try:
        discovery = discover_labels(
            traces,
            outputs_of(options, traces),
            infer_or_raise,
            length=_description_length,
            seed=options.seed,
            effort=options.effort,
            time_left=context.time_left,
        )
    except ContradictoryTraces:
        return conflicts[-1]
    preprocessor = replace(context.senses, labelling=discovery.labelling)
    if len(shards) > 1:  # labels discovered in the first shard have to hold in all
        return infer_from(preprocessor.on_shards(shards), discovery.labelling, discovery.timing)
    result = discovery.inferred
    if options.strategy.merges and any(
        machine.states > discovery.states.get(machine.predicts, machine.states)
        for machine in result.machines.values()
    ):  # merging has missed a smaller machine, which is known to exist
        labeled = InMemorySource([discovery.labelling.on(traces)])
        searched = infer_from(labeled, AS_RECORDED, discovery.timing, STRATEGIES["search"])
        if isinstance(searched, Conflict):
            return searched
        result = min(result, searched, key=_description_length)
    return replace(result, machines=result.machines.replacing(senses=preprocessor))


def _description_length(result: InferenceResult) -> float:
    """Return about the number of bits of the transitions and outputs of machines."""
    return sum(
        machine.states * (len(machine.labels) - len(machine.trivial)) * log2(machine.states)
        + len(machine.output_value) * log2(max(len(machine.outputs), 2))
        for machine in result.machines.values()
    )


def _updated(
    result: InferenceResult, traces: TraceSet, progress: Listener | None
) -> InferenceResult | Conflict:
    preprocessor, options = result.machines.senses, result.options
    context, more = InferenceContext(options, preprocessor, progress), preprocessor.on(traces)
    if options.labels != "auto" or not result.standing.corpus.in_memory:
        return extend_result(context, result, more)
    if not result.is_noisy:
        context = replace(context, options=replace(options, noise="none"))
    extended = extend_result(context, result, more)
    if isinstance(extended, InferenceResult):
        return extended
    # There are other events than those discovered before.
    together = result.standing.corpus.extended(more).together()
    options = replace(options, discretise=preprocessor.discretise)
    return _inferred(options, together, progress, preprocessor.rewards)
