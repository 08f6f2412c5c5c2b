"""Resolvent: the smallest memory that makes a partially observable environment Markovian.

Input: traces of observations, labels, actions and rewards. Output: a Transition Machine that
predicts the next observation and a Reward Machine that predicts the reward.

A public name is imported at its first use, with what it needs and no more
(docs/decisions/util.md). Type checkers read `__init__.pyi`, which `python docs/generate.py`
writes from the table here.
"""

# Before anything else: a file in the user's folder may have the name of a module.
import resolvent._util.startup  # noqa: F401

# isort: split
from importlib import import_module

from resolvent._util import startup
from resolvent.registration import register_when_possible

NAMES = {
    "resolvent.errors": ("ContradictoryTraces", "OptionError", "ResolventError", "TraceError"),
    "resolvent.evaluation.diagnosis.diagnose": ("diagnose",),
    "resolvent.evaluation.evidence": ("Evidence",),
    "resolvent.evaluation.experiments": ("Experiment",),
    "resolvent.exploration.explorer": ("Explorer",),
    "resolvent.exploration.solution": ("Solution",),
    "resolvent.exploration.solve": ("solve",),
    "resolvent.inference.cross_validation": ("evidence", "holdout_score"),
    "resolvent.inference.infer": ("infer",),
    "resolvent.inference.options": ("InferenceOptions",),
    "resolvent.inference.result": ("InferenceResult",),
    "resolvent.machines": (
        "UNSEEN",
        "Basis",
        "Machine",
        "MachinePair",
        "Machines",
        "RewardMachine",
        "TransitionMachine",
        "is_isomorphic",
        "load",
    ),
    "resolvent.noise.model": ("Noise",),
    "resolvent.planning.plan": ("Plan", "plan"),
    "resolvent.preprocess.discretize": ("Discretizer",),
    "resolvent.preprocess.labeling": ("LabelingFunction",),
    "resolvent.preprocess.timing": ("LabelTiming",),
    "resolvent.rl.augment": ("AugmentObservation",),
    "resolvent.rl.collect": ("collect",),
    "resolvent.rl.trainer": ("q_learning",),
    "resolvent.traces.io.formats": ("read_traces",),
    "resolvent.traces.io.read_table": ("read_log", "read_table", "scan_traces"),
    "resolvent.traces.source": ("TraceDataset",),
    "resolvent.traces.trace": ("Trace",),
    "resolvent.traces.trace_set": ("TraceSet",),
    "resolvent.viz.report.page": ("report",),
}
"""Public names by the module that defines them."""

PACKAGES = (
    "config",
    "errors",
    "evaluation",
    "inference",
    "machines",
    "paper",
    "rl",
    "worlds",
    "wrappers",
)
"""Modules and packages with further public names."""

_MODULE_OF = {name: module for module, names in NAMES.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> object:
    """Import a public name, a package or the version at its first use."""
    if name == "__version__":
        attribute: object = import_module("importlib.metadata").version("resolvent")
    elif name in _MODULE_OF:
        attribute = getattr(import_module(_MODULE_OF[name]), name)
    else:
        path = f"{__name__}.{name}"
        try:
            attribute = import_module(path)
        except ModuleNotFoundError as error:
            if error.name != path:
                raise
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'") from None
    globals()[name] = attribute
    return attribute


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *PACKAGES, "__version__"})


startup.check_gil()
register_when_possible()
