"""Steps with their keys and rewards → the integer program for a machine of so many states.

Hyde and Santos, "Detecting Hidden Triggers: Mapping Non-Markov Reward Functions to
Markov" (2024). All rows come from arrays: one program has millions of variables.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resolvent.errors import OptionError
from resolvent.traces.vocabulary import Codes

MOST_ENTRIES = 2**31 - 1
"""What solvers can number: they count the entries of a program in 32 bits."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Steps:
    """What a machine must explain: at each step the key that it reads and the reward it pays.

    Trace m owns steps `offsets[m]:offsets[m + 1]`. Keys are numbered from 0 to `keys`.
    """

    key: Codes
    reward: Codes
    offsets: NDArray[np.int64]
    keys: int

    def __len__(self) -> int:
        return len(self.key)

    def prefixes(self, lengths: dict[int, int]) -> "Steps":
        """Return the first steps of some traces, so many of each; keys keep their numbers."""
        starts = self.offsets[list(lengths)].tolist()
        ends = (start + length for start, length in zip(starts, lengths.values(), strict=True))
        chosen = np.concatenate([np.arange(*rows) for rows in zip(starts, ends, strict=True)])
        offsets = np.cumsum([0, *lengths.values()])
        return Steps(self.key[chosen], self.reward[chosen], offsets, self.keys)


@dataclass(frozen=True, eq=False)
class Program:
    """Minimise cost · x over 0 ≤ x ≤ upper and row_lower ≤ A x ≤ row_upper, by rows.

    The variables are O[step, i, j], then I[key, i, j], then those for rewards. Only
    from `first_indicator` on do they need to be integral: once the I are, each trace
    has one path left to go, and the rest follows.
    """

    states: int
    first_indicator: int
    cost: Floats
    upper: Floats
    row_lower: Floats
    row_upper: Floats
    row_start: NDArray[np.int64]
    index: NDArray[np.int32]
    value: Floats

    @property
    def variables(self) -> int:
        """How many there are."""
        return len(self.cost)

    @property
    def constraints(self) -> int:
        """How many rows there are."""
        return len(self.row_lower)


class _Rows:
    """Gathers rows in blocks; all rows of a block have the same coefficients."""

    def __init__(self) -> None:
        self.index: list[NDArray[np.int32]] = []
        self.value: list[Floats] = []
        self.widths: list[NDArray[np.int64]] = []
        self.lower: list[Floats] = []
        self.upper: list[Floats] = []

    def add(
        self, variables: NDArray[np.int64], *, signs: Floats, lower: float, upper: float
    ) -> None:
        """Add a block: one row of variables for each row, one sign for each column."""
        rows, width = variables.shape
        self.index.append(variables.astype(np.int32).ravel())
        self.value.append(np.tile(signs, rows))
        self.widths.append(np.full(rows, width))
        self.lower.append(np.full(rows, lower))
        self.upper.append(np.full(rows, upper))


def build_program(
    steps: Steps, states: int, *, monotone: bool = False, tick: Callable[[], None] = lambda: None
) -> Program:
    """Write down what a machine of so many states must satisfy, and what it costs.

    The published program with tighter links: O ≤ I step by step instead of one
    big-M row for each I, and Σ_r I[κ, r, i, j] ≤ I[κ, i, j] instead of ≤ 1. Rewards of a
    key that always pays the same need no variables. `tick` is called between
    blocks and may raise, to stop.
    """
    square = states * states
    if 5 * len(steps) * square > MOST_ENTRIES:
        raise OptionError(
            f"a program of {len(steps):,} steps and {states} states is too large for a solver: "
            f"give fewer traces, or take mode 'conflicts'"
        )
    moves = np.arange(square).reshape(states, states)  # [i, j]
    used = len(steps) * square
    step_moves = np.arange(used).reshape(len(steps), states, states)
    key_moves = used + np.arange(steps.keys * square).reshape(steps.keys, states, states)
    paid, paid_of_step, several = _rewards_of_keys(steps)
    pair_moves = used + key_moves.size + np.arange(len(paid) * square).reshape(-1, square)

    rows = _Rows()
    rows.add(step_moves.reshape(-1, square), signs=np.ones(square), lower=1, upper=1)
    tick()
    goes_on = np.ones(len(steps), bool)
    goes_on[steps.offsets[1:] - 1] = False
    here = np.flatnonzero(goes_on)
    flow = np.concatenate([step_moves[here].swapaxes(1, 2), step_moves[here + 1]], axis=2)
    signs = np.repeat([1.0, -1.0], states)
    rows.add(flow.reshape(-1, 2 * states), signs=signs, lower=0, upper=0)
    tick()
    rows.add(key_moves.reshape(-1, states), signs=np.ones(states), lower=-np.inf, upper=1)
    for key in several.tolist():
        of_key = np.flatnonzero(paid == key)
        block = np.column_stack([key_moves[key].ravel(), pair_moves[of_key].T])
        rows.add(block, signs=np.array([-1.0, *np.ones(len(of_key))]), lower=-np.inf, upper=0)
    tick()
    allowing = np.where(
        (paid_of_step >= 0)[:, None],
        pair_moves[paid_of_step] if len(paid) else 0,
        key_moves.reshape(-1, square)[steps.key],
    )
    links = np.column_stack([step_moves.ravel(), allowing.ravel()])
    rows.add(links, signs=np.array([1.0, -1.0]), lower=-np.inf, upper=0)
    tick()

    variables = used + (steps.keys + len(paid)) * square
    upper = np.ones(variables)
    upper[step_moves[steps.offsets[:-1], 1:]] = 0
    if monotone:
        upper.reshape(-1, states, states)[:, moves // states > moves % states] = 0
    cost = np.zeros(variables)
    cost[key_moves[:, ~np.eye(states, dtype=bool)]] = 1
    widths = np.concatenate(rows.widths)
    return Program(
        states=states,
        first_indicator=used,
        cost=cost,
        upper=upper,
        row_lower=np.concatenate(rows.lower),
        row_upper=np.concatenate(rows.upper),
        row_start=np.concatenate([[0], np.cumsum(widths)]),
        index=np.concatenate(rows.index),
        value=np.concatenate(rows.value),
    )


def _rewards_of_keys(steps: Steps) -> tuple[Codes, Codes, Codes]:
    """Find the keys that pay different rewards.

    Returns the key of each (key, reward) such a key has, for each step the place of
    its pair among those or −1, and these keys.
    """
    size = int(steps.reward.max()) + 1
    pairs, place = np.unique(steps.key.astype(np.int64) * size + steps.reward, return_inverse=True)
    keys = (pairs // size).astype(np.int32)
    varies = np.bincount(keys, minlength=steps.keys)[keys] > 1
    number = np.where(varies, np.cumsum(varies) - 1, -1).astype(np.int32)
    return keys[varies], number[place], np.unique(keys[varies])


def moves_of(program: Program, values: Floats, keys: int) -> Codes:
    """Read the solution: where each state and key lead, −1 where no step needs to know."""
    indicators = values[program.first_indicator :][: keys * program.states**2]
    chosen = indicators.reshape(keys, program.states, program.states) > 0.5
    targets = np.where(chosen.any(axis=2), chosen.argmax(axis=2), -1)
    return np.ascontiguousarray(targets.T.astype(np.int32))
