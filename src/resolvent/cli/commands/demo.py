"""`resolvent demo`: the house of the paper's Figure 1, from traces to acting well.

Here it is played, inferred, checked and planned in; `display/house_story.py` tells it.
"""

import gymnasium as gym

from resolvent.cli.options import Json
from resolvent.cli.output import print_json, program_name
from resolvent.inference.infer import infer
from resolvent.inference.options import InferenceOptions
from resolvent.machines import Machine, MachinePair, MachineScore
from resolvent.paper.demo import HouseStory, Moment, tell
from resolvent.planning.plan import Plan, plan
from resolvent.replay import states_at_steps
from resolvent.rl.collect import collect
from resolvent.traces import TraceSet

_EPISODES = 500
_FRESH_EPISODES = 200


def demo(json: Json = False) -> None:
    """Show every step in a small house: traces, two machines, a check and a plan."""
    story = play()
    if not json:
        tell(story, program_name())
        return
    print_json(
        {
            **story.result.as_dict(),
            "meanings": {
                "transition": story.transition_meanings,
                "reward": story.reward_meanings,
            },
            "check": {kind: _figures(machine_score) for kind, machine_score in story.score.items()},
            "plan": {
                "actions": [action for action, _ in story.way],
                "return": story.planned_return,
                "random_return": story.random_return,
            },
            "interference_rm_states": {
                "supplemented": story.supplemented_states,
                "not_supplemented": story.unsupplemented_states,
            },
        }
    )


def play() -> HouseStory:
    """Collect in the house, infer, and check on traces of another seed."""
    house = gym.make("resolvent/House-v0", render_mode="ansi")
    house.reset()
    picture = str(house.render())
    traces = collect(house, episodes=_EPISODES, seed=0)
    fresh = collect(house, episodes=_FRESH_EPISODES, seed=1)
    result = infer(traces)
    pair = result.machines.as_pair()
    best = plan(result, traces)

    other_house = gym.make("resolvent/HouseInterference-v0")
    other_traces = collect(other_house, episodes=_EPISODES, seed=0)
    return HouseStory(
        picture=picture,
        result=result,
        transition_meanings=_meanings(pair.transition, {(): "no key yet", ("key",): "has the key"}),
        reward_meanings=_meanings(
            pair.reward, {(): "toilet not visited", ("key", "toilet"): "toilet visited"}
        ),
        ups=_moments(pair, traces, "corridor", "up"),
        sits=_moments(pair, traces, "limegreenroom", "sit"),
        fresh=fresh,
        score=pair.score(fresh),
        fresh_ups=_moments(pair, fresh, "corridor", "up"),
        fresh_sits=_moments(pair, fresh, "limegreenroom", "sit"),
        way=_path(best),
        planned_return=float(best.run(house, episodes=1).returns[0]),
        random_return=_mean_return(traces),
        supplemented_states=infer(other_traces).reward.states,
        unsupplemented_states=infer(
            other_traces, options=InferenceOptions(supplement=False)
        ).reward.states,
    )


def _mean_return(traces: TraceSet) -> float:
    paid = sum(traces.rewards[code] for code in traces.reward_codes.tolist())
    return float(paid) / len(traces)


def _path(plan: Plan) -> tuple[tuple[str, str], ...]:
    """Return the actions of the plan, each with the room it leads to."""
    model, steps = plan.model, []
    here = int(model.starts[0])
    while here >= 0:
        action = int(plan.policy[here])
        here = int(model.following[here, action])
        room = model.named(here)[0] if here >= 0 else "end"
        steps.append((str(model.actions[action]), str(room)))
    return tuple(steps)


def _meanings(machine: Machine, named: dict[tuple[str, ...], str]) -> list[str]:
    """Return the meaning of each state, by the events that lead to it."""
    meaning = {machine.run({event} for event in events): text for events, text in named.items()}
    return [meaning.get(state, "?") for state in range(machine.states)]


def _moments(
    pair: MachinePair, traces: TraceSet, observation: str, action: str
) -> tuple[Moment, ...]:
    """Return all steps with this observation and action: the prediction and the outcome."""
    states = states_at_steps(pair, traces)
    transition_states, reward_states = states["transition"], states["reward"]
    moments = []
    for number, trace in enumerate(traces):
        for step, question in enumerate(zip(trace.observations, trace.actions, strict=False)):
            if question != (observation, action):
                continue
            row = traces.offsets[number] + step
            paid = traces.rewards[int(traces.reward_codes[row])]
            q, u = int(transition_states[row]), int(reward_states[row])
            moments.append(
                Moment(
                    number,
                    step,
                    observation,
                    action,
                    q,
                    u,
                    predicted=pair.predict(observation, action, q, u),
                    happened=(trace.observations[step + 1], paid),
                )
            )
    return tuple(moments)


def _figures(score: MachineScore) -> dict[str, int]:
    return {"right": score.all_right, "wrong": score.all_wrong, "unseen": score.unseen}
