"""Stochastic environments of other projects: docs/foreign-noise.md.

`--short` takes less of everything and prints the page.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from measuring import Measured, write_page
from optima import best_of_tables, best_of_taxi
from rows import Row

RUNS = 1000
PAGE = Path(__file__).parents[2] / "docs" / "foreign-noise.md"

_NOISY = """\
traces = rs.collect(env, episodes=episodes, seed=seed, labels="observation")
result = rs.infer(traces, labels="observation")
"""
_REWARD = _NOISY.replace("infer(traces, ", 'infer(traces, outputs=["reward"], ')
_LABELLED = """\
traces = rs.collect(env, episodes=episodes, seed=seed)
result = rs.infer(traces)
"""
_SIGNPOST = """\
from hidden import CELLS, Signpost

hide = lambda state: state % CELLS
env = gym.wrappers.TransformObservation(Signpost(), hide, gym.spaces.Discrete(CELLS))
"""
_ROWS_ALONE = """\
env = gym.make("FrozenLake-v1")
env = gym.wrappers.TransformObservation(env, lambda cell: cell // 4, gym.spaces.Discrete(4))
"""
_TAXI = """\
env = gym.make("Taxi-v4")
hide = lambda state: state // 20 * 4 + state % 4
env = gym.wrappers.TransformObservation(env, hide, gym.spaces.Discrete(100))
"""
_TAXI_EVENTS = f"from hidden import TaxiEvents\n\n{_TAXI}env = TaxiEvents(env)\n{_LABELLED}"
_MEMORY = """\
import minigrid

env = gym.make("MiniGrid-MemoryS7-v0")
env = gym.wrappers.TransformReward(env, lambda reward: float(reward > 0))
env = gym.wrappers.TransformAction(env, int, gym.spaces.Discrete(3))
"""

ROWS = (
    Row(
        "FrozenLake",
        "Gymnasium",
        f'env = gym.make("FrozenLake-v1")\n{_NOISY}',
        3000,
        best_of_tables,
        "plan",
        short=300,
    ),
    Row("FrozenLake, its rows alone shown", "Gymnasium", _ROWS_ALONE + _NOISY, 3000, short=300),
    Row(
        "the same, events to be found",
        "Gymnasium",
        _ROWS_ALONE + _NOISY.replace("observation", "auto"),
        3000,
        short=300,
    ),
    Row(
        "CliffWalking, slippery",
        "Gymnasium",
        f'env = gym.make("CliffWalking-v1", is_slippery=True, max_episode_steps=200)\n{_NOISY}',
        100,
        best_of_tables,
        "plan",
        short=10,
    ),
    Row(
        "a slippery field, its goal hidden",
        "own",
        _SIGNPOST + _LABELLED,
        500,
        best_of_tables,
        "plan",
    ),
    Row("Taxi, the passenger hidden", "Gymnasium", _TAXI + _NOISY, 200, short=10),
    Row(
        "the same, pickups labelled",
        "Gymnasium",
        _TAXI_EVENTS,
        3000,
        best_of_taxi,
        "plan",
        short=10,
    ),
    Row("Blackjack", "Gymnasium", f'env = gym.make("Blackjack-v1")\n{_NOISY}', 5000, short=500),
    Row("Memory, all layouts, walking alone", "MiniGrid", _MEMORY + _NOISY, 200, short=10),
    Row(
        "HigherLower, easy",
        "POPGym",
        "from popgym.envs.higher_lower import HigherLowerEasy\n\nenv = HigherLowerEasy()\n"
        + _REWARD,
        500,
        short=50,
    ),
    Row(
        "MineSweeper, easy",
        "POPGym",
        "from popgym.envs.minesweeper import MineSweeperEasy\n\nenv = MineSweeperEasy()\n"
        + _REWARD.replace("observation", "action+observation"),
        500,
        short=50,
    ),
)

_HEAD = """\
# Stochastic environments of other projects

The machines of environments in which the same step has varying outcomes, inferred by the lines of
code [below](#the-code). All but one are unchanged except as their row states. As in
[the table of deterministic environments](foreign.md), figures are those of 100 fresh episodes, of
several machines the worst. A *correct* prediction is the most likely output. *Return* is that of
`rs.plan` in 1,000 episodes, next to that of the best policy that sees the whole state (for the taxi:
that knows all that can be inferred from the past). *Seconds* are CPU seconds of the inference. The
result's own statements on noise are [below](#what-they-say); *warnings* are those of `rs.diagnose`
and `rs.infer`.

In short: FrozenLake, CliffWalking and Blackjack need no memory, and the result states it. The goal
shown by a sign is remembered, and the plan is as good as the best. For the taxi with a hidden
passenger, labels made of observations do not help, and the warnings say that something is drawn at
the start of an episode; with labels for the outcome of pickups, most of the 16 states of memory are
found, and some plans go in circles until the episode is truncated. In Memory, the layout is drawn at
the start: a plan from these 200 episodes finds the right object in 67 of 100 episodes, which is
better than guessing but does not solve it.

<!-- Written by benchmarks/foreign/noisy.py: run `make benchmark NAME=foreign_noise` instead. -->
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all rows, and write the page."""
    write_page(PAGE, page, ROWS, arguments, RUNS)
    return 0


def page(measured: Sequence[Measured]) -> str:
    """Return the page: the table, what results say, and the code of each row."""
    lines = [
        _HEAD,
        "| from | task | steps | states | correct | wrong | unseen | return, of the best "
        "| seconds | warnings |",
        "|---|---|--:|---|--:|--:|--:|---|--:|---|",
        *map(_line, measured),
        "\n## What they say\n",
    ]
    for row in measured:
        lines.append(f"**{row.row.name}**\n")
        lines.extend(f"- {words}" for words in row.words or ("nothing",))
        lines.append("")
    lines.append("## The code\n")
    for row in measured:
        title = f"{row.row.name} ({row.row.episodes:,} episodes)"
        lines.append(f"{title}:\n\n```py\n{row.row.code.strip()}\n```\n")
    return "\n".join(lines)


def _line(row: Measured) -> str:
    right, assumed, wrong, unseen = row.shares or (0.0, 0.0, 0.0, 0.0)
    states = ", ".join(f"{kind} {number}" for kind, number in (row.states or {}).items())
    paid = "–" if row.paid is None else f"{row.paid:.3g} of {row.optimum:.3g}"
    told = ", ".join(f"`{kind}`" for kind in dict.fromkeys(row.findings + row.warned)) or "–"
    shares = (f"{share:.1%}" for share in (right + assumed, wrong, unseen))
    seconds = f"{row.seconds:.1f}"
    cells = (row.row.origin, row.row.name, f"{row.steps:,}", states, *shares, paid, seconds, told)
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
