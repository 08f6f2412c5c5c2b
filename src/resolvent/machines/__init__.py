"""Machines: raw automaton + what was taken out → machines that answer for themselves."""

from resolvent.machines.alternatives import Alternative
from resolvent.machines.building import build_machine, loop_where_read, machine_of_tables
from resolvent.machines.comparing import is_isomorphic, is_minimal
from resolvent.machines.decision import Decision
from resolvent.machines.drawing import to_dot, to_mermaid, to_text
from resolvent.machines.exchange.edge_rewards import Edge, EdgeRewardMachine
from resolvent.machines.exchange.guards import Guard
from resolvent.machines.exchange.mealy_dot import to_mealy_dot
from resolvent.machines.exchange.reward_machine_files import (
    read_reward_machine,
    write_reward_machine,
)
from resolvent.machines.files.storage import load
from resolvent.machines.kinds import kind_of
from resolvent.machines.knowledge import Knowledge
from resolvent.machines.machine import (
    Machine,
    RewardMachine,
    TransitionMachine,
    machine_class,
)
from resolvent.machines.machine_set import (
    MachinePair,
    Machines,
    Provenance,
    machines_of,
    output_order,
)
from resolvent.machines.merge_log import decisions_of
from resolvent.machines.picture import to_png, to_svg
from resolvent.machines.score import MachineScore, Mismatch, Score
from resolvent.machines.spread import Spread
from resolvent.machines.support import Support
from resolvent.machines.termination import Termination
from resolvent.machines.unseen import UNSEEN, Unseen

__all__ = [
    "UNSEEN",
    "Alternative",
    "Decision",
    "Edge",
    "EdgeRewardMachine",
    "Guard",
    "Knowledge",
    "Machine",
    "MachinePair",
    "MachineScore",
    "Machines",
    "Mismatch",
    "Provenance",
    "RewardMachine",
    "Score",
    "Spread",
    "Support",
    "Termination",
    "TransitionMachine",
    "Unseen",
    "build_machine",
    "decisions_of",
    "is_isomorphic",
    "is_minimal",
    "kind_of",
    "load",
    "loop_where_read",
    "machine_class",
    "machine_of_tables",
    "machines_of",
    "output_order",
    "read_reward_machine",
    "to_dot",
    "to_mealy_dot",
    "to_mermaid",
    "to_png",
    "to_svg",
    "to_text",
    "write_reward_machine",
]
