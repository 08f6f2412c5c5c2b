"""`resolvent demo`: the house of the paper's Figure 1, from traces to a plan, explained in text.

Paper: Figure 1, and the example "Transition-Reward Interference".
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from rich.console import RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from resolvent._util.text import amount
from resolvent.inference.infer import infer
from resolvent.inference.options import InferenceOptions
from resolvent.inference.result import InferenceResult
from resolvent.machines import UNSEEN, Machine, Score
from resolvent.planning.plan import Plan, plan
from resolvent.rl.collect import collect
from resolvent.traces import TraceSet, label_text, symbol_text
from resolvent.viz.terminal import show, table

_EPISODES = 500
_FRESH_EPISODES = 200
_HOUSE, _INTERFERENCE = "resolvent/House-v0", "resolvent/HouseInterference-v0"


@dataclass(frozen=True)
class Demo:
    """All results of the demo; meanings are those of states."""

    picture: str
    result: InferenceResult
    traces: TraceSet
    transition_meanings: list[str]
    reward_meanings: list[str]
    fresh: TraceSet
    score: Score
    path: tuple[tuple[str, str], ...]
    planned_return: float
    random_return: float
    supplemented_states: int
    unsupplemented_states: int

    def as_dict(self) -> dict[str, Any]:
        """Return the results as JSON values."""
        return {
            **self.result.as_dict(),
            "meanings": {"transition": self.transition_meanings, "reward": self.reward_meanings},
            "check": {
                name: {"right": score.all_right, "wrong": score.all_wrong, "unseen": score.unseen}
                for name, score in self.score.items()
            },
            "plan": {
                "actions": [action for action, _ in self.path],
                "return": self.planned_return,
                "random_return": self.random_return,
            },
            "interference_rm_states": {
                "supplemented": self.supplemented_states,
                "not_supplemented": self.unsupplemented_states,
            },
        }


# --- The computation -----------------------------------------------------------------------------


def run_demo() -> Demo:
    """Collect traces in the house, infer machines, score them on fresh traces, and plan."""
    house = gym.make(_HOUSE, render_mode="ansi")
    house.reset()
    picture = str(house.render())
    traces = collect(house, episodes=_EPISODES, seed=0)
    fresh = collect(house, episodes=_FRESH_EPISODES, seed=1)
    result = infer(traces)
    pair = result.machines.as_pair()
    best = plan(result, traces)
    interference = collect(gym.make(_INTERFERENCE), episodes=_EPISODES, seed=0)
    without = infer(interference, options=InferenceOptions(supplement=False))
    return Demo(
        picture=picture,
        result=result,
        traces=traces,
        transition_meanings=_meanings(pair.transition, {(): "no key yet", ("key",): "has the key"}),
        reward_meanings=_meanings(
            pair.reward, {(): "toilet not visited", ("key", "toilet"): "toilet visited"}
        ),
        fresh=fresh,
        score=pair.score(fresh),
        path=_path(best),
        planned_return=float(best.run(house, episodes=1).returns[0]),
        random_return=float(np.array(list(traces.rewards))[traces.reward_codes].sum())
        / len(traces),
        supplemented_states=infer(interference).reward.states,
        unsupplemented_states=without.reward.states,
    )


def _path(plan: Plan) -> tuple[tuple[str, str], ...]:
    """Return the actions of the plan, each with the room it leads to."""
    model, steps = plan.model, []
    here = int(model.starts[0])
    while here >= 0:
        action = int(plan.policy[here])
        here = int(model.next_state[here, action])
        room = model.augmented_state(here)[0] if here >= 0 else "end"
        steps.append((str(model.actions[action]), str(room)))
    return tuple(steps)


def _meanings(machine: Machine, named: dict[tuple[str, ...], str]) -> list[str]:
    """Return the meaning of each state, by the events that lead to it."""
    meaning = {machine.run({event} for event in events): text for events, text in named.items()}
    return [meaning.get(state, "?") for state in range(machine.states)]


# --- The text ------------------------------------------------------------------------------------


def show_demo(demo: Demo, program: str) -> None:
    """Explain the results on standard output; `program` is the name to type for `resolvent`."""
    _show_problem(demo)
    _show_machines(demo)
    _show_check(demo)
    _show_plan(demo)
    _show_interference(demo)
    _title("Next steps")
    commands = (
        f"collect {_HOUSE} -o house.jsonl",
        "infer house.jsonl -o machines.json",
        "show machines.json",
        "report machines.json house.jsonl -o house.html",
        f"plan machines.json house.jsonl --environment {_HOUSE}",
    )
    show(*(Text(f"{program} {command}", "green") for command in commands), wrapped=False)


def _show_problem(demo: Demo) -> None:
    rooms = _counts(f"to the {room}" for room, _ in _outcomes(demo.traces, "corridor", "up"))
    rewards = _counts(f"{r:g}" for _, r in _outcomes(demo.traces, "limegreenroom", "sit"))
    _title("A house that needs memory")
    _paragraph("\n".join(demo.picture.splitlines()[:-1]))
    _paragraph(
        "The agent observes only the room it is in. Entering the orangeroom takes the key, which "
        "unlocks the cyanroom; entering the cyanroom visits the toilet. Sitting on the sofa ends "
        "the episode, with reward 1 if the toilet was visited and 0 otherwise. The observation "
        "shows neither key nor toilet."
    )
    _paragraph(
        f"In {demo.result.traces:,} episodes of random actions, going up from the corridor led "
        f"{rooms}. The reward for sitting in the limegreenroom was {rewards}. The observation "
        f"does not determine the outcome: the agent needs memory."
    )


def _show_machines(demo: Demo) -> None:
    result, pair = demo.result, demo.result.machines.as_pair()
    _title("The machines")
    _paragraph(
        f"Two machines were inferred from these {result.steps:,} steps, in "
        f"{1000 * result.seconds['total']:.0f} ms. Their state changes on events: key, sofa, "
        f"toilet. The tables show the next state for each event, and the predictions that depend "
        f"on the state; · was never observed."
    )
    _paragraph(Text("The Transition Machine predicts the next observation:", "bold cyan"))
    _paragraph(_machine_table(pair.transition, demo.transition_meanings, demo))
    _paragraph(Text("The Reward Machine predicts the reward:", "bold cyan"))
    _paragraph(_machine_table(pair.reward, demo.reward_meanings, demo))
    _paragraph(
        f"{len(pair.transition.constant_value)} other next observations and "
        f"{len(pair.reward.constant_value)} other rewards are the same in every state."
    )


def _show_check(demo: Demo) -> None:
    score = demo.score
    _title("Check on new episodes")
    _paragraph(
        f"In {len(demo.fresh):,} new episodes with {demo.fresh.steps:,} steps, the machines "
        f"predict {score.transition.all_right:,} next observations and "
        f"{score.reward.all_right:,} rewards correctly, and "
        f"{sum(part.all_wrong for part in score.values())} wrongly."
    )


def _show_plan(demo: Demo) -> None:
    _title("A plan")
    _paragraph(
        f"With this memory, an optimal policy follows from the traces alone. In the house it takes "
        f"{amount(len(demo.path), 'step')} and its return is {demo.planned_return:g}; the mean "
        f"return of random actions was {demo.random_return:.2f}."
    )
    actions = ["action", *(action for action, _ in demo.path)]
    _paragraph(table(actions, [["next room", *(room for _, room in demo.path)]]))


def _show_interference(demo: Demo) -> None:
    _title("Why the Reward Machine is inferred second")
    _paragraph(
        f"In {_INTERFERENCE} the reward is for entering the cyanroom, so it depends on the key as "
        f"well. But the state of the Transition Machine contains the key already: if the Reward "
        f"Machine reads that state, it needs {amount(demo.supplemented_states, 'state')}, "
        f"otherwise {demo.unsupplemented_states}."
    )


def _machine_table(machine: Machine, meanings: Sequence[str], demo: Demo) -> Table:
    """Return one row a state: its meaning, its transitions, and the outputs that depend on it."""
    labels = [label for label in machine.labels if label not in machine.trivial_labels]
    queries = [machine.query(number) for number in sorted(set(machine.output_query.tolist()))]

    def name(observation: Any, action: Any) -> str:
        if isinstance(observation, tuple):  # supplemented with a Transition Machine state
            room, state = observation
            return f"{room}, {action}\n({demo.transition_meanings[state]})"
        return f"{observation}, {action}"

    events = (f"on {label_text(label)}" for label in labels)
    header = ["state", "meaning", *events, *(name(*query) for query in queries)]
    rows = [
        [
            str(state),
            meanings[state],
            *(_text(machine.step(state, label)) for label in labels),
            *(_text(machine.output(state, *query)) for query in queries),
        ]
        for state in range(machine.states)
    ]
    return table(header, rows)


def _outcomes(traces: TraceSet, *query: str) -> Iterator[tuple[Any, Any]]:
    """Yield the next observation and the reward of all steps with this observation and action."""
    for trace in traces:
        queries = zip(trace.observations[:-1], trace.actions, strict=True)
        outcomes = zip(trace.observations[1:], trace.step_columns["reward"], strict=True)
        for step_query, outcome in zip(queries, outcomes, strict=True):
            if step_query == query:
                yield outcome


def _counts(outcomes: Iterable[str]) -> str:
    """Count outcomes."""
    counts = Counter(outcomes).most_common()
    return " or ".join(f"{outcome} ({amount(count, 'time')})" for outcome, count in counts)


def _text(value: Any) -> str:
    if value is UNSEEN:
        return "·"
    return f"{value:g}" if isinstance(value, float) else symbol_text(value)


def _title(text: str) -> None:
    show(Rule(Text(text, "bold"), align="left", style="dim"), "")


def _paragraph(content: RenderableType) -> None:
    show(content, "")
