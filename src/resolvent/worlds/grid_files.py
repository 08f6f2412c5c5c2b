"""Grid worlds ↔ JSON files: our format, and the one the paper's authors publish.

A file is checked completely before it is used; an invalid file raises a `ModelError`.
"""

import re
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from resolvent._util.files import atomic_write, read_content
from resolvent._util.text import short
from resolvent._util.validation import telling_of_memory
from resolvent.errors import ModelError
from resolvent.worlds.grid_world import GridWorld

FORMAT = "resolvent-world"
VERSION = 1
LARGEST = 1_000  # of any count, so that a wrong number does not fill the memory

Position = tuple[int, int]

T = TypeVar("T")


class _TransitionMachine(msgspec.Struct, forbid_unknown_fields=True):
    transitions: list[list[int]]  # by state and label
    blocked: list[list[Position]]  # by state


class _RewardMachine(msgspec.Struct, forbid_unknown_fields=True):
    transitions: list[list[int]]  # by state and label; the last state is terminal
    rewards: list[list[float]]


class _File(msgspec.Struct, forbid_unknown_fields=True):
    format: str
    version: int
    size: int
    labels: int
    labelled: list[tuple[int, int, int]]  # x, y, label
    transition: _TransitionMachine
    reward: _RewardMachine


class _Environment(msgspec.Struct):
    size: int


class _Labels(msgspec.Struct):
    count: int
    mapping: dict[str, int]


class _TransitionAutomaton(msgspec.Struct):
    states_count: int
    transitions: dict[str, dict[str, str]]
    impassable_positions: dict[str, list[str]]


class _RewardAutomaton(msgspec.Struct):
    states_count: int
    transitions: dict[str, dict[str, str]]
    rewards: dict[str, dict[str, float]]
    terminal_state: str


class _AuthorsFile(msgspec.Struct):
    """The file that the authors' generator writes; a transition that is missing stays."""

    environment: _Environment
    labels: _Labels
    transition_automaton: _TransitionAutomaton
    reward_automaton: _RewardAutomaton


def save_grid_world(world: GridWorld, path: str | Path) -> None:
    """Write a world to a JSON file atomically."""
    side = world.size + 1
    content = _File(
        format=FORMAT,
        version=VERSION,
        size=world.size,
        labels=world.labels,
        labelled=[
            (*divmod(observation, side), label)
            for observation, label in enumerate(world.label_at)
            if label is not None
        ],
        transition=_TransitionMachine(
            [list(row) for row in world.tm_transitions],
            [[divmod(cell, side) for cell in sorted(cells)] for cells in world.blocked],
        ),
        reward=_RewardMachine(
            [list(row) for row in world.rm_transitions], [list(row) for row in world.rm_rewards]
        ),
    )
    with atomic_write(path) as file:
        file.write(msgspec.json.encode(content) + b"\n")


def load_grid_world(path: str | Path) -> GridWorld:
    """Read a world that `save_grid_world` or the authors' generator wrote.

    Raises:
        ModelError: when the file is missing, cut short, or does not hold a world.
    """
    with telling_of_memory(f"{path} was read"):
        data = read_content(path)
        try:
            return _decoded(data)
        except _Wrong as error:
            raise ModelError(f"{path}: {error}") from None


class _Wrong(Exception):  # noqa: N818
    """An error in a file whose name is not known yet."""


def _decoded(data: bytes) -> GridWorld:
    try:
        content = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _Wrong(f"not valid JSON, perhaps it was cut short: {error}") from error
    if isinstance(content, dict) and "transition_automaton" in content:
        return _of_authors(_converted(content, _AuthorsFile))
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise _Wrong(f'not a world: it lacks "format": "{FORMAT}"')
    if content.get("version") != VERSION:
        raise _Wrong(f"format version {content.get('version')}, this Resolvent reads {VERSION}")
    file = _converted(content, _File)
    return _checked(
        file.size,
        file.labels,
        {(x, y): label for x, y, label in file.labelled},
        file.transition.transitions,
        [set(cells) for cells in file.transition.blocked],
        file.reward.transitions,
        file.reward.rewards,
    )


def _converted(content: Any, kind: type[T]) -> T:
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise _Wrong(str(error)) from error


def _of_authors(file: _AuthorsFile) -> GridWorld:
    """Read the authors' names, "(1, 3)" for a cell and "q_2" for a state, as numbers."""
    tm, rm = file.transition_automaton, file.reward_automaton
    labels = file.labels.count
    terminal = _state(rm.terminal_state)
    for what, count in (("labels", labels), ("TM", tm.states_count), ("RM", rm.states_count)):
        if not 1 <= count <= LARGEST:
            raise _Wrong(f"{what}: a count of {count}, use 1 to {LARGEST:,}")
    if terminal >= rm.states_count:
        raise _Wrong(f"the terminal state {rm.terminal_state} is not one of {rm.states_count}")
    # Our terminal state is the last one: the two change places.
    place = {terminal: rm.states_count - 1, rm.states_count - 1: terminal}
    tm_table = [[state] * labels for state in range(tm.states_count)]
    rm_table = [[state] * labels for state in range(rm.states_count)]
    rewards = [[0.0] * labels for _ in range(rm.states_count)]
    for source, row in tm.transitions.items():
        for label, target in row.items():
            _set(tm_table, _state(source), label, _state(target))
    for source, row in rm.transitions.items():
        for label, target in row.items():
            left, right = _state(source), _state(target)
            _set(rm_table, place.get(left, left), label, place.get(right, right))
    for source, paid in rm.rewards.items():
        for label, reward in paid.items():
            state = _state(source)
            _set(rewards, place.get(state, state), label, reward)
    blocked: list[set[Position]] = [set() for _ in range(tm.states_count)]
    for name, cells in tm.impassable_positions.items():
        if _state(name) >= len(blocked):
            raise _Wrong(f"impassable_positions names state {name} of {len(blocked)}")
        blocked[_state(name)] = {_position(cell) for cell in cells}
    labelled = {_position(cell): label for cell, label in file.labels.mapping.items()}
    return _checked(file.environment.size, labels, labelled, tm_table, blocked, rm_table, rewards)


def _state(name: str) -> int:
    match = re.fullmatch(r"q'?_([0-9]{1,9})", name)
    if match is None:
        raise _Wrong(f"{short(repr(name))} is not a state such as q_0")
    return int(match[1])


def _position(text: str) -> Position:
    match = re.fullmatch(r"\(([0-9]{1,9}), *([0-9]{1,9})\)", text)
    if match is None:
        raise _Wrong(f"{short(repr(text))} is not a cell such as (1, 3)")
    return int(match[1]), int(match[2])


def _set(table: list[list[T]], state: int, label: str, value: T) -> None:
    numbered = re.fullmatch("[0-9]{1,9}", label) is not None
    if not numbered or state >= len(table) or int(label) >= len(table[state]):
        raise _Wrong(f"there is no state {state} with label {short(repr(label))}")
    table[state][int(label)] = value


def _checked(
    size: int,
    labels: int,
    labelled: dict[Position, int],
    tm_transitions: list[list[int]],
    blocked: list[set[Position]],
    rm_transitions: list[list[int]],
    rm_rewards: list[list[float]],
) -> GridWorld:
    """Make the world if all references are valid."""
    if size < 1 or labels < 1:
        raise _Wrong(f"size {size} and {labels} labels: use at least 1")
    if size > LARGEST:
        raise _Wrong(f"size {size}: use at most {LARGEST:,}")
    axis = range(size + 1)
    cells = {(x, y): x * (size + 1) + y for x in axis for y in axis}
    if not tm_transitions or len(rm_transitions) < 2:
        raise _Wrong("use at least one TM state and two RM states")
    if len(blocked) != len(tm_transitions) or len(rm_rewards) != len(rm_transitions):
        raise _Wrong("tables of one machine have different numbers of states")
    for where, label in labelled.items():
        if where not in cells or not 0 <= label < labels:
            raise _Wrong(f"label {label} at {where}: outside the grid or its {labels} labels")
    for where in set().union(*blocked):
        if where not in labelled:
            raise _Wrong(f"{where} is impassable but has no label")
    for name, table in (("TM", tm_transitions), ("RM", rm_transitions)):
        for row in table:
            if len(row) != labels or not all(0 <= target < len(table) for target in row):
                raise _Wrong(f"a {name} state does not lead to a state with each label")
    if any(len(row) != labels for row in rm_rewards):
        raise _Wrong("an RM state does not pay a reward for each label")
    return GridWorld(
        size,
        tuple(labelled.get(where) for where in cells),
        tuple(map(tuple, tm_transitions)),
        tuple(frozenset(cells[where] for where in state) for state in blocked),
        tuple(map(tuple, rm_transitions)),
        tuple(map(tuple, rm_rewards)),
    )
