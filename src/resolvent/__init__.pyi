# Written by docs/generate.py: edit the table in __init__.py instead.

from resolvent._util.validation import Limits as Limits
from resolvent.display.report.writing import report as report
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
from resolvent.evaluation.diagnosis.diagnostics import diagnose as diagnose
from resolvent.evaluation.diagnosis.findings import Diagnosis as Diagnosis
from resolvent.evaluation.diagnosis.findings import Finding as Finding
from resolvent.evaluation.evidence import Evidence as Evidence
from resolvent.evaluation.experiments import Experiment as Experiment
from resolvent.exploration.explorer import Explorer as Explorer
from resolvent.exploration.solution import Solved as Solved
from resolvent.exploration.solve import solve as solve
from resolvent.inference.cross_validation import HeldOut as HeldOut
from resolvent.inference.cross_validation import held_out as held_out
from resolvent.inference.evidence import evidence as evidence
from resolvent.inference.infer import infer as infer
from resolvent.inference.options import Options as Options
from resolvent.inference.result import InferenceResult as InferenceResult
from resolvent.inference.strategy import Strategy as Strategy
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
from resolvent.noise.model import Noise as Noise
from resolvent.paper import baselines as baselines
from resolvent.planning.plan import Plan as Plan
from resolvent.planning.plan import plan as plan
from resolvent.rl.collect import collect as collect
from resolvent.rl.q_table import Learned as Learned
from resolvent.rl.trainer import q_learning as q_learning
from resolvent.rl.wrappers.augment import AugmentObservation as AugmentObservation
from resolvent.rl.wrappers.augment import VectorAugmentObservation as VectorAugmentObservation
from resolvent.rl.wrappers.shape import ShapeReward as ShapeReward
from resolvent.rl.wrappers.shape import VectorShapeReward as VectorShapeReward
from resolvent.samples.timing import LabelTiming as LabelTiming
from resolvent.senses.discretise import Discretise as Discretise
from resolvent.traces.io.formats import read_traces as read_traces
from resolvent.traces.io.read_table import read_log as read_log
from resolvent.traces.io.read_table import read_table as read_table
from resolvent.traces.labelling import Labelling as Labelling
from resolvent.traces.scan.dataset import TraceFolder as TraceFolder
from resolvent.traces.scan.dataset import scan_traces as scan_traces
from resolvent.traces.trace import Trace as Trace
from resolvent.traces.trace_set import TraceSet as TraceSet

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
