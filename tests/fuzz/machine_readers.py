"""Files of machines, and reward machines as text."""

import json
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import resolvent as rs
from fuzz.mutations import TEXTS, damaged, damaged_document, json_bytes, tweaked_json
from fuzz.targets import Files, Reader
from fuzz.trace_readers import some_traces
from resolvent.machines.io.edge_rewards import encode_reward_machine
from resolvent.machines.io.json import encode
from resolvent.worlds import House

MODELS = 16
"""Number of different files."""


@cache
def model(number: int) -> Any:
    """Return a file of machines as a value: of a house, or of a few random traces."""
    if number < 3:
        traces = rs.collect(House(), episodes=(5, 40, 100)[number], seed=number)
        return json.loads(encode(rs.infer(traces).machines))
    options = {"supplement": number % 2 == 0}
    return json.loads(
        encode(rs.infer(some_traces(number), options=rs.InferenceOptions(**options)).machines)
    )


def machines(draw: Random) -> Files:
    """Return a damaged file of machines."""
    return {"machines.json": damaged_document(draw, model(draw.randrange(MODELS)))}


def tweaked_machines(draw: Random) -> Files:
    """Return a file of machines with numbers that may well be right."""
    value = model(draw.randrange(MODELS))
    for _ in range(draw.choice((1, 1, 2))):
        value = tweaked_json(draw, value)
    return {"machines.json": json_bytes(draw, value)}


def load(path: Path) -> None:
    """Load machines, and put what was loaded to use."""
    held = rs.load(path / "machines.json")
    assert encode(held)
    for machine in held.values():
        assert machine.states >= 1
        if machine.states * len(machine.labels) > 10_000:
            continue
        assert str(machine)
        assert machine.to_mealy_dot()
        machine.is_minimal()
        state = 0
        for label in machine.labels[:5]:
            state = machine.step(state, label)
            machine.access_sequence(0)
        for answer in list(machine.entries())[:5]:
            machine.output(state, answer.observation, answer.action)
            machine.distribution(0, answer.observation, answer.action)


def load_and_use(path: Path) -> None:
    """Load machines, and hold them against traces of the house."""
    held = rs.load(path / "machines.json")
    if sum(one.states for one in held.values()) > 1000:
        return
    traces = house()
    held.score(traces)
    if "reward" in held and "transition" in held:
        rs.plan(held, traces)
    for machine in held.values():
        assert machine.to_dot()
        assert machine.to_mermaid()


@cache
def house() -> rs.TraceSet:
    """Return traces of the house."""
    return rs.collect(House(), episodes=5, seed=0)


@cache
def reward_text(number: int) -> bytes:
    """Return a reward machine as text."""
    draw = Random(number)
    names = draw.sample(["coffee", "mail", "plant", "a", "b"], 3)
    states = draw.randint(1, 4)
    lines = [f"{draw.randrange(states)} # initial", f"[{states}]"]
    for source in range(states):
        first, second = draw.sample(names, 2)
        to, other = draw.randint(0, states), draw.randint(0, states)
        lines.append(f"({source},{to},'{first}&!{second}',ConstantRewardFunction(1))")
        lines.append(f"({source},{other},'!{first}|{first}&{second}',ConstantRewardFunction(0.5))")
    return "\n".join(lines).encode() + b"\n"


def reward_machine(draw: Random) -> Files:
    """Return a damaged reward machine."""
    data = damaged(draw, reward_text(draw.randrange(40)))
    if draw.random() < 0.2:
        lines = data.split(b"\n")
        formula = draw.choice(("!", "a&", "a|", "(", "!(")) * draw.choice((1, 30, 300, 3000)) + "a"
        text = draw.choice((formula, draw.choice(TEXTS)))
        lines.append(f"(0,1,'{text}',ConstantRewardFunction(1))".encode())
        data = b"\n".join(lines)
    return {"machine.txt": data}


def read_reward_machine(path: Path) -> None:
    """Read a reward machine, step through it, and write it."""
    machine = rs.machines.read_reward_machine(path / "machine.txt")
    machine.step(machine.initial, {"coffee"})
    assert encode_reward_machine(machine)


TARGETS = (
    Reader("machines", machines, load),
    Reader("machines-used", tweaked_machines, load_and_use),
    Reader("reward-machine", reward_machine, read_reward_machine),
)
