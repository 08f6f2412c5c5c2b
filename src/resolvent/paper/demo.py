"""The demo's results → a story that a newcomer can read.

Paper: Figure 1, and the example "Transition-Reward Interference".
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rich.console import RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from resolvent._util.text import amount
from resolvent.inference.result import InferenceResult
from resolvent.machines import UNSEEN, Machine, Score
from resolvent.traces import TraceSet, label_text, symbol_text
from resolvent.viz.terminal import show, table


class Moment(NamedTuple):
    """One step of a trace: the memory before it, and (next observation, reward) twice."""

    episode: int
    step: int
    observation: str
    action: str
    transition_state: int
    reward_state: int
    predicted: tuple[Any, Any]
    happened: tuple[Any, Any]


@dataclass(frozen=True)
class HouseStory:
    """All results of the demo; meanings are by state."""

    picture: str
    result: InferenceResult
    transition_meanings: list[str]
    reward_meanings: list[str]
    ups: tuple[Moment, ...]
    sits: tuple[Moment, ...]
    fresh: TraceSet
    score: Score
    fresh_ups: tuple[Moment, ...]
    fresh_sits: tuple[Moment, ...]
    way: tuple[tuple[str, str], ...]
    planned_return: float
    random_return: float
    supplemented_states: int
    unsupplemented_states: int


def tell(story: HouseStory, program: str) -> None:
    """Print the story on standard output; `program` is the name to type for `resolvent`."""
    _tell_problem(story)
    _tell_machines(story)
    _tell_check(story)
    _tell_plan(story)
    _tell_next(story, program)


def _tell_problem(story: HouseStory) -> None:
    _title("A house that needs a memory")
    _say("\n".join(story.picture.splitlines()[:-1]))
    _say(
        "The agent sees only the room it is in. Being in the orangeroom takes the key, which "
        "unlocks the cyanroom; being there visits the toilet. Sitting on the sofa ends the "
        "episode, and pays 1 if the toilet was visited. None of this shows in what it sees.",
    )
    rooms = _tally(f"to the {after}" for after, _ in _happened(story.ups))
    paid = _tally(f"{reward:g}" for _, reward in _happened(story.sits))
    _say(
        f"So in {story.result.traces:,} episodes of random actions, going up from the corridor "
        f"led {rooms}. Sitting in the limegreenroom paid {paid}. What the agent sees does not "
        f"tell which: it must remember.",
    )


def _tell_machines(story: HouseStory) -> None:
    result, pair = story.result, story.result.machines
    _title("The memory it needs")
    _say(
        f"Inferred from these {result.steps:,} steps in {1000 * result.seconds['total']:.0f} ms: "
        f"two machines that change state on what happens (key, sofa, toilet). The tables show to "
        f"which state; · was never seen.",
    )
    _say(Text("Transition Machine: what will the agent see next?", "bold cyan"))
    _say(_machine_table(pair.transition, story.transition_meanings, "leads to", story))
    _say(Text("Reward Machine: what will it be paid?", "bold cyan"))
    _say(_machine_table(pair.reward, story.reward_meanings, "pays", story))
    constant = len(pair.transition.constant_value), len(pair.reward.constant_value)
    _say(
        f"Only these answers need memory: {constant[0]} other next observations and "
        f"{constant[1]} other rewards are the same in every state.",
    )


def _tell_check(story: HouseStory) -> None:
    score = story.score
    _title("Does it hold?")
    _say(
        f"On {len(story.fresh):,} new episodes, {story.fresh.steps:,} steps, the machines predict "
        f"{score.transition.all_right:,} next observations and {score.reward.all_right:,} rewards "
        f"right and {sum(part.all_wrong for part in score.values())} wrong. Here the same room and "
        f"action end differently, and memory tells which:",
    )
    header = ["episode", "step", "sees, does", "remembers", "predicted", "happened"]
    rows = []
    for moment in _before_and_after(story.fresh_ups):
        memory = story.transition_meanings[moment.transition_state]
        rooms = (_answer(room) for room, _ in (moment.predicted, moment.happened))
        rows.append(_row(moment, memory, *rooms))
    for moment in _first_in_each_state(story.fresh_sits):
        memory = story.reward_meanings[moment.reward_state]
        rewards = (f"reward {_answer(paid)}" for _, paid in (moment.predicted, moment.happened))
        rows.append(_row(moment, memory, *rewards))
    _say(table(header, rows, right=(0, 1)))


def _tell_plan(story: HouseStory) -> None:
    _title("Acting on it")
    _say(
        f"With this memory, the best way to act follows from the traces alone. Carried out in the "
        f"house it takes {len(story.way)} steps and pays {story.planned_return:g}; random actions "
        f"had got {story.random_return:.2f} on average.",
    )
    _say(
        table(
            ["do", *(action for action, _ in story.way)], [["get to", *(r for _, r in story.way)]]
        )
    )


def _tell_next(story: HouseStory, program: str) -> None:
    _title("Why the Reward Machine comes second")
    _say(
        f"In resolvent/HouseInterference-v0 it is entering the cyanroom that pays, so the reward "
        f"seems to need the key as well. But the Transition Machine remembers the key already: "
        f"told its state, the Reward Machine needs {amount(story.supplemented_states, 'state')}; "
        f"not told, {amount(story.unsupplemented_states, 'state')}.",
    )
    _title("Your turn")
    commands = (
        "collect resolvent/House-v0 -o house.jsonl",
        "infer house.jsonl -o machines.json",
        "show machines.json",
        "report machines.json house.jsonl -o house.html",
        "plan machines.json house.jsonl --environment resolvent/House-v0",
    )
    show(*(Text(f"{program} {command}", "green") for command in commands), wrapped=False)


def _machine_table(
    machine: Machine, meanings: Sequence[str], verb: str, story: HouseStory
) -> Table:
    """Return one row a state: its meaning, its transitions, and the answers that depend on it."""
    labels = [label for label in machine.labels if label not in machine.trivial_labels]
    questions = [
        machine.question(number) for number in sorted(set(machine.output_question.tolist()))
    ]

    def name(observation: Any, action: Any) -> str:
        if isinstance(observation, tuple):  # supplemented with a Transition Machine state
            room, state = observation
            return f"{room}, {action}\n({story.transition_meanings[state]}) {verb}"
        return f"{observation}, {action}\n{verb}"

    events = (f"on {label_text(label)}" for label in labels)
    header = ["state", "meaning", *events, *(name(*question) for question in questions)]
    rows = [
        [
            str(state),
            meanings[state],
            *(_answer(machine.step(state, label)) for label in labels),
            *(_answer(machine.output(state, *question)) for question in questions),
        ]
        for state in range(machine.states)
    ]
    return table(header, rows)


def _row(moment: Moment, memory: str, predicted: str, happened: str) -> list[str | Text]:
    style = "green" if predicted == happened else "red"
    return [
        str(moment.episode),
        str(moment.step),
        f"{moment.observation}, {moment.action}",
        memory,
        Text(predicted, style),
        Text(happened, style),
    ]


def _before_and_after(moments: Sequence[Moment]) -> tuple[Moment, ...]:
    """Find an episode that has the moment in two Transition Machine states."""
    for first in moments:
        for later in moments:
            if (
                later.episode == first.episode
                and later.step > first.step
                and later.transition_state != first.transition_state
            ):
                return first, later
    return ()


def _first_in_each_state(moments: Sequence[Moment]) -> list[Moment]:
    """Find the first moment in each Reward Machine state."""
    first_moments: dict[int, Moment] = {}
    for moment in moments:
        first_moments.setdefault(moment.reward_state, moment)
    return [first_moments[state] for state in sorted(first_moments)]


def _happened(moments: Sequence[Moment]) -> Iterator[tuple[Any, Any]]:
    return (moment.happened for moment in moments)


def _tally(outcomes: Iterator[str]) -> str:
    """Count outcomes.

    >>> _tally(iter(["1", "0", "0", "1", "0"]))
    '0 (3 times) or 1 (2 times)'
    """
    return " or ".join(
        f"{what} ({times:,} times)" for what, times in Counter(outcomes).most_common()
    )


def _answer(value: Any) -> str:
    if value is UNSEEN:
        return "·"
    return f"{value:g}" if isinstance(value, float) else symbol_text(value)


def _title(text: str) -> None:
    show(Rule(Text(text, "bold"), align="left", style="dim"), "")


def _say(what: RenderableType) -> None:
    show(what, "")
