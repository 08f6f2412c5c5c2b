"""Inference as an estimator of scikit-learn: traces → fitted machines, and their score.

scikit-learn is not imported; its `clone`, `cross_val_score` and `GridSearchCV` take the estimator.
"""

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any, Self, TypeAlias

from resolvent.errors import OptionError
from resolvent.inference.infer import infer
from resolvent.inference.options import InferenceOptions
from resolvent.inference.result import InferenceResult
from resolvent.machines import Machines
from resolvent.traces import Trace, TraceDataset, TraceSet
from resolvent.traces.io.formats import to_trace_set

Traces: TypeAlias = TraceSet | TraceDataset | Iterable[Trace] | str | Path


class MachineInference:
    """Infers machines with the methods of scikit-learn's estimators.

    Its parameters are those of `InferenceOptions`. After `fit`, `machines_` are the machines and
    `result_` is the result of the inference. A sample is a trace; `y` is ignored.

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
        self.result_ = infer(traces, options=InferenceOptions(**self._options))
        self.machines_ = self.result_.machines
        return self

    def partial_fit(self, traces: Traces, y: object = None) -> Self:
        """Add traces to those of earlier calls, and repair the machines if they fail."""
        if not hasattr(self, "result_"):
            return self.fit(traces)
        self.result_ = self.result_.update(to_trace_set(traces))
        self.machines_ = self.result_.machines
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
