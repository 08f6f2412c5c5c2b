"""The house of the paper's Figure 1: four rooms, a key, a toilet and a sofa."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from resolvent._util.validation import check_arguments
from resolvent.traces.symbols import Label
from resolvent.worlds.drawing import Cell, Color, Picture
from resolvent.worlds.env import VectorWorld, World
from resolvent.worlds.mechanics import Mechanics, Rules

Goal: TypeAlias = Literal["sofa", "cyanroom"]

_DOORS = {
    ("corridor", "left"): "orangeroom",
    ("corridor", "up"): "cyanroom",
    ("corridor", "right"): "limegreenroom",
    ("orangeroom", "right"): "corridor",
    ("cyanroom", "down"): "corridor",
    ("limegreenroom", "left"): "corridor",
}

_LABELS = {
    "corridor": frozenset[str](),
    "orangeroom": frozenset({"key"}),
    "cyanroom": frozenset({"toilet"}),
    "limegreenroom": frozenset({"sofa"}),
}

_CELLS: dict[str, Cell] = {
    "cyanroom": (0, 1),
    "orangeroom": (1, 0),
    "corridor": (1, 1),
    "limegreenroom": (1, 2),
}

_COLORS: dict[str, Color] = {
    "key": (245, 170, 60),
    "toilet": (90, 205, 220),
    "sofa": (140, 205, 80),
}


class HouseState(NamedTuple):
    """The agent's room, and what it has done so far."""

    room: str
    key_taken: bool = False
    toilet_visited: bool = False


class HouseRules(Rules[HouseState]):
    """The rules of the house; see `House`."""

    actions = ("up", "down", "left", "right", "sit")

    def __init__(self, goal: Goal) -> None:
        self.goal = goal

    def starts(self) -> Sequence[HouseState]:
        """Begin in the corridor, with the key in the orangeroom."""
        return [HouseState("corridor")]

    def step(self, state: HouseState, action: int) -> tuple[HouseState, float, bool]:
        """Go through a door, or sit."""
        name, before = self.actions[action], state.room
        room = _DOORS.get((before, name), before)
        if room == "cyanroom" and not state.key_taken:
            room = before
        after = HouseState(
            room,
            state.key_taken or room == "orangeroom",
            state.toilet_visited or room == "cyanroom",
        )
        on_sofa = name == "sit" and room == "limegreenroom"
        if self.goal == "sofa":
            return after, float(on_sofa and after.toilet_visited), on_sofa
        entered = room == "cyanroom" and before != "cyanroom"
        return after, float(entered), entered or on_sofa

    def observation(self, state: HouseState) -> str:
        """Show the room."""
        return state.room

    def label(self, state: HouseState) -> Label:
        """Return the contents of the room."""
        return _LABELS[state.room]

    def transition_memory(self, state: HouseState) -> bool:
        """Return whether the key was taken, which opens the cyanroom."""
        return state.key_taken

    def reward_memory(self, state: HouseState) -> bool:
        """Return whether the toilet was visited, if the reward depends on it."""
        return self.goal == "sofa" and state.toilet_visited


class House(World):
    """Fetch the key, visit the toilet, sit on the sofa; only the current room is visible.

    The cyanroom is locked until the key has been taken. Being in the orangeroom
    takes the key, being in the cyanroom visits the toilet; neither shows in the
    observation. Sitting in the limegreenroom ends the episode, with the reward 1 if the
    toilet has been visited. `info["labels"]` holds the contents of the room.

    With `goal="cyanroom"` entering the cyanroom ends the episode with the reward 1, and
    sitting on the sofa ends it without reward.

    Memory: two TM states, without and with the key; two RM states, before and
    after the toilet, but one with `goal="cyanroom"`, where the key suffices.

    Paper: Figure 1, and the example "Transition-Reward Interference".

    >>> house = House()
    >>> _ = house.reset()
    >>> room, reward, *_ = house.step(House.action_names.index("up"))
    >>> House.observation_names[room], reward
    ('corridor', 0.0)
    """

    observation_names = ("corridor", "orangeroom", "cyanroom", "limegreenroom")
    action_names = HouseRules.actions

    def __init__(
        self, *, goal: Goal = "sofa", slip: float = 0.0, render_mode: str | None = None
    ) -> None:
        check_arguments(House.__init__, locals())
        self.goal = goal
        mechanics = Mechanics.explore(HouseRules(goal), observations=self.observation_names)
        super().__init__(mechanics, render_mode, slip=slip)

    def picture(self, state: int) -> Picture:
        """Draw the four rooms, and the locked door as a wall."""
        now: HouseState = self.mechanics.true_states[state]
        things = {_CELLS["cyanroom"]: "toilet", _CELLS["limegreenroom"]: "sofa"}
        if not now.key_taken:
            things[_CELLS["orangeroom"]] = "key"
        locked = (_CELLS["cyanroom"], _CELLS["corridor"])
        return Picture(
            2,
            3,
            _CELLS[now.room],
            things,
            {"key": "K", "toilet": "T", "sofa": "S"},
            solid=frozenset({(0, 0), (0, 2)}),
            walls=frozenset() if now.key_taken else frozenset({locked}),
            captions=(
                f"key {'taken' if now.key_taken else 'not taken'}, "
                f"toilet {'visited' if now.toilet_visited else 'not visited'}",
            ),
            colors=_COLORS,
            text=_floor_plan(now, things),
        )


VectorHouse = VectorWorld.of(House)


def _floor_plan(now: HouseState, things: dict[Cell, str]) -> str:
    """Draw the rooms as text, with their names written out."""
    cyan, orange, corridor, limegreen = (
        [f"{line:^15}" for line in (room, things.get(cell, ""), "(agent)" * (room == now.room))]
        for room, cell in _CELLS.items()
    )
    wall, door = "-" * 15, "open" if now.key_taken else "locked"
    lines = [
        f"{'':16}+{wall}+",
        *(f"{'':16}|{line}|" for line in cyan),
        f"+{wall}+{door:-^15}+{wall}+",
        *(f"|{'|'.join(row)}|" for row in zip(orange, corridor, limegreen, strict=True)),
        f"+{wall}+{wall}+{wall}+",
    ]
    return "\n".join(lines)
