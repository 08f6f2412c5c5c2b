"""Infer machines from traces, in five stages: source, preprocessing, corpus, noise model, result.

Each stage is a function from value to value. The paper's algorithm is in `algorithm`,
`refinement` gives it all traces or a growing sample, and `noise_selection` decides what is noise.
"""

import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from resolvent._util.math import log2
from resolvent._util.parallel import Workers, get_executor
from resolvent._util.progress import Listener, Progress
from resolvent._util.text import amount
from resolvent._util.validation import telling_of_memory
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
from resolvent.traces import Label, Trace, TraceSet
from resolvent.traces.io.formats import as_traces, to_trace_set
from resolvent.traces.scan.dataset import TraceDataset
from resolvent.traces.schema import ACTION, DEFAULT_COLUMNS, REWARD
from resolvent.traces.source import InMemorySource, TraceSource, look_at

EVERYTHING = LabelingFunction("action+observation")
"""Labels that hold the whole step: the action and the observation."""

DISCOVERING_LABELS = "finding events"
"""Name of the activity that a listener is told while labels are discovered."""


def infer(
    traces: TraceSet | TraceDataset | Iterable[Trace] | str | Path,
    *,
    outputs: Iterable[str] | None = None,
    labels: str | LabelingFunction = "given",
    discretise: Discretizer | Literal["auto"] | None = None,
    noise: Noise | Literal["none", "auto"] = "auto",
    strategy: str | Strategy = "auto",
    timing: LabelTiming | str | None = None,
    trivial: Iterable[Label | str] | Literal["auto"] = "auto",
    supplement: bool = True,
    remove_redundant: bool = True,
    remove_trivial: bool = True,
    refine: bool | None = None,
    reward_digits: int | None = None,
    engine: str = "native",
    seed: int = 0,
    effort: float = 1.0,
    on: str | Workers = "threads",
    resume: str | Path | None = None,
    time_limit: float | None = None,
    progress: Listener | None = None,
) -> InferenceResult:
    """Infer the machines that explain the traces.

    Args:
        traces: The traces; or a folder of them (`scan_traces`) that need not fit into memory; or
            single traces; or the path of a file, which is read by `read_traces`.
        outputs: The columns that machines predict: "observation" (the next one), "reward",
            "terminated", and further columns of the traces by name. By default the two of the
            paper, as far as the traces have rewards; and whether episodes end, if that depends on
            memory that those two do not have. Traces of a log, with one observation throughout,
            no rewards and further columns, get a machine for each of these columns instead.
        labels: The labels that machines read: "given" for those of the traces; "observation",
            "action" or "action+observation" to derive them, each value a label of its own; or
            "auto" to discover which of these are events, with those that act alike merged. The
            machines store the labeling function and apply it to new steps; `result.events` lists
            the events.
        discretise: Intervals for numbers in observations: a `Discretizer`, which is fitted to the
            traces unless it is fitted, or "auto" for as many intervals as pay. The machines store
            it as well.
        noise: The noise that is allowed. By default, "auto", none as long as machines without
            noise explain all traces; otherwise the most likely machines, whose states have
            distributions of outputs (`machine.distribution`). `result.noise` says how much noise
            of each kind there is, and `result.warnings` why it was assumed; `result.broken` names
            traces that do not fit at all. "none": a contradiction is an error. A `Noise` states
            the noise; all else is exact.
        strategy: The search for machines. "auto" runs several strategies, the cheap ones first and
            others only if these leave doubt, and takes the machine with the shortest description;
            `result.tried` lists them. "edsm" merges by most evidence, "rpni" in the paper's order.
            "search" looks for the smallest machine and needs far fewer traces. "exact" does so
            too, and proves what it can: see `result.certificates`; it needs the extra `exact`. Or
            a `Strategy` of your own. Machines with noise are the most likely ones found, whatever
            the strategy.
        timing: The labels that are read before a step is answered. By default all but the first,
            "current"; labels that are derived from observations count from the first on,
            "current-with-initial".
        trivial: Labels known to change no state, besides "no event"; as sets of propositions or
            as the texts they print as. "auto" judges by the traces which labels a machine does
            not need; `result.trivial` says why.
        supplement: Pair observations with Transition Machine states for the other machines.
        remove_redundant: Leave queries with one output throughout out of the search, and restore
            them afterwards.
        remove_trivial: Leave trivial labels out of the search, and restore them as self-loops.
        refine: Learn from a sample, replay all traces, add counterexamples, and repeat until the
            machines explain all. By default with more than 500,000 steps.
        reward_digits: Number of decimals that rewards are rounded to before they are compared.
        engine: "native", or "python" for the executable specification, which also runs strategies
            of your own, whatever the engine.
        seed: Seed of the search, for "auto", "search" and "exact".
        effort: Maximum work relative to the default: 2 is twice as much. It counts work, not time,
            so that the same traces give the same machines.
        on: Workers for the shards of a scanned folder: "threads" of this process, "processes" of
            this machine, or "ray", a cluster: that of `ray.init`, of "ray:ADDRESS" or of
            `RAY_ADDRESS`, or else a Ray of this machine alone, which takes seconds to start. Or
            `Workers` of your own. The machines are the same. Ray needs the extra `ray`.
        resume: A folder, or an address such as "s3://bucket/runs/7", that caches the results for
            each shard of a scanned folder. An interrupted inference that runs again continues
            from there, with the same result. With `on="ray"` all nodes have to reach it. Files
            that have changed are read again. It may be removed at any time; traces in memory need
            none.
        time_limit: Seconds for the whole inference. After that the best machines so far are
            replayed on all traces once more, and returned: `result.unfinished` says which are
            not finished, and what share of the outputs they get wrong. Only reading files that
            takes longer is an error.
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
    >>> list(infer(house, outputs=["reward"]).machines)
    ['reward']
    """
    options = InferenceOptions(
        outputs=outputs,  # type: ignore[arg-type]  # Options makes of each what it should be
        labels=labels,  # type: ignore[arg-type]
        discretise=discretise,
        noise=noise,
        strategy=strategy,  # type: ignore[arg-type]
        timing=timing,  # type: ignore[arg-type]
        trivial=trivial,  # type: ignore[arg-type]
        supplement=supplement,
        remove_redundant=remove_redundant,
        remove_trivial=remove_trivial,
        reward_digits=reward_digits,
        engine=engine,
        time_limit=time_limit,
        refine=refine,
        seed=seed,
        effort=effort,
        on=on,
        resume=resume,  # type: ignore[arg-type]
    )
    named = (name for name in options.outputs or () if name not in DEFAULT_COLUMNS)
    return infer_with(options, as_traces(traces, named), progress)


def infer_with(
    options: InferenceOptions,
    traces: TraceSet | TraceDataset,
    progress: Listener | None = None,
    rewards: RewardLevels | None = None,
) -> InferenceResult:
    """Infer machines as `infer` does, with checked options and known levels of rewards."""
    with telling_of_memory("machines were inferred"), get_executor(options.on):
        return _or_raise(_inferred(options, traces, progress, rewards))


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
    senses = _fitted_preprocessor(options, source, rewards)
    context = InferenceContext(options, senses, progress, started)
    if options.labels == "auto":
        return _with_discovered_labels(context, senses.on_shards(source))
    result = _from_source(context, source)
    if isinstance(result, Conflict) or senses.rewards is None or rewards is not None:
        return result
    # Machines show more sharply than label histories which steps have the same reward.
    sharper = _reward_levels(options, senses, source, result.machines)
    if sharper in (None, senses.rewards):
        return result
    return _from_source(replace(context, senses=replace(senses, rewards=sharper)), source)


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
    senses = Preprocessor(labelling, intervals)
    return replace(senses, rewards=rewards or _reward_levels(options, senses, source))


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
    senses: Preprocessor,
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
    traces = replace(senses, rewards=None).on(_first_traces(source))
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
        several = amount(len(traces.rewards), "different reward")
        why = f"{several} at {amount(traces.steps, 'step')}"
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
        found = discover_labels(
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
    senses = replace(context.senses, labelling=found.labelling)
    if len(shards) > 1:  # labels discovered in the first shard have to hold in all
        return infer_from(senses.on_shards(shards), found.labelling, found.timing)
    result = found.inferred
    if options.strategy.merges and any(
        machine.states > found.states.get(machine.predicts, machine.states)
        for machine in result.machines.values()
    ):  # merging has missed a smaller machine, which is known to exist
        labeled = InMemorySource([found.labelling.on(traces)])
        searched = infer_from(labeled, AS_RECORDED, found.timing, STRATEGIES["search"])
        if isinstance(searched, Conflict):
            return searched
        result = min(result, searched, key=_description_length)
    return replace(result, machines=result.machines.replacing(senses=senses))


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
    senses, options = result.machines.senses, result.options
    context, more = InferenceContext(options, senses, progress), senses.on(traces)
    if options.labels != "auto" or not result.standing.corpus.in_memory:
        return extend_result(context, result, more)
    if not result.is_noisy:
        context = replace(context, options=replace(options, noise="none"))
    extended = extend_result(context, result, more)
    if isinstance(extended, InferenceResult):
        return extended
    # There are other events than those discovered before.
    together = result.standing.corpus.extended(more).together()
    options = replace(options, discretise=senses.discretise)
    return _inferred(options, together, progress, senses.rewards)
