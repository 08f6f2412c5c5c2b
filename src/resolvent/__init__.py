"""Resolvent: the smallest memory that makes a partially observable world Markovian.

Traces of a deterministic POMDP go in; a Transition Machine that predicts the
next observation and a Reward Machine that predicts the reward come out.
"""

import resolvent.starting  # first of all: a file beside the user may be called as a module is

# isort: split
from importlib.metadata import version

import resolvent.environments  # noqa: F401 -- registers resolvent/House-v0 and its kin
from resolvent import baselines
from resolvent.control import (
    AugmentObservation,
    Learned,
    Plan,
    ShapeReward,
    VectorAugmentObservation,
    VectorShapeReward,
    plan,
    q_learning,
)
from resolvent.diagnosis import Diagnosis, Finding, diagnose
from resolvent.display.report import report
from resolvent.errors import (
    ClusterError,
    ContradictoryTraces,
    DamagedFile,
    MissingExtra,
    ModelError,
    OptionError,
    ResolventError,
    ResumeWarning,
    SpaceWarning,
    StorageError,
    TableWarning,
    TimeLimitReached,
    TraceError,
)
from resolvent.exploring import Explorer, Solved, solve
from resolvent.holding_out import HeldOut, held_out
from resolvent.machines import (
    UNSEEN,
    EdgeRewardMachine,
    Knowledge,
    Machine,
    MachinePair,
    Machines,
    RewardMachine,
    Score,
    TransitionMachine,
    is_isomorphic,
    is_minimal,
    load,
    read_reward_machine,
    to_dot,
    to_mealy_dot,
    to_mermaid,
    to_png,
    to_svg,
    to_text,
)
from resolvent.merging import Strategy
from resolvent.noise import Noise
from resolvent.options import Options
from resolvent.pipeline import evidence, infer
from resolvent.result import InferenceResult
from resolvent.samples import LabelTiming
from resolvent.senses import Discretise
from resolvent.traces import (
    Trace,
    TraceFolder,
    TraceSet,
    read_log,
    read_table,
    read_traces,
    scan_traces,
)
from resolvent.traces.labelling import Labelling
from resolvent.traces.live.collecting import collect
from resolvent.trust import Evidence

__version__ = version("resolvent")

__all__ = [
    "UNSEEN",
    "AugmentObservation",
    "ClusterError",
    "ContradictoryTraces",
    "DamagedFile",
    "Diagnosis",
    "Discretise",
    "EdgeRewardMachine",
    "Evidence",
    "Explorer",
    "Finding",
    "HeldOut",
    "InferenceResult",
    "Knowledge",
    "LabelTiming",
    "Labelling",
    "Learned",
    "Machine",
    "MachinePair",
    "Machines",
    "MissingExtra",
    "ModelError",
    "Noise",
    "OptionError",
    "Options",
    "Plan",
    "ResolventError",
    "ResumeWarning",
    "RewardMachine",
    "Score",
    "ShapeReward",
    "Solved",
    "SpaceWarning",
    "StorageError",
    "Strategy",
    "TableWarning",
    "TimeLimitReached",
    "Trace",
    "TraceError",
    "TraceFolder",
    "TraceSet",
    "TransitionMachine",
    "VectorAugmentObservation",
    "VectorShapeReward",
    "baselines",
    "collect",
    "diagnose",
    "evidence",
    "held_out",
    "infer",
    "is_isomorphic",
    "is_minimal",
    "load",
    "plan",
    "q_learning",
    "read_log",
    "read_reward_machine",
    "read_table",
    "read_traces",
    "report",
    "scan_traces",
    "solve",
    "to_dot",
    "to_mealy_dot",
    "to_mermaid",
    "to_png",
    "to_svg",
    "to_text",
]
