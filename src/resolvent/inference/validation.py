"""Cross-validation of the machines of `infer`: warn of those that would be wrong on new traces.

Input: a result and the function that infers machines. Output: the same result with the counts of
each fold, and warnings. docs/decisions/inference.md says how the rules were chosen.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from resolvent._util.text import amount, short
from resolvent.errors import ResolventError
from resolvent.evaluation.diagnosis.findings import Finding, Severity
from resolvent.evaluation.holdout import (
    HELD_SHARE,
    StepKinds,
    error_bound,
    holdout_order,
    is_held_out,
)
from resolvent.inference.fit import Fold
from resolvent.inference.options import InferenceOptions
from resolvent.inference.result import InferenceResult
from resolvent.inference.strategy import AUTO
from resolvent.machines import Machine, Machines
from resolvent.preprocess.labeling import AS_RECORDED
from resolvent.replay.replaying import states_at_steps
from resolvent.replay.steps import StepQueries, step_queries
from resolvent.traces import TraceSet
from resolvent.traces.digest import trace_hashes
from resolvent.traces.schema import OBSERVATION

# Above so many steps no machine is inferred again: merging then has much evidence, or many rare
# transitions, of which `infer` warns without it.
MAX_STEPS: Final = 100_000
MANY_STEPS: Final = 10_000  # above so many steps two folds are enough to see a share of 1%,
MANY_TESTED: Final = 2_000  # if so many of them depend on the past
WRONG: Final = 0.01  # share of wrong predictions from which a machine is doubtful
# Weight of a missing prediction: with all traces fewer are missing, and no error is hidden.
UNSEEN_WEIGHT: Final = 0.5
# Number of held-out steps, all predicted right, from which a machine of the same size confirms the
# present one: then smaller machines of other folds fail for lack of traces.
CONFIRMED: Final = 50
CERTAIN: Final = 200  # such steps that confirm a machine whatever the other folds show
CLEARLY_WRONG: Final = 10  # errors from which no fold is added, if they are five times `WRONG`
RARE_WRONG: Final = 0.2  # share of wrong predictions, at least three, among rare outcomes
MIN_TESTED: Final = 10  # number of tested steps below which nothing is known
MIN_CONSTANT: Final = 100  # traces below which an output that never varied may have rare values
# Share of the effort for the machines of a fold: then all folds take about as long as the inference
# where the portfolio searches.
FOLD_EFFORT: Final = 0.2

# The kinds of the findings of this module.
UNRELIABLE: Final = ("held-out-errors", "larger-than-necessary", "hardly-tested", "never-varied")


Infer = Callable[[InferenceOptions, TraceSet], InferenceResult]


def cross_validated(result: InferenceResult, infer: Infer) -> InferenceResult:
    """Infer machines without a fifth of the traces, several times, and add what this shows.

    Rare outcomes are spread evenly over the folds. Machines with noise, traces in files or of more
    than `MAX_STEPS` steps, and inference with a time limit are not validated.
    """
    corpus = result.inference_state.corpus
    is_exact = result.explains_all_traces and not result.machines.state_uncertainty
    has_time = result.options.time_limit is None and result.steps <= MAX_STEPS
    if not (is_exact and has_time and corpus.in_memory and not result.unfinished):
        return result
    traces = corpus.as_traces()
    traces = traces.take(np.sort(np.unique(trace_hashes(traces), return_index=True)[1]))
    known = step_queries(result.machines, traces, states_at_steps(result.machines, traces))
    kinds = {name: StepKinds.of(steps) for name, steps in known.items()}
    folds: dict[str, tuple[Fold, ...]] = dict.fromkeys(result.machines, ())
    for is_held in _folds(known, kinds, traces):
        try:
            machines = infer(_options(result), traces.take(~is_held)).machines
        except ResolventError:  # the traces of this fold do not suffice
            continue
        scores = _scores(machines, traces, kinds, is_held)
        folds = {name: (*folds[name], *scores.get(name, ())) for name in folds}
        if any(
            _is_clearly_wrong(machine, folds[name]) for name, machine in result.machines.items()
        ):
            break
    findings = [
        finding
        for name, machine in result.machines.items()
        if (finding := _finding(machine, folds[name], kinds[name], traces)) is not None
    ]
    return replace(result, folds=folds, warnings=(*findings, *result.warnings))


def _options(result: InferenceResult) -> InferenceOptions:
    """Return the options for preprocessed traces: without proofs, and without noise."""
    strategy = result.options.strategy
    return replace(
        result.options,
        labels=AS_RECORDED,
        discretize=None,
        noise="none",
        strategy=AUTO if strategy.proves or strategy.searches else strategy,
        effort=FOLD_EFFORT * result.options.effort,
    )


def _folds(
    known: Mapping[str, StepQueries], kinds: Mapping[str, StepKinds], traces: TraceSet
) -> list[NDArray[np.bool_]]:
    """Return for each fold which of the distinct traces are held out."""
    order = holdout_order(known.values(), traces)
    tested = min(
        (int(kind.varies.sum()) for kind in kinds.values() if kind.varies.any()), default=0
    )
    has_many = traces.steps > MANY_STEPS and tested > MANY_TESTED
    number = 2 if has_many else round(1 / HELD_SHARE)
    folds = (is_held_out(order, HELD_SHARE, fold) for fold in range(number))
    return [is_held for is_held in folds if is_held.any() and not is_held.all()]


def _scores(
    machines: Machines,
    traces: TraceSet,
    kinds: Mapping[str, StepKinds],
    is_held: NDArray[np.bool_],
) -> dict[str, tuple[Fold]]:
    """Return the score of each machine on the held-out traces."""
    test, step_is_held = traces.take(is_held), is_held[traces.trace_of_step]
    scores = {}
    for name, steps in step_queries(machines, test, states_at_steps(machines, test)).items():
        if name not in kinds:
            continue
        varies, rare = kinds[name].varies[step_is_held], kinds[name].rare[step_is_held]
        is_wrong = varies & (steps.predicted != steps.outputs)
        columns = varies, is_wrong, is_wrong & (steps.predicted < 0), rare, rare & is_wrong
        scores[name] = (Fold(machines[name].states, *(int(column.sum()) for column in columns)),)
    return scores


# ---- what folds show -----------------------------------------------------------


def _counted(machine: Machine, folds: tuple[Fold, ...]) -> list[Fold]:
    """Return the folds that say something about a machine of all traces.

    A larger machine does not: the present one explains its traces, too, and would be preferred. If
    the present one is confirmed by a fold, a smaller one does not either.
    """
    same = [fold for fold in folds if fold.states == machine.states]
    right = [fold for fold in same if not fold.errors]
    confirmed = sum(fold.steps for fold in right)
    if confirmed >= CONFIRMED:
        return right if confirmed >= CERTAIN else same
    return [fold for fold in folds if fold.states <= machine.states]


def _error_share(folds: list[Fold]) -> float:
    errors = sum(fold.errors - (1 - UNSEEN_WEIGHT) * fold.unseen for fold in folds)
    return errors / max(sum(fold.steps for fold in folds), 1)


def _is_clearly_wrong(machine: Machine, folds: tuple[Fold, ...]) -> bool:
    same = [fold for fold in folds if fold.states == machine.states]
    errors = [fold.errors for fold in same]
    return all(errors) and sum(errors) >= CLEARLY_WRONG and _error_share(same) >= 5 * WRONG


def _finding(
    machine: Machine, folds: tuple[Fold, ...], kinds: StepKinds, traces: TraceSet
) -> Finding | None:
    """Return the warning about one machine, if the folds give reason to."""
    name, counted = short(machine.name), _counted(machine, folds)
    steps, errors, unseen, rare, rare_errors = (
        sum(getattr(fold, of) for fold in counted)
        for of in ("steps", "errors", "unseen", "rare", "rare_errors")
    )
    if _error_share(counted) >= WRONG or rare_errors >= max(3, RARE_WRONG * rare):
        with_rare = f", {rare_errors:,} of {rare:,} with a rare outcome" if rare else ""
        unknown = f"; {unseen:,} are unseen" if unseen else ""
        above_all = ", above all with rare outcomes" if rare_errors else ""
        return _warning(
            "held-out-errors",
            f"The {name} machine may be wrong: inferred without some traces, it does not predict "
            f"{errors:,} of {amount(steps, 'held-out step')} that depend on the past "
            f"({errors / steps:.1%}{with_rare}{unknown}). Collect more traces{above_all}.",
            machine,
            steps=steps,
            errors=errors,
            unseen=unseen,
            rare=rare,
            rare_errors=rare_errors,
        )
    tested = sum(fold.steps for fold in folds)
    right = [fold.states for fold in folds if fold.steps >= 2 * MIN_TESTED and not fold.errors]
    if machine.states > min(right, default=machine.states):
        return _warning(
            "larger-than-necessary",
            f"The {name} machine may have too many states: inferred without some traces, "
            f"{min(right)} states predict these, where it has {machine.states}. Use "
            f"strategy='search' (--strategy search), or collect more traces.",
            machine,
            smaller=min(right),
        )
    if 0 < tested < MIN_TESTED:
        return _warning(
            "hardly-tested",
            f"The {name} machine is hardly tested: only {amount(tested, 'held-out step')} "
            f"depend on the past. Collect more traces.",
            machine,
            steps=tested,
        )
    is_constant = machine.predicts != OBSERVATION and len(traces.labels) > 1
    if is_constant and not kinds.varies.any() and len(traces) < MIN_CONSTANT:
        limit = error_bound(0, len(traces))
        return _warning(
            "never-varied",
            f"No output of the {name} machine depends on the past in {amount(len(traces), 'trace')}"
            f", but up to {limit:.0%} of all traces may show otherwise. Collect more traces.",
            machine,
            traces=len(traces),
        )
    return None


def _warning(kind: str, text: str, machine: Machine, **figures: int) -> Finding:
    return Finding(kind, Severity.WARNING, text, {"machine": machine.name, **figures})
