"""The paper's overall algorithm: samples for each output → a machine for each.

The stages are passed in, so that the order of the algorithm stands here alone.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from resolvent.inference.conflict import Conflict
from resolvent.inference.learning_task import LearningTask, MachineFit
from resolvent.preprocess.samples import ObservationColumn
from resolvent.traces.schema import OBSERVATION

Reduced = TypeVar("Reduced")


class Stages(Protocol[Reduced]):
    """The stages of the algorithm, for the traces that machines are learned from."""

    def task(self, predicts: str, observed: ObservationColumn | None) -> LearningTask:
        """Return the samples for one output."""
        ...

    def reduce(self, task: LearningTask) -> Reduced:
        """Remove redundant α-inputs and trivial labels."""
        ...

    def learn(self, reduced: Reduced) -> MachineFit | Conflict:
        """Learn an automaton, and undo the reduction."""
        ...

    def supplement(self, fits: Sequence[MachineFit]) -> ObservationColumn | None:
        """Pair observations with states of the Transition Machine; None to leave them."""
        ...


def infer_machines(
    outputs: Sequence[str], stages: Stages[Reduced]
) -> dict[str, MachineFit] | Conflict:
    """Infer a machine for each output, the Transition Machine first.

    Paper: "Overall Inferring Algorithm" (Algorithm 1). The numbers are its lines; each output
    after the first runs through lines 4 and 5.
    """
    fits: list[MachineFit] = []
    observed: ObservationColumn | None = None
    for predicts in outputs:
        task = stages.task(predicts, observed)
        reduced = stages.reduce(task)  # 1, 4: ReductionRule
        fit = stages.learn(reduced)  # 2, 5: DB-RPNI
        if isinstance(fit, Conflict):
            return fit
        fits.append(fit)
        if predicts == OBSERVATION:
            observed = stages.supplement(fits)  # 3: StateSupp
    return {fit.machine.kind: fit for fit in fits}
