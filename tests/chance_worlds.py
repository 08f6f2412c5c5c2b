"""Small worlds with chance: their true chances, traces of them, and what is best, by sweeping.

Nothing here calls the planner.
"""

import gymnasium as gym
import numpy as np
from gymnasium import spaces

import resolvent as rs
from resolvent.traces import Trace, TraceSet, Vocabulary


class Lottery:
    """A world in full view with known chances, drawn from a seed.

    `chances[s, a, t]` lead to t, of which the last is the end; `pay[s, a, t]` is paid on the way.
    """

    def __init__(self, seed, states=4, actions=2, low=0.0, sure=False):
        random = np.random.default_rng(seed)
        self.chances = random.dirichlet(np.full(states + 1, 0.4), (states, actions))
        if sure:
            best = self.chances.argmax(axis=2, keepdims=True)
            self.chances = (np.arange(states + 1) == best).astype(float)
        self.pay = random.choice([low, 0.0, 1.0], (states, actions, states + 1), p=[0.2, 0.6, 0.2])
        self.states, self.actions = states, actions

    def values(self, gamma, policy=None):
        """What the best policy, or this one, is worth in each state."""
        value = np.zeros(self.states + 1)
        for _ in range(20_000):
            worth = (self.chances * (self.pay + gamma * value)).sum(axis=2)
            new = worth.max(axis=1) if policy is None else worth[range(self.states), policy]
            moved = np.abs(new - value[:-1]).max()
            value[:-1] = new
            if moved < 1e-14:
                return value[:-1]
        raise AssertionError("the sweeps do not settle")

    def traces(self, steps, seed=0, longest=30):
        """Walk at random from a random state, with the state's number in full view."""
        random = np.random.default_rng(seed)
        traces, taken = [], 0
        while taken < steps:
            seen, done, paid = [int(random.integers(self.states))], [], []
            while len(done) < longest and seen[-1] < self.states:
                a = int(random.integers(self.actions))
                t = int(random.choice(self.states + 1, p=self.chances[seen[-1], a]))
                paid.append(float(self.pay[seen[-1], a, t]))
                done.append(f"a{a}")
                seen.append(t)
            over = seen[-1] == self.states
            traces.append(Trace(seen, [None] * len(seen), done, paid, terminated=over))
            taken += len(done)
        return TraceSet(traces)

    def policy_of(self, plan):
        """What a plan does in each state, as numbers of actions; 0 where it has nothing to say."""
        chosen = np.zeros(self.states, int)
        for z in range(len(plan.model)):
            action = plan.model.actions[int(plan.policy[z])]
            chosen[plan.model.augmented_state(z)[0]] = int(action[1:])
        return chosen


class Lock(gym.Env):
    """A door whose lock one cannot see, and which clicks when it turns.

    "turn" turns the lock in 8 of 10 cases, and then it clicks. "push" gets out through an open
    door in 9 of 10 cases, for 1; from a closed one it ends in the pit in half of the cases, for
    −1. A door is closed at first.
    """

    action_names = ("turn", "push", "wait")

    def __init__(self):
        self.observation_space, self.action_space = spaces.Discrete(3), spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.open = False
        return 0, {"labels": set()}

    def step(self, action):
        chance, labels = self.np_random.random(), set()
        if action == 0 and chance < 0.8:
            self.open = not self.open
            labels = {"click"}
        if action == 1 and self.open and chance < 0.9:
            return 1, 1.0, True, False, {"labels": set()}
        if action == 1 and not self.open and chance < 0.5:
            return 2, -1.0, True, False, {"labels": set()}
        return 0, 0.0, False, False, {"labels": labels}

    @staticmethod
    def best(gamma):
        """Turn until it clicks, then push until one is out."""
        outside = 0.9 / (1 - 0.1 * gamma)
        return gamma * 0.8 * outside / (1 - 0.2 * gamma)


def learned(traces, **options):
    return rs.infer(traces, options=rs.InferenceOptions(noise="auto", **options))


def lake_values(env, gamma, policy=None):
    """What the best policy of a frozen lake, or this one, is worth in each state."""
    lake = env.unwrapped.P
    value = np.zeros(len(lake))
    for _ in range(20_000):
        worth = np.array(
            [
                [
                    sum(p * (r + gamma * value[t] * (not over)) for p, t, r, over in step)
                    for step in actions.values()
                ]
                for actions in lake.values()
            ]
        )
        new = worth.max(axis=1) if policy is None else worth[range(len(lake)), policy]
        if np.abs(new - value).max() < 1e-13:
            return new
        value = new
    raise AssertionError("the sweeps do not settle")


def lake_traces(env, episodes, seed):
    """Random episodes of a frozen lake, all walked in step, by its own table of chances."""
    lake = env.unwrapped.P
    step = {(s, a): lake[s][a] for s in lake for a in lake[s]}
    draws = max(map(len, step.values()))
    shape = len(lake), len(lake[0]), draws
    bounds, target, paid, over = (np.zeros(shape) for _ in range(4))
    for (s, a), outcomes in step.items():
        for k in range(draws):
            _, t, r, end = outcomes[min(k, len(outcomes) - 1)]
            bounds[s, a, k] = sum(one[0] for one in outcomes[: k + 1])
            target[s, a, k], paid[s, a, k], over[s, a, k] = t, r, end
    random = np.random.default_rng(seed)
    walking, here = np.arange(episodes), np.zeros(episodes, int)
    rows = []
    while len(walking):
        action = random.integers(shape[1], size=len(walking))
        drawn = random.random(len(walking))[:, None]
        k = np.minimum((drawn > bounds[here, action] - 1e-12).sum(axis=1), draws - 1)
        at = here, action, k
        rows.append(np.stack([walking, here, action, target[at], paid[at]]))
        goes_on = over[at] == 0
        walking, here = walking[goes_on], target[at][goes_on].astype(int)
    columns = np.concatenate(rows, axis=1)
    order = np.argsort(columns[0], kind="stable")
    episode, seen, done, led, pay = columns[:, order].astype(int)
    offsets = np.append(0, np.cumsum(np.bincount(episode)))
    all_seen = np.zeros(len(seen) + episodes, np.int32)
    all_seen[np.arange(len(seen)) + episode] = seen
    all_seen[offsets[1:] + np.arange(episodes)] = led[offsets[1:] - 1]
    return TraceSet.from_columns(
        (Vocabulary(range(len(lake))), all_seen),
        (Vocabulary([frozenset()]), np.zeros(len(all_seen), np.int32)),
        (Vocabulary(range(shape[1])), done.astype(np.int32)),
        (Vocabulary([0.0, 1.0]), pay.astype(np.int32)),
        offsets=offsets,
        terminated=np.ones(episodes, bool),
        truncated=np.zeros(episodes, bool),
    )
