"""A log's machine with many states as text: each input once, with its answer and where it leads."""

import re

import gymnasium as gym
import pyarrow as pa

import resolvent as rs
from vending_machine import log


def machine_of_log(sessions):
    traces = rs.read_log(
        pa.Table.from_pylist(log(sessions, seed=0)),
        episode="session",
        order="time",
        input="event",
        output="response",
    )
    return rs.infer(traces).machines["response"]


def test_every_move_and_answer_is_told_once():
    machine = machine_of_log(400)
    assert machine.states == 15
    title, empty, *lines = rs.to_text(machine).splitlines()
    assert title.startswith("Response Machine: 15 states, answers with the response")
    assert empty == ""
    told, state = {}, None
    for line in lines:
        if not line.startswith(" "):
            state = int(re.match(r"state (\d+), (after|the start)", line)[1])
            continue
        where, rest = re.match(r"  (stays|→ \d+) +(.*)", line).groups()
        target = state if where == "stays" else int(where[2:])
        for part in rest.split("; "):
            names, answer = part.split(" / ")
            for name in names.split(", "):
                assert (state, name) not in told
                told[state, name] = (target, answer)
    assert told == {
        (state, event): (
            machine.step(state, {event}),
            machine.output(state, "nothing", event),
        )
        for state in range(15)
        for event in machine.actions
    }


def test_what_was_never_given_is_left_out():
    machine = machine_of_log(8)
    assert machine.states > 13
    lines = rs.to_text(machine).splitlines()
    unseen = next(
        (state, event)
        for state in range(machine.states)
        for event in machine.actions
        if machine.output(state, "nothing", event) is rs.UNSEEN
        and machine.step(state, {event}) is rs.UNSEEN
    )
    start = next(n for n, line in enumerate(lines) if line.startswith(f"state {unseen[0]}, "))
    own = []
    for line in lines[start + 1 :]:
        if not line.startswith(" "):
            break
        own.append(line)
    assert unseen[1] not in " ".join(own)


def test_machines_of_worlds_keep_their_tables():
    of_log = machine_of_log(400)
    assert "reached after" not in rs.to_text(of_log)
    house = rs.infer(rs.collect(gym.make("resolvent/House-v0"), episodes=50))
    assert "reached after" in rs.to_text(house.machines.transition)
