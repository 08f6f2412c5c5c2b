"""Law 7, live: the wrappers have the states that replay of the same episode has.

Traces are played back as environments, so that every timing, every label and
every kind of end occurs. Where a label was never seen the wrappers stay, and
replay no longer knows: there the oracle is a plain walk that stays too.
"""

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import labels_before

import resolvent as rs
from resolvent.replay.replaying import replay_traces
from resolvent.rl.vector_env import info_of
from strategies import infer_options, world_traces

MANY = 100  # more than any world has observations or actions


class Played(gym.Env):
    """Plays traces back, one per episode; actions have no effect."""

    observation_space = spaces.Discrete(MANY)
    action_space = spaces.Discrete(MANY)

    def __init__(self, traces):
        self.traces = traces
        self.number = -1

    def reset(self, *, seed=None, options=None):
        self.number += 1
        self.trace = self.traces[self.number % len(self.traces)]
        self.t = 0
        return self.trace.observations[0], {"labels": self.trace.labels[0]}

    def step(self, action):
        self.t += 1
        last = self.t == len(self.trace)
        ends = last and self.trace.terminated, last and not self.trace.terminated
        info = {"labels": self.trace.labels[self.t]}
        return self.trace.observations[self.t], self.trace.rewards[self.t - 1], *ends, info


def walked(machine, trace, t, timing):
    """Return the state at step t, unchanged by unseen labels, and which labels were unseen."""
    state, unseen = 0, []
    for label in labels_before(trace, t, timing):
        following = machine.step(state, label)
        unseen.append(following is rs.UNSEEN)
        state = state if following is rs.UNSEEN else following
    return state, unseen


def expected(machines, trace, t):
    """Return all states and the number of unseen labels after the label of step t."""
    found = [walked(machine, trace, t, machines.timing) for machine in machines.values()]
    unseen = [any(each) for each in zip(*(one for _, one in found), strict=True)]
    if trace.terminated and t == len(trace):
        unseen = unseen[:-1]  # nothing is predicted after the end
    return *(state for state, _ in found), sum(unseen)


def told(info, machines):
    return *(info[f"{kind}_state"] for kind in machines), info["unseen"]


def levels(machines, trace, t, action):
    """Return the basis of each machine's prediction of a step."""
    *states, _ = expected(machines, trace, t)
    return {
        kind: machine.basis(
            state,
            (trace.observations[t], states[0]) if machine.supplemented else trace.observations[t],
            action,
        )
        for (kind, machine), state in zip(machines.items(), states, strict=True)
    }


@settings(deadline=None, max_examples=80)
@given(world_traces(), infer_options)
def test_the_wrapper_has_the_states_of_replay(traces, options):
    machines = rs.infer(traces, options=rs.InferenceOptions(**options)).machines
    env = rs.AugmentObservation(Played(traces), machines)
    found = []
    for trace in traces:
        _, info = env.reset()
        for _ in trace.actions:
            found.append(told(info, machines)[:-1])
            *_, info = env.step(0)
        assert info["unseen"] == 0 or not trace.terminated
    replayed = replay_traces(machines, traces, states=True).states
    assert found == list(zip(*(replayed[kind].tolist() for kind in machines), strict=True))


@settings(deadline=None, max_examples=80)
@given(world_traces(), world_traces(), infer_options)
def test_the_wrapper_stays_at_unseen_labels(traces, others, options):
    machines = rs.infer(traces, options=rs.InferenceOptions(**options)).machines
    env = rs.AugmentObservation(Played(others), machines, knowledge=True)
    for trace in others:
        _, info = env.reset()
        assert told(info, machines) == expected(machines, trace, 0)
        assert "knowledge" not in info
        for t in range(len(trace)):
            *_, info = env.step(t % 3)
            assert told(info, machines) == expected(machines, trace, t + 1)
            assert info["knowledge"] == levels(machines, trace, t, t % 3)


@settings(deadline=None, max_examples=60)
@given(
    world_traces(),
    st.lists(world_traces(), min_size=1, max_size=4),
    infer_options,
    st.sampled_from(AutoresetMode),
)
def test_the_vector_wrapper_has_the_same_states(traces, lists, options, mode):
    machines = rs.infer(traces, options=rs.InferenceOptions(**options)).machines
    envs = gym.vector.SyncVectorEnv(
        [lambda one=one: Played(one) for one in lists], autoreset_mode=mode
    )
    wrapped = rs.wrappers.VectorAugmentObservation(envs, machines, knowledge=True)
    _, infos = wrapped.reset()
    at = [(0, 0)] * len(lists)  # trace and step of each environment
    ended = np.zeros(len(lists), bool)
    for _ in range(30):
        for number, (trace, t) in enumerate(at):
            now = tuple(int(column[number]) for column in told(infos, machines))
            assert now == expected(machines, lists[number][trace % len(lists[number])], t)
        if mode is AutoresetMode.DISABLED and ended.any():
            _, reset_infos = wrapped.reset(options={"reset_mask": ended.copy()})
            assert reset_infos["_transition_state"].tolist() == ended.tolist()
            at = [(n + 1, 0) if end else (n, t) for (n, t), end in zip(at, ended, strict=True)]
        *_, terminated, truncated, infos = wrapped.step(np.zeros(len(lists), int))
        before, ended = ended, terminated | truncated
        for number, (trace, t) in enumerate(at):
            playing = lists[number][trace % len(lists[number])]
            of_step = info_of(number, infos)
            if mode is AutoresetMode.SAME_STEP and ended[number]:
                assert "knowledge" not in of_step
                of_step = info_of(number, infos["final_info"])
            took_step = t < len(playing)  # else the call was the next episode's reset
            asked = levels(machines, playing, t, 0) if took_step else None
            assert of_step.get("knowledge") == asked
            if mode is AutoresetMode.NEXT_STEP and before[number]:
                at[number] = trace + 1, 0
            elif mode is AutoresetMode.SAME_STEP and ended[number]:
                final = tuple(int(column[number]) for column in told(infos["final_info"], machines))
                assert final == expected(machines, playing, t + 1)
                assert infos["final_obs"][number]["transition_state"] == final[0]
                at[number] = trace + 1, 0
            else:
                at[number] = trace, t + 1
