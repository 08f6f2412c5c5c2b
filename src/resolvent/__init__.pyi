# Written by docs/generate.py: edit the table in __init__.py instead.

from resolvent import config as config
from resolvent import errors as errors
from resolvent import evaluation as evaluation
from resolvent import inference as inference
from resolvent import machines as machines
from resolvent import paper as paper
from resolvent import rl as rl
from resolvent import worlds as worlds
from resolvent import wrappers as wrappers
from resolvent.errors import ContradictoryTraces as ContradictoryTraces
from resolvent.errors import OptionError as OptionError
from resolvent.errors import ResolventError as ResolventError
from resolvent.errors import TraceError as TraceError
from resolvent.evaluation.diagnosis.diagnose import diagnose as diagnose
from resolvent.evaluation.evidence import Evidence as Evidence
from resolvent.evaluation.experiments import Experiment as Experiment
from resolvent.exploration.explorer import Explorer as Explorer
from resolvent.exploration.solution import Solution as Solution
from resolvent.exploration.solve import solve as solve
from resolvent.inference.cross_validation import evidence as evidence
from resolvent.inference.cross_validation import holdout_score as holdout_score
from resolvent.inference.infer import infer as infer
from resolvent.inference.options import InferenceOptions as InferenceOptions
from resolvent.inference.result import InferenceResult as InferenceResult
from resolvent.machines import UNSEEN as UNSEEN
from resolvent.machines import Basis as Basis
from resolvent.machines import Machine as Machine
from resolvent.machines import MachinePair as MachinePair
from resolvent.machines import Machines as Machines
from resolvent.machines import RewardMachine as RewardMachine
from resolvent.machines import TransitionMachine as TransitionMachine
from resolvent.machines import is_isomorphic as is_isomorphic
from resolvent.machines import load as load
from resolvent.noise.model import Noise as Noise
from resolvent.planning.plan import Plan as Plan
from resolvent.planning.plan import plan as plan
from resolvent.preprocess.discretize import Discretizer as Discretizer
from resolvent.preprocess.labeling import LabelingFunction as LabelingFunction
from resolvent.preprocess.timing import LabelTiming as LabelTiming
from resolvent.rl.augment import AugmentObservation as AugmentObservation
from resolvent.rl.collect import collect as collect
from resolvent.rl.trainer import q_learning as q_learning
from resolvent.traces.io.formats import read_traces as read_traces
from resolvent.traces.io.read_table import read_log as read_log
from resolvent.traces.io.read_table import read_table as read_table
from resolvent.traces.io.read_table import scan_traces as scan_traces
from resolvent.traces.source import TraceDataset as TraceDataset
from resolvent.traces.trace import Trace as Trace
from resolvent.traces.trace_set import TraceSet as TraceSet
from resolvent.viz.report.page import report as report

__version__: str

__all__ = [
    "UNSEEN",
    "AugmentObservation",
    "Basis",
    "ContradictoryTraces",
    "Discretizer",
    "Evidence",
    "Experiment",
    "Explorer",
    "InferenceOptions",
    "InferenceResult",
    "LabelTiming",
    "LabelingFunction",
    "Machine",
    "MachinePair",
    "Machines",
    "Noise",
    "OptionError",
    "Plan",
    "ResolventError",
    "RewardMachine",
    "Solution",
    "Trace",
    "TraceDataset",
    "TraceError",
    "TraceSet",
    "TransitionMachine",
    "collect",
    "diagnose",
    "evidence",
    "holdout_score",
    "infer",
    "is_isomorphic",
    "load",
    "plan",
    "q_learning",
    "read_log",
    "read_table",
    "read_traces",
    "report",
    "scan_traces",
    "solve",
]
