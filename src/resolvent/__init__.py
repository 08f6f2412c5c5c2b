"""Resolvent: the smallest memory that makes a partially observable world Markovian.

Traces of a deterministic POMDP go in; a Transition Machine that predicts the
next observation and a Reward Machine that predicts the reward come out.

A name is imported when it is first asked for, with what it needs and no more:
`docs/decisions/util.md` says why. Type checkers read `__init__.pyi`, which
`python docs/generate.py` writes from the table here.
"""

# First of all: a file beside the user may be called as a module is.
import resolvent._util.startup  # noqa: F401

# isort: split
from importlib import import_module

from resolvent._util import startup
from resolvent.registration import register_when_possible

NAMES = {
    "resolvent._util.validation": ("Limits",),
    "resolvent.display.report.writing": ("report",),
    "resolvent.errors": (
        "ClusterError",
        "ContradictoryTraces",
        "DamagedFile",
        "EnvironmentFailed",
        "MissingExtra",
        "ModelError",
        "OptionError",
        "OutOfMemory",
        "ResolventError",
        "ResumeWarning",
        "SpaceWarning",
        "StorageError",
        "TableWarning",
        "TimeLimitReached",
        "TooLarge",
        "TraceError",
    ),
    "resolvent.evaluation.diagnosis.diagnostics": ("diagnose",),
    "resolvent.evaluation.diagnosis.findings": ("Diagnosis", "Finding"),
    "resolvent.evaluation.evidence": ("Evidence",),
    "resolvent.evaluation.experiments": ("Experiment",),
    "resolvent.exploration.explorer": ("Explorer",),
    "resolvent.exploration.solution": ("Solved",),
    "resolvent.exploration.solve": ("solve",),
    "resolvent.inference.cross_validation": ("HeldOut", "held_out"),
    "resolvent.inference.evidence": ("evidence",),
    "resolvent.inference.infer": ("infer",),
    "resolvent.inference.options": ("Options",),
    "resolvent.inference.result": ("InferenceResult",),
    "resolvent.inference.strategy": ("Strategy",),
    "resolvent.machines": (
        "UNSEEN",
        "EdgeRewardMachine",
        "Knowledge",
        "Machine",
        "MachinePair",
        "Machines",
        "RewardMachine",
        "Score",
        "TransitionMachine",
        "is_isomorphic",
        "is_minimal",
        "load",
        "read_reward_machine",
        "to_dot",
        "to_mealy_dot",
        "to_mermaid",
        "to_png",
        "to_svg",
        "to_text",
    ),
    "resolvent.noise.model": ("Noise",),
    "resolvent.paper": ("baselines",),
    "resolvent.planning.plan": ("Plan", "plan"),
    "resolvent.rl.collect": ("collect",),
    "resolvent.rl.q_table": ("Learned",),
    "resolvent.rl.trainer": ("q_learning",),
    "resolvent.rl.wrappers.augment": ("AugmentObservation", "VectorAugmentObservation"),
    "resolvent.rl.wrappers.shape": ("ShapeReward", "VectorShapeReward"),
    "resolvent.samples.timing": ("LabelTiming",),
    "resolvent.senses.discretise": ("Discretise",),
    "resolvent.traces.io.formats": ("read_traces",),
    "resolvent.traces.io.read_table": ("read_log", "read_table"),
    "resolvent.traces.labelling": ("Labelling",),
    "resolvent.traces.scan.dataset": ("TraceFolder", "scan_traces"),
    "resolvent.traces.trace": ("Trace",),
    "resolvent.traces.trace_set": ("TraceSet",),
}
"""Where each public name is defined, by module."""

_MODULE_OF = {name: module for module, names in NAMES.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> object:
    """Import a public name, a room or the version, at its first use."""
    if name == "__version__":
        found: object = import_module("importlib.metadata").version("resolvent")
    elif name == "baselines":
        found = import_module("resolvent.paper.baselines")
    elif name in _MODULE_OF:
        found = getattr(import_module(_MODULE_OF[name]), name)
    else:
        found = _room(name)
    globals()[name] = found
    return found


def _room(name: str) -> object:
    path = f"{__name__}.{name}"
    try:
        return import_module(path)
    except ModuleNotFoundError as error:
        if error.name != path:
            raise
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'") from None


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


startup.check()
register_when_possible()
