"""Machines as values: automata with outputs, their files, comparison, likelihood and scores."""

from resolvent.machines.augmented_state import Termination
from resolvent.machines.build import Vocabularies, machine_of_tables
from resolvent.machines.compare import Alternative, is_isomorphic
from resolvent.machines.io.edge_rewards import Edge, EdgeRewardMachine, read_reward_machine
from resolvent.machines.io.guards import Guard
from resolvent.machines.io.json import load
from resolvent.machines.machine import Machine, RewardMachine, TransitionMachine, machine_name
from resolvent.machines.machine_set import MachinePair, Machines, Provenance, machines_of
from resolvent.machines.memory import UNSEEN, FiniteMemory, Unseen
from resolvent.machines.score import MachineScore, Mismatch, Score
from resolvent.machines.tables import Basis, MergeDecision, OutputCounts, Support

__all__ = [
    "UNSEEN",
    "Alternative",
    "Basis",
    "Edge",
    "EdgeRewardMachine",
    "FiniteMemory",
    "Guard",
    "Machine",
    "MachinePair",
    "MachineScore",
    "Machines",
    "MergeDecision",
    "Mismatch",
    "OutputCounts",
    "Provenance",
    "RewardMachine",
    "Score",
    "Support",
    "Termination",
    "TransitionMachine",
    "Unseen",
    "Vocabularies",
    "is_isomorphic",
    "load",
    "machine_name",
    "machine_of_tables",
    "machines_of",
    "read_reward_machine",
]
