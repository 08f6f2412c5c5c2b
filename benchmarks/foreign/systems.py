"""Systems with hidden state, by their rules → logs, and a check of the inferred machine.

Each system is an initial state and a function: state and input → next state and output. Logs do
not show the state.
"""

import csv
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
import vending_machine


@dataclass(frozen=True)
class System:
    """What can be given to a system, and what it does then."""

    start: Any
    inputs: tuple[str, ...]
    respond: Callable[[Any, str], tuple[Any, str]]

    def write_log(self, path: Path, sessions: int, seed: int, events: int = 30) -> None:
        """Write sessions of random inputs, each from the start, one row an input."""
        chance = random.Random(seed)
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["session", "time", "event", "response"])
            for session in range(sessions):
                state = self.start
                for time in range(events):
                    word = chance.choice(self.inputs)
                    state, answer = self.respond(state, word)
                    writer.writerow([f"s{session}", time, word, answer])

    def classes(self) -> dict[Any, int]:
        """Return for each state that can be reached what it is like: equal answers for ever."""
        reached = [self.start]
        for state in reached:
            for word in self.inputs:
                following, _ = self.respond(state, word)
                if following not in reached:
                    reached.append(following)
        like = dict.fromkeys(reached, 0)
        while True:
            seen: dict[Any, int] = {}
            finer = {}
            for state in reached:
                steps = [self.respond(state, word) for word in self.inputs]
                signature = (like[state], tuple((answer, like[after]) for after, answer in steps))
                finer[state] = seen.setdefault(signature, len(seen))
            if len(seen) == len(set(like.values())):
                return finer
            like = finer

    def states(self) -> int:
        """Return how many states the smallest machine of this system has."""
        return len(set(self.classes().values()))

    def is_machine(self, machine: Any, observation: Any) -> bool:
        """Whether a machine is the smallest of this system, but for the names of its states."""
        like, partner = self.classes(), {self.start: 0}
        queue = [self.start]
        for state in queue:
            for word in self.inputs:
                following, answer = self.respond(state, word)
                if machine.output(partner[state], observation, word) != answer:
                    return False
                reached = machine.step(partner[state], {word})
                if following not in partner:
                    partner[following] = reached
                    queue.append(following)
                elif partner[following] != reached:
                    return False
        return machine.states == len(set(like.values()))


def connection(state: str, word: str) -> tuple[str, str]:
    """One end of a TCP connection: calls of the program, and segments that arrive."""
    rules = {
        ("closed", "connect"): ("syn sent", "SYN"),
        ("closed", "listen"): ("listening", "ok"),
        ("listening", "SYN"): ("syn received", "SYN+ACK"),
        ("listening", "close"): ("closed", "ok"),
        ("syn sent", "SYN+ACK"): ("established", "ACK"),
        ("syn sent", "SYN"): ("syn received", "SYN+ACK"),
        ("syn sent", "close"): ("closed", "ok"),
        ("syn received", "ACK"): ("established", "ok"),
        ("syn received", "close"): ("fin wait 1", "FIN"),
        ("established", "close"): ("fin wait 1", "FIN"),
        ("established", "FIN"): ("close wait", "ACK"),
        ("fin wait 1", "ACK"): ("fin wait 2", "ok"),
        ("fin wait 1", "FIN"): ("closing", "ACK"),
        ("fin wait 2", "FIN"): ("time wait", "ACK"),
        ("closing", "ACK"): ("time wait", "ok"),
        ("close wait", "close"): ("last ack", "FIN"),
        ("last ack", "ACK"): ("closed", "ok"),
        ("time wait", "timeout"): ("closed", "ok"),
    }
    return rules.get((state, word), (state, "refused"))


def login(state: tuple[int, bool, bool], word: str) -> tuple[tuple[int, bool, bool], str]:
    """An account that locks after three wrong passwords and asks for a new one at first."""
    wrong, inside, changed = state
    match word:
        case "logout":
            return ((0, False, changed), "bye") if inside else (state, "not logged in")
        case "unlock" if wrong == 3:
            return (0, False, changed), "unlocked"
        case "unlock":
            return state, "not locked"
        case "new password" if inside:
            return (0, True, True), "changed"
        case "read" if inside and changed:
            return state, "letter"
        case "new password" | "read":
            return state, "change your password" if inside else "not logged in"
    if wrong == 3:
        return state, "locked"
    if inside:
        return state, "already logged in"
    if word == "wrong password":
        return (wrong + 1, False, changed), "locked" if wrong == 2 else "wrong"
    return (0, True, changed), "welcome" if changed else "change your password"


def lift(state: tuple[int, int, bool], word: str) -> tuple[tuple[int, int, bool], str]:
    """A lift of four floors that remembers one call, and opens its door when it has come."""
    floor, goal, is_open = state
    if word.startswith("call"):
        called = int(word[-1])
        if goal != floor:
            return state, "busy"
        if called == floor:
            return (floor, floor, True), "stays open" if is_open else "opens"
        return (floor, called, False), "closes" if is_open else "starts"
    if word == "close":
        return (floor, goal, False), "closes" if is_open else "is closed"
    if goal == floor:
        return state, "waits"
    floor += 1 if goal > floor else -1
    return (floor, goal, floor == goal), "opens" if floor == goal else "passes"


SYSTEMS = {
    "vending": System(vending_machine.START, vending_machine.EVENTS, vending_machine.respond),
    "connection": System(
        "closed",
        ("connect", "listen", "close", "SYN", "SYN+ACK", "ACK", "FIN", "timeout"),
        connection,
    ),
    "login": System(
        (0, False, False),
        ("right password", "wrong password", "new password", "read", "logout", "unlock"),
        login,
    ),
    "lift": System((1, 1, False), ("call 1", "call 2", "call 3", "call 4", "wait", "close"), lift),
}
