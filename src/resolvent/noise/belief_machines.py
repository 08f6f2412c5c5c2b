"""A model with hidden states → machines whose states are beliefs.

The states are representatives of the beliefs that Bayesian updates reach; nearly equal beliefs
count as one. Transitions read labels of actions and observations. Outputs have counts in
proportion to the probabilities that the model predicts.

Input: a `HiddenStateModel` and its traces. Output: a pair of machines.
"""

import heapq
from typing import Final

import numpy as np

from resolvent import _core
from resolvent.machines import Machine, Machines, RewardMachine, TransitionMachine, machines_of
from resolvent.machines.memory import number_states
from resolvent.machines.tables import OutputCounts, Support, no_codes, no_numbers
from resolvent.noise.hidden_states import HiddenStateModel, Numbers, Rows
from resolvent.preprocess.labeling import LabelingFunction, preceding_actions
from resolvent.preprocess.samples import Histories
from resolvent.preprocess.timing import LabelTiming
from resolvent.preprocess.transform import Preprocessor
from resolvent.traces import TraceSet, Vocabulary
from resolvent.traces.vocabulary import Codes

PREPROCESSOR: Final = Preprocessor(LabelingFunction("action+observation"))
MOST_STATES: Final = 400  # maximum number of beliefs; those likely to be reached soon come first
_LEAST_COUNT: Final = 50  # minimum number of steps that predicted outputs are counted in
_POSSIBLE: Final = 1e-4  # probability of an observation from which on the belief after it counts
_DISCOUNT: Final = 0.9  # factor of the priority of a belief, for each step from the start


def belief_machines(
    model: HiddenStateModel,
    traces: TraceSet,
    distance: float,
    preprocessor: Preprocessor = PREPROCESSOR,
) -> Machines:
    """Return machines whose states are the beliefs that a model reaches.

    The traces are those that the model was fitted to, as preprocessed. Beliefs count as equal if
    the sum of their absolute differences is at most `distance`.
    """
    beliefs = _Beliefs(model, traces, distance)
    transitions, order, _ = number_states(beliefs.explore())
    timing, kinds = LabelTiming.CURRENT_WITH_INITIAL, model.kinds
    reads = _count_reads(transitions, Histories.of(traces, timing))
    machines: list[Machine] = []
    for machine_type, outputs, code in (
        (TransitionMachine, traces.observations, kinds.next_observation),
        (RewardMachine, Vocabulary(kinds.rewards.tolist()), kinds.reward),
    ):
        counts = beliefs.output_counts(order.tolist(), code)
        machine = machine_type(
            labels=traces.labels,
            observations=traces.observations,
            actions=traces.actions,
            outputs=outputs,
            transitions=transitions,
            trivial=(),
            output_state=counts.state[counts.starts],
            output_query=counts.query[counts.starts],
            output_value=counts.main,
            constant_query=no_numbers(),
            constant_value=no_codes(),
            output_counts=counts.varying(),
            support=Support(reads, counts.totals, no_numbers()),
        )
        machines.append(machine)
    return machines_of(machines, timing, preprocessor=preprocessor)


class _Beliefs:
    """Representative beliefs, each with its observation; −1 for the state before an episode."""

    def __init__(self, model: HiddenStateModel, traces: TraceSet, distance: float) -> None:
        self.model, self.distance = model, distance
        self.observation, self.belief = [-1], [np.zeros(model.variants)]
        self._members: dict[int, list[int]] = {}
        self._queue: list[tuple[float, int]] = []
        self._transitions: list[tuple[int, int, int]] = []
        # Codes of labels as [action + 1, observation], row 0 for starts; −1 for none.
        self._label = np.full((len(traces.actions) + 1, len(traces.observations)), -1, np.int32)
        action = preceding_actions(traces.offsets, traces.action_codes)
        self._label[action + 1, traces.observation_codes] = traces.label_codes

    def explore(self) -> Codes:
        """Add the reachable beliefs, likely ones first; return the transitions [state, label].

        A label that the model excludes leads to the belief about its observation at any time.
        """
        for observation in np.flatnonzero(self._label[0] >= 0).tolist():
            self._lead(0, 0, observation, self.model.initial[observation], 1.0)
        while self._queue:
            priority, state = heapq.heappop(self._queue)
            for action in range(self.model.kinds.actions):
                for observation, joint in self._next(state, action):
                    chance = float(joint.sum())
                    reach = -priority * _DISCOUNT * chance
                    self._lead(state, action + 1, observation, joint / chance, reach)
        table = np.full((len(self.belief), int(self._label.max(initial=-1)) + 1), -1, np.int32)
        for observation in self._members:
            codes = self._label[:, observation]
            usual, _ = self._nearest(observation, self.model.usual(observation))
            table[:, codes[codes >= 0]] = usual
        for state, code, target in self._transitions:
            table[state, code] = target
        return table

    def _next(self, state: int, action: int) -> list[tuple[int, Numbers]]:
        """Return the observations that may follow, with the probability of each variant."""
        kinds, joint = self.model.outcomes(self.observation[state], self.belief[state], action)
        observed = np.where(
            self.model.kinds.ended[kinds], -1, self.model.kinds.next_observation[kinds]
        )
        following = ((o, joint[observed == o].sum(axis=0)) for o in np.unique(observed).tolist())
        return [(o, belief) for o, belief in following if o >= 0 and belief.sum() > _POSSIBLE]

    def _lead(self, state: int, row: int, observation: int, belief: Numbers, reach: float) -> None:
        """Let a label lead to a belief: the nearest representative, or a new one."""
        target, distance = self._nearest(observation, belief)
        if distance > self.distance and (target < 0 or len(self.belief) < MOST_STATES):
            target = len(self.belief)
            self._members.setdefault(observation, []).append(target)
            self.observation.append(observation)
            self.belief.append(belief)
            heapq.heappush(self._queue, (-reach, target))
        self._transitions.append((state, int(self._label[row, observation]), target))

    def _nearest(self, observation: int, belief: Numbers) -> tuple[int, float]:
        """Return the nearest representative with an observation, and its distance."""
        members = self._members.get(observation)
        if members is None:
            return -1, np.inf
        distance = np.abs(np.array([self.belief[member] for member in members]) - belief).sum(1)
        best = int(np.argmin(distance))
        return members[best], float(distance[best])

    def output_counts(self, states: list[int], code: Rows) -> OutputCounts:
        """Return the counts of predicted outputs in some states; `code` is that of each kind.

        They add up to the number of steps that the prediction rests on. A step in a belief b
        counts in each variant v with b(v), so that Σ b(v) count(v) / Σ b(v)² steps in variants are
        those of at most as many steps in this belief.
        """
        rows: list[tuple[int, int, int, int]] = []
        model, actions = self.model, self.model.kinds.actions
        for own, state in enumerate(states):
            observation, belief = self.observation[state], self.belief[state]
            for action in range(actions):
                kinds, joint = model.outcomes(observation, belief, action)
                if not len(kinds):
                    continue
                count = model.count[model.kinds.query[kinds[0]]]
                support = int((belief * count).sum() / (belief * belief).sum()) + 1
                outputs, group = np.unique(code[kinds], return_inverse=True)
                shares = np.bincount(group, joint.sum(axis=1)).astype(float, copy=False)
                counts = apportion(shares, max(_LEAST_COUNT, support)).tolist()
                entries = zip(outputs.tolist(), counts, strict=True)
                query = observation * actions + action
                rows += [(own, query, output, count) for output, count in entries if count]
        table = np.array(sorted(rows), np.int64).reshape(-1, 4)
        numbers, values = (table[:, column].astype(np.int32) for column in (0, 2))
        return OutputCounts(numbers, table[:, 1], values, table[:, 3])


def apportion(shares: Numbers, total: int) -> Rows:
    """Return whole numbers in proportion to shares, by the largest remainders.

    >>> apportion(np.array([0.5, 0.3, 0.2]), 9).tolist()
    [4, 3, 2]
    """
    exact = shares / shares.sum() * total
    counts: Rows = np.floor(exact).astype(np.int64)
    counts[np.argsort(counts - exact, kind="stable")[: total - int(counts.sum())]] += 1
    return counts


def _count_reads(table: Codes, histories: Histories) -> Rows:
    """Return the number of times that each label was read in each state."""
    flat, count = np.ascontiguousarray(table.ravel()), np.zeros(table.shape, np.int64)
    source = np.roll(_core.walk_states(flat, table.shape[1], histories.beta, histories.offsets), 1)
    source[histories.offsets[:-1]] = 0
    read = (histories.beta >= 0) & (source >= 0)
    np.add.at(count, (source[read], histories.beta[read]), 1)
    return count
