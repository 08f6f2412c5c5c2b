"""Classic POMDPs: what `solve` states, what its plan is paid, and the optimum by value iteration.

Each world but one is a table; its optimum comes from point-based value iteration over the beliefs
that are reachable, and the exact value of a plan from the chain of all that it can run into. Rows:
world, seed, optimum, stated value, what the plan is paid, and the ratio of that to the optimum.

    python benchmarks/pomdps.py [--seeds 3] [--budget 20000] [--episodes 400] [WORLD ...]
"""

import argparse
import time
from dataclasses import dataclass

import gymnasium as gym
import numpy as np

import resolvent as rs

HORIZON = 200  # length of evaluated episodes that do not end


@dataclass
class Pomdp:
    """A POMDP as tables; `ends` are pairs of state and next state after which an episode is over."""

    start: np.ndarray  # [state]
    first: np.ndarray  # [state, observation] at a reset
    transition: np.ndarray  # [action, state, next state]
    emission: np.ndarray  # [action, next state, observation]
    reward: np.ndarray  # [action, state, next state]
    ends: np.ndarray  # [action, state, next state]
    horizon: int | None = None
    gamma: float = 0.95


class PomdpEnv(gym.Env):
    """The environment of a table."""

    def __init__(self, model):
        self.model = model
        self.observation_space = gym.spaces.Discrete(model.first.shape[1])
        self.action_space = gym.spaces.Discrete(len(model.transition))

    def reset(self, *, seed=None, options=None):
        """Draw a hidden state."""
        super().reset(seed=seed)
        self.steps = 0
        self.state = self._draw(self.model.start)
        return self._draw(self.model.first[self.state]), {}

    def step(self, action):
        """Draw the next state, and an observation of it."""
        model, before = self.model, self.state
        self.state = self._draw(model.transition[action, before])
        reward = float(model.reward[action, before, self.state])
        is_over = bool(model.ends[action, before, self.state])
        self.steps += 1
        is_cut = bool(model.horizon and self.steps >= model.horizon and not is_over)
        return self._draw(model.emission[action, self.state]), reward, is_over, is_cut, {}

    def _draw(self, probabilities):
        total = np.cumsum(probabilities)
        return int(np.searchsorted(total, self.np_random.random() * total[-1], side="right"))


def optimum(model, steps=300, most=600):
    """Return the optimal value by point-based value iteration on reachable beliefs."""
    n_actions, n_states = model.transition.shape[:2]
    n_observations = model.emission.shape[2]
    going_on = model.transition * ~model.ends
    reward = (model.transition * model.reward).sum(2)
    starts = [(p, b / p) for b in (model.start * model.first.T) if (p := b.sum()) > 1e-12]
    points = {tuple(np.round(b, 3)): b for _, b in starts}
    queue = list(points.values())
    for belief in queue:
        if len(queue) >= most:
            break
        for action in range(n_actions):
            after = (belief @ going_on[action])[:, None] * model.emission[action]
            for column in after.T:
                if column.sum() > 1e-6:
                    b = column / column.sum()
                    if (key := tuple(np.round(b, 3))) not in points:
                        points[key] = b
                        queue.append(b)
    beliefs = np.array(queue)
    is_finite = model.horizon is not None
    floor = 0.0 if is_finite else min(0.0, reward.min() / (1 - model.gamma))
    alphas, last = np.full((1, n_states), floor), -np.inf
    for number in range(model.horizon or steps):
        best_value, best = np.full(len(beliefs), -np.inf), np.zeros((len(beliefs), n_states))
        for action in range(n_actions):
            total = np.tile(reward[action], (len(beliefs), 1))
            for observation in range(n_observations):
                ahead = going_on[action] * model.emission[action, :, observation]
                projected = alphas @ ahead.T
                total += model.gamma * projected[(beliefs @ projected.T).argmax(1)]
            value = (beliefs * total).sum(1)
            better = value > best_value
            best_value[better], best[better] = value[better], total[better]
        alphas = np.unique(best.round(10), axis=0)
        value = sum(p * (alphas @ b).max() for p, b in starts)
        if not is_finite and number > 20 and abs(value - last) < 1e-7:
            break
        last = value
    return float(value)


def value_of(plan, model, sweeps=500):
    """Return the exact value of a plan in a table: that of the chain of all it can run into.

    A member of the chain is a hidden state, an observation, and the states of the machines. Where
    the plan does not know what to do it acts at random, as in `Plan.run`.
    """
    labels = plan.machines.preprocessor.labeling
    machines = [machine for name, machine in plan.machines.items() if name in plan.model.states]

    def follow(states, label):
        after = tuple(machine.step(q, label) for machine, q in zip(machines, states, strict=True))
        return tuple(
            q if next_q is rs.UNSEEN else next_q for q, next_q in zip(states, after, strict=True)
        )

    def branches(hidden, observation, states):
        number = plan.model.find(observation, *states)
        actions = range(len(model.transition))
        if number is not None:
            actions = [plan.model.actions[int(plan.policy[number])]]
        for action in actions:
            for after in np.flatnonzero(model.transition[action, hidden]).tolist():
                chance = model.transition[action, hidden, after] / len(actions)
                yield None, chance * model.reward[action, hidden, after]
                if model.ends[action, hidden, after]:
                    continue
                for seen in np.flatnonzero(model.emission[action, after]).tolist():
                    target = after, seen, follow(states, labels.after_step(action, seen))
                    yield target, chance * model.emission[action, after, seen]

    index, starts = {}, []
    for hidden in np.flatnonzero(model.start).tolist():
        for seen in np.flatnonzero(model.first[hidden]).tolist():
            states = (0,) * len(machines)
            if plan.machines.timing.reads_at_reset:
                states = follow(states, labels.at_reset(seen))
            member = index.setdefault((hidden, seen, states), len(index))
            starts.append((member, model.start[hidden] * model.first[hidden, seen]))
    queue, rows, columns, chances, rewards = list(index), [], [], [], []
    for number, member in enumerate(queue):
        rewards.append(0.0)
        for target, weight in branches(*member):
            if target is None:
                rewards[-1] += weight
                continue
            if target not in index:
                index[target] = len(index)
                queue.append(target)
            rows.append(number)
            columns.append(index[target])
            chances.append(weight)
    value, reward = np.zeros(len(queue)), np.array(rewards)
    for _ in range(model.horizon or sweeps):
        value = reward + model.gamma * np.bincount(rows, chances * value[columns], len(queue))
    return float(sum(share * value[member] for member, share in starts))


# --- Worlds --------------------------------------------------------------------------------------


def tiger(hearing=0.85, right=10.0, wrong=-100.0):
    """Listen for a tiger behind one of two doors (Kaelbling, Littman and Cassandra 1998)."""
    transition = np.stack([np.eye(2), np.full((2, 2), 0.5), np.full((2, 2), 0.5)])
    emission = np.zeros((3, 2, 3))
    emission[1:, :, 0] = 1
    emission[0] = [[0, hearing, 1 - hearing], [0, 1 - hearing, hearing]]
    reward = np.full((3, 2, 2), -1.0)
    reward[1] = [[wrong] * 2, [right] * 2]
    reward[2] = [[right] * 2, [wrong] * 2]
    first = np.tile([1.0, 0, 0], (2, 1))
    return Pomdp(np.full(2, 0.5), first, transition, emission, reward, np.zeros((3, 2, 2), bool))


def cheese():
    """Find the cheese from a random cell of McCallum's maze of 11 cells."""
    cells = [(0, x) for x in range(5)] + [(y, x) for y in (1, 2) for x in (0, 2, 4)]
    return _maze(cells, goal=(2, 2))


def _maze(cells, goal, noise=0.0, blur=0.0):
    """Return a maze that shows the walls around; the goal ends an episode."""
    index = {cell: number for number, cell in enumerate(cells)}
    moves, n = [(-1, 0), (1, 0), (0, -1), (0, 1)], len(cells)
    walls = [tuple((y + dy, x + dx) in index for dy, dx in moves) for y, x in cells]
    kinds = sorted(set(walls))
    seen = np.array([kinds.index(wall) for wall in walls])
    target = index[goal]
    seen[target] = len(kinds)
    transition = np.zeros((4, n, n))
    for here, (y, x) in enumerate(cells):
        for action, _ in enumerate(moves):
            for other, (dy, dx) in enumerate(moves):
                slips = noise / 2 if {action // 2, other // 2} == {0, 1} else 0.0
                share = 1 - noise if other == action else slips
                transition[action, here, index.get((y + dy, x + dx), here)] += share
    emission = np.full((4, n, len(kinds) + 1), blur / len(kinds))
    emission[:, :, -1] = 0
    emission[:, np.arange(n), seen] += 1 - blur
    emission[:, target] = np.eye(len(kinds) + 1)[-1]
    start = (np.arange(n) != target) / (n - 1)
    reward, ends = np.zeros((4, n, n)), np.zeros((4, n, n), bool)
    reward[:, :, target], ends[:, :, target] = 1, True
    return Pomdp(start, emission[0], transition, emission, reward, ends)


def load_unload(length=5):
    """Load at one end of a corridor and unload at the other, without seeing the load."""
    n = 2 * length
    transition, reward = np.zeros((2, n, n)), np.zeros((2, n, n))
    for here in range(length):
        for loaded in (0, 1):
            for action, move in enumerate((-1, 1)):
                there = min(max(here + move, 0), length - 1)
                unloads = there == length - 1 and loaded == 1
                after = 2 * there + int((loaded or there == 0) and not unloads)
                transition[action, 2 * here + loaded, after] = 1
                reward[action, 2 * here + loaded, after] = unloads
    seen = [0 if s < 2 else 1 if s >= n - 2 else 2 for s in range(n)]
    emission = np.tile(np.eye(3)[seen], (2, 1, 1))
    ends = np.zeros((2, n, n), bool)
    return Pomdp(np.eye(n)[1], emission[0], transition, emission, reward, ends, horizon=40)


def shuttle():
    """Dock backwards at the station visited least recently (Chrisman 1992)."""
    docked_new, front_old, to_old, back_new, back_old, to_new, front_new, docked_old = range(8)
    n = 8
    turn, forward, backup = np.zeros((3, n, n))
    for here, there in (
        (docked_new, front_old), (docked_old, front_old), (front_old, back_old), (to_old, to_new),
        (back_new, front_new), (back_old, front_old), (to_new, to_old), (front_new, back_new),
    ):  # fmt: skip
        turn[here, there] = 1
    for here, there in (
        (docked_new, back_old), (docked_old, back_old), (front_old, front_old), (to_old, front_old),
        (back_new, to_old), (back_old, to_new), (to_new, front_new), (front_new, front_new),
    ):  # fmt: skip
        forward[here, there] = 1
    backup[docked_new, docked_new] = backup[docked_old, docked_old] = 1
    backup[back_new, [docked_new, back_new]] = 0.7, 0.3
    backup[back_old, [docked_old, back_old]] = 0.7, 0.3
    backup[to_old, [back_new, to_old, front_new]] = 0.8, 0.1, 0.1
    backup[to_new, [back_old, to_new, front_old]] = 0.8, 0.1, 0.1
    backup[front_old, [to_old, back_old, front_old]] = 0.4, 0.3, 0.3
    backup[front_new, [to_new, back_new, front_new]] = 0.4, 0.3, 0.3
    seen = np.zeros((n, 5))  # the new station, the old one, docked old, nothing, docked new
    seen[[front_new, front_old, docked_old, docked_new], [0, 1, 2, 4]] = 1
    seen[[back_new, back_old], 3] = 1
    seen[to_old, [1, 3]] = seen[to_new, [0, 3]] = 0.7, 0.3
    reward = np.zeros((3, n, n))
    reward[1, front_old, front_old] = reward[1, front_new, front_new] = -3
    reward[2, back_new, docked_new] = 10
    transition = np.stack([turn, forward, backup])
    ends = np.zeros((3, n, n), bool)
    return Pomdp(np.eye(n)[docked_old], seen, transition, np.tile(seen, (3, 1, 1)), reward, ends)


def memory_chain(length=30):
    """Remember a cue behind noise bits, and name it when asked (bsuite's memory_len)."""
    n = 2 * (length + 1) + 1  # cue, by the time; and the end
    transition = np.zeros((2, n, n))
    seen, reward = np.zeros((n, 5)), np.zeros((2, n, n))
    for cue in (0, 1):
        for t in range(length + 1):
            state, after = 2 * t + cue, 2 * (t + 1) + cue if t < length else n - 1
            transition[:, state, after] = 1
            seen[state] = np.eye(5)[cue] if t == 0 else [0, 0, 0.5, 0.5, 0]
            if t == length:
                seen[state] = np.eye(5)[4]
                reward[:, state, n - 1] = np.where(np.arange(2) == cue, 1, -1)
    seen[-1] = np.eye(5)[4]
    transition[:, -1, -1] = 1
    ends = np.zeros((2, n, n), bool)
    ends[:, :, -1] = True
    start = np.zeros(n)
    start[:2] = 0.5
    return Pomdp(start, seen, transition, np.tile(seen, (2, 1, 1)), reward, ends)


def blurred_maze():
    """Find the exit of a 4 × 3 maze where moves slip and walls are seen wrong (not for tuning)."""
    cells = [(y, x) for y in range(3) for x in range(4) if (y, x) != (1, 1)]
    return _maze(cells, goal=(0, 3), noise=0.2, blur=0.1)


def maintenance():
    """Repair a machine in time, by its noise and costly inspections (not for tuning)."""
    produce, inspect, repair = range(3)
    transition, emission = np.zeros((3, 4, 4)), np.zeros((3, 4, 6))
    transition[produce] = [[0.9, 0.1, 0, 0], [0, 0.8, 0.2, 0], [0, 0, 0.6, 0.4], [0, 0, 0, 1]]
    transition[inspect], transition[repair, :, 0] = np.eye(4), 1
    for state, rattles in enumerate((0.05, 0.3, 0.6)):  # smooth, rattling; silent if broken
        emission[[produce, repair], state, 0] = 1 - rattles
        emission[[produce, repair], state, 1] = rattles
        emission[inspect, state, 3:] = 0.05
        emission[inspect, state, 3 + state] = 0.9
    emission[:, 3, 2] = 1
    reward = np.zeros((3, 4, 4))
    reward[produce, :3], reward[inspect] = 1.0, -0.3
    reward[repair, :3], reward[repair, 3] = -3.0, -12.0
    ends = np.zeros((3, 4, 4), bool)
    return Pomdp(np.eye(4)[0], emission[produce], transition, emission, reward, ends)


class HiddenTaxi(gym.ObservationWrapper):
    """Gymnasium's Taxi that shows where the taxi and the destination are, not the passenger."""

    def __init__(self):
        super().__init__(gym.make("Taxi-v4"))
        self.observation_space = gym.spaces.Discrete(100)

    def observation(self, observation):
        """Drop the passenger from the number of the state."""
        place, _, destination = observation // 20, observation // 4 % 5, observation % 4
        return 4 * place + destination


WORLDS = {
    "tiger": tiger,
    "cheese maze": cheese,
    "load/unload": load_unload,
    "shuttle docking": shuttle,
    "memory chain": memory_chain,
    "blurred maze": blurred_maze,
    "maintenance": maintenance,
}
TAXI, TAXI_OPTIMUM = "taxi, passenger hidden", -9.5


def make(name):
    """Return a world's environment and its optimum."""
    if name == TAXI:
        return HiddenTaxi(), TAXI_OPTIMUM
    model = WORLDS[name]()
    return PomdpEnv(model), optimum(model)


def paid_by(plan, env, seed, episodes):
    """Return the value of a plan: exact in tables, the mean of fresh episodes elsewhere."""
    if isinstance(env, PomdpEnv):
        return value_of(plan, env.model)
    runs = plan.run(env, episodes=episodes, seed=1_000_000 + seed, max_steps=HORIZON)
    return float(np.mean(runs.discounted_returns))


def main():
    """Print a row for each world and seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("worlds", nargs="*", default=[*WORLDS, TAXI])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--budget", type=int, default=20_000)
    parser.add_argument("--episodes", type=int, default=400)
    arguments = parser.parse_args()
    print(f"{'world':<24}{'seed':>5}{'optimum':>9}{'stated':>9}{'paid':>9}{'ratio':>7}"
          f"{'states':>8}{'CPU s':>7}")  # fmt: skip
    for name in arguments.worlds:
        env, best = make(name)
        for seed in range(arguments.seeds):
            started = time.process_time()
            solution = rs.solve(env, budget=arguments.budget, seed=seed)
            seconds = time.process_time() - started
            paid = paid_by(solution.plan, env, seed, arguments.episodes)
            ratio = paid / best if best > 0 else best / paid
            print(
                f"{name:<24}{seed:>5}{best:>9.3f}{solution.value:>9.3f}{paid:>9.3f}{ratio:>7.1%}"
                f"{solution.states['transition']:>8}{seconds:>7.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
