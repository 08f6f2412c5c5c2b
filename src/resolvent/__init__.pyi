# Written by docs/generate.py: edit the table in __init__.py instead.

from resolvent import baselines as baselines
from resolvent.control import AugmentObservation as AugmentObservation
from resolvent.control import Learned as Learned
from resolvent.control import Plan as Plan
from resolvent.control import ShapeReward as ShapeReward
from resolvent.control import VectorAugmentObservation as VectorAugmentObservation
from resolvent.control import VectorShapeReward as VectorShapeReward
from resolvent.control import plan as plan
from resolvent.control import q_learning as q_learning
from resolvent.diagnosis import Diagnosis as Diagnosis
from resolvent.diagnosis import Finding as Finding
from resolvent.diagnosis import diagnose as diagnose
from resolvent.display.report import report as report
from resolvent.errors import ClusterError as ClusterError
from resolvent.errors import ContradictoryTraces as ContradictoryTraces
from resolvent.errors import DamagedFile as DamagedFile
from resolvent.errors import EnvironmentFailed as EnvironmentFailed
from resolvent.errors import MissingExtra as MissingExtra
from resolvent.errors import ModelError as ModelError
from resolvent.errors import OptionError as OptionError
from resolvent.errors import OutOfMemory as OutOfMemory
from resolvent.errors import ResolventError as ResolventError
from resolvent.errors import ResumeWarning as ResumeWarning
from resolvent.errors import SpaceWarning as SpaceWarning
from resolvent.errors import StorageError as StorageError
from resolvent.errors import TableWarning as TableWarning
from resolvent.errors import TimeLimitReached as TimeLimitReached
from resolvent.errors import TooLarge as TooLarge
from resolvent.errors import TraceError as TraceError
from resolvent.exploring import Explorer as Explorer
from resolvent.exploring import Solved as Solved
from resolvent.exploring import solve as solve
from resolvent.holding_out import HeldOut as HeldOut
from resolvent.holding_out import held_out as held_out
from resolvent.limits import Limits as Limits
from resolvent.machines import UNSEEN as UNSEEN
from resolvent.machines import EdgeRewardMachine as EdgeRewardMachine
from resolvent.machines import Knowledge as Knowledge
from resolvent.machines import Machine as Machine
from resolvent.machines import MachinePair as MachinePair
from resolvent.machines import Machines as Machines
from resolvent.machines import RewardMachine as RewardMachine
from resolvent.machines import Score as Score
from resolvent.machines import TransitionMachine as TransitionMachine
from resolvent.machines import is_isomorphic as is_isomorphic
from resolvent.machines import is_minimal as is_minimal
from resolvent.machines import load as load
from resolvent.machines import read_reward_machine as read_reward_machine
from resolvent.machines import to_dot as to_dot
from resolvent.machines import to_mealy_dot as to_mealy_dot
from resolvent.machines import to_mermaid as to_mermaid
from resolvent.machines import to_png as to_png
from resolvent.machines import to_svg as to_svg
from resolvent.machines import to_text as to_text
from resolvent.merging import Strategy as Strategy
from resolvent.noise import Noise as Noise
from resolvent.options import Options as Options
from resolvent.pipeline import evidence as evidence
from resolvent.pipeline import infer as infer
from resolvent.result import InferenceResult as InferenceResult
from resolvent.samples import LabelTiming as LabelTiming
from resolvent.senses import Discretise as Discretise
from resolvent.traces import Trace as Trace
from resolvent.traces import TraceFolder as TraceFolder
from resolvent.traces import TraceSet as TraceSet
from resolvent.traces import read_log as read_log
from resolvent.traces import read_table as read_table
from resolvent.traces import read_traces as read_traces
from resolvent.traces import scan_traces as scan_traces
from resolvent.traces.labelling import Labelling as Labelling
from resolvent.traces.live.collecting import collect as collect
from resolvent.trust import Evidence as Evidence
from resolvent.trust import Experiment as Experiment

__version__: str

__all__ = [
    "UNSEEN",
    "AugmentObservation",
    "ClusterError",
    "ContradictoryTraces",
    "DamagedFile",
    "Diagnosis",
    "Discretise",
    "EdgeRewardMachine",
    "EnvironmentFailed",
    "Evidence",
    "Experiment",
    "Explorer",
    "Finding",
    "HeldOut",
    "InferenceResult",
    "Knowledge",
    "LabelTiming",
    "Labelling",
    "Learned",
    "Limits",
    "Machine",
    "MachinePair",
    "Machines",
    "MissingExtra",
    "ModelError",
    "Noise",
    "OptionError",
    "Options",
    "OutOfMemory",
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
    "TooLarge",
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
