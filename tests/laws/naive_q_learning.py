"""Textbook Q-learning with dicts, for comparison with the engines.

Random numbers are SplitMix64 after Steele, Lea and Flood (2014), written down
again here, so that it chooses what the engines choose.
"""

from resolvent.traces.symbols import as_symbol

MASK = (1 << 64) - 1


class Random:
    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        mixed = self.state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
        return mixed ^ (mixed >> 31)

    def unit(self):
        return (self.next() >> 11) / (1 << 53)

    def below(self, bound):
        return ((self.next() >> 32) * bound) >> 32


class NaiveLearner:
    """A table by symbol; `potential` returns the potential of a new symbol."""

    def __init__(self, actions, alpha, gamma, seed, initial=0.0, potential=lambda: 0.0):
        self.actions, self.alpha, self.gamma = actions, alpha, gamma
        self.random = Random(seed)
        self.initial, self.potential_now = initial, potential
        self.q, self.potential = {}, {}

    def met(self, symbol, potential=None):
        if symbol not in self.q:
            self.q[symbol] = [self.initial] * self.actions
            self.potential[symbol] = self.potential_now() if potential is None else potential

    def choose(self, symbol, epsilon):
        if self.random.unit() < epsilon:
            return self.random.below(self.actions)
        values = self.q[symbol]
        best = [action for action, value in enumerate(values) if value == max(values)]
        return best[self.random.below(len(best))] if len(best) > 1 else best[0]

    def update(self, symbol, action, reward, following, ended):
        target = reward - self.potential[symbol]
        if not ended:
            target += self.gamma * (self.potential[following] + max(self.q[following]))
        values = self.q[symbol]
        values[action] += self.alpha * (target - values[action])


def play(env, learner, epsilon, seed, max_steps=None, imagined=lambda symbol, action: ()):
    """Play an episode; `imagined` yields counterfactual steps after each real one."""
    symbol = as_symbol(env.reset(seed=seed)[0])
    learner.met(symbol)
    rewards, over = [], False
    while not over and len(rewards) != max_steps:
        action = learner.choose(symbol, epsilon)
        observation, reward, ended, truncated, _ = env.step(action)
        following = symbol if ended else as_symbol(observation)
        learner.met(following)
        learner.update(symbol, action, reward, following, ended)
        for update in imagined(symbol, action):
            learner.update(*update)
        rewards.append(reward)
        over, symbol = ended or truncated, following
    return rewards


def q_learning(env, learner, episodes, seed, epsilon, decay, least, **more):
    """Play all episodes; return the rewards of each."""
    played = []
    for number in range(episodes):
        played.append(play(env, learner, epsilon, seed if number == 0 else None, **more))
        epsilon = max(least, epsilon * decay)
    return played
