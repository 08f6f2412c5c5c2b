"""Track the states of machines beside live episodes: labels, one after the other → states.

`StateTracker` looks transitions up; `BeliefTracker` estimates the states if labels are noisy or
starts are hidden. For environments side by side there are `VectorStateTracker`, on arrays, and
`VectorBeliefTracker`. `EpisodeStates` and `VectorEpisodeStates` find the labels for a tracker.
"""

import copy
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Literal, TypeAlias, cast

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from resolvent._util.text import short
from resolvent._util.validation import check_arguments
from resolvent.errors import ModelError, TraceError, locating
from resolvent.machines import Machines
from resolvent.machines.augmented_state import AugmentedState, Belief
from resolvent.preprocess.timing import LabelReader
from resolvent.rl.env import LabelSource, LivePreprocessor
from resolvent.rl.vector_env import (
    Mask,
    VectorEnv,
    VectorLabels,
    VectorReturn,
    VectorStep,
    numbers_in,
    split,
)
from resolvent.traces.schema import OBSERVATION, REWARD, TERMINATED
from resolvent.traces.symbols import Label, Symbol, as_label, finite_reward, label_text

Numbers: TypeAlias = NDArray[np.int64]
Probabilities: TypeAlias = NDArray[np.float32]
OnUnseen: TypeAlias = Literal["stay", "raise"]  # for labels that are unseen in a state


class StateTracker:
    """The states of all machines of a set in a live episode, by their label timing.

    A label that a machine has not seen in its state leaves that state unchanged and is counted in
    `unseen`, or raises `ModelError` if `on_unseen` is "raise". Machines do not learn from the last
    label of a terminated episode: pass `terminated` with it, and it is neither counted nor raised.

    >>> import gymnasium as gym, resolvent as rs
    >>> traces = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    >>> tracker = StateTracker(rs.infer(traces).machines)
    >>> tracker.reset(None)
    >>> tracker.step({"key"})
    >>> tracker.states
    {'transition': 1, 'reward': 0}
    """

    def __init__(self, machines: Machines, *, on_unseen: OnUnseen = "stay") -> None:
        check_arguments(StateTracker.__init__, locals())
        self.machines = machines
        self.values: tuple[int, ...] = (0,) * len(machines)
        self.unseen = 0
        self._raises = on_unseen == "raise"
        self._reader = LabelReader(machines.timing)
        labels = _all_labels(machines)
        self._codes = {label: code for code, label in enumerate(labels)}
        self._tables = [
            machine.transitions_for(labels, others=True).tolist() for machine in machines.values()
        ]
        # The next states of all machines together: one look-up for each step.
        self._next: dict[tuple[Label, tuple[int, ...]], tuple[int, ...]] = {}

    @property
    def states(self) -> dict[str, int]:
        """The state of each machine, by its name."""
        return dict(zip(self.machines, self.values, strict=True))

    def reset(self, label: Any) -> None:
        """Begin an episode whose first observation has this label."""
        self.values = (0,) * len(self.values)
        self.unseen = 0
        read = self._reader.reset(as_label(label))
        if read is not None and not self.machines.state_uncertainty.starts:
            self._read(read, False)

    def step(self, label: Any, terminated: bool = False) -> None:
        """Read the label of the observation that a step led to."""
        if type(label) is not frozenset:
            label = as_label(label)
        self._read(self._reader.step(label), terminated)

    def _read(self, label: Label, terminated: bool) -> None:
        next_states = self._next.get((label, self.values))
        self.values = self._follow(label, terminated) if next_states is None else next_states

    def _follow(self, label: Label, terminated: bool) -> tuple[int, ...]:
        """Return the next states of all machines, and count a label that is unseen by any."""
        code = self._codes.get(label, -1)
        pairs = list(zip(self._tables, self.values, strict=True))
        next_states = tuple(table[state][code] for table, state in pairs)
        if min(next_states) >= 0:
            self._next[label, self.values] = next_states
            return next_states
        if not terminated:
            if self._raises:
                raise _unseen_error(self.machines, label, self.values)
            self.unseen += 1
        return tuple(
            before if after < 0 else after
            for before, after in zip(self.values, next_states, strict=True)
        )


class BeliefTracker:
    """The states of all machines in a live episode, estimated instead of read: see `Belief`.

    `values` are the jointly most likely states, `probabilities` those of each machine's states. A
    label counts as unseen if no machine has it at all.
    """

    def __init__(
        self, machines: Machines, live: LivePreprocessor, *, on_unseen: OnUnseen = "stay"
    ) -> None:
        self.belief = Belief(machines)
        self._live, self._raises = live, on_unseen == "raise"

    @property
    def values(self) -> tuple[int, ...]:
        """The jointly most likely states, in the order of the machines."""
        return self.belief.likeliest

    @property
    def unseen(self) -> int:
        """The number of labels of this episode that no machine has."""
        return self.belief.unseen

    @property
    def probabilities(self) -> list[Probabilities]:
        """The probability of each state of each machine, in the order of the machines."""
        return [column.astype(np.float32) for column in self.belief.probabilities.values()]

    def reset(self, label: Any) -> None:
        """Begin an episode whose first observation has this label."""
        self.belief.reset(label)
        self._check(label, 0)

    def weigh(
        self, observation: Any, action: Any, reward: Any, next_observation: Any, terminated: bool
    ) -> None:
        """Weigh the states by the outcome of a step, in values of the environment."""
        symbol = self._live.observations
        outcomes = {
            OBSERVATION: symbol(next_observation),
            REWARD: finite_reward(reward),
            TERMINATED: bool(terminated),
        }
        self.belief.weigh(symbol(observation), self._live.actions(action), outcomes)

    def step(self, label: Any, terminated: bool = False) -> None:
        """Read the label of the observation that a step led to."""
        before = self.belief.unseen
        self.belief.read(label)
        if not terminated:
            self._check(label, before)

    def _check(self, label: Any, before: int) -> None:
        if self._raises and self.belief.unseen > before:
            raise ModelError(
                f"label '{label_text(as_label(label))}' was never seen at all: collect traces "
                'that show it and infer again, or go on with on_unseen="stay"'
            )


Tracker: TypeAlias = StateTracker | BeliefTracker
"""For each step call `weigh` with its outcome, if there is that method, and then `step`: `values`
are then the states for the prediction of the next step."""


def tracker_of(machines: Machines, live: LivePreprocessor) -> Tracker:
    """Return the tracker for machines: an estimate if labels do not determine their states."""
    return BeliefTracker(machines, live) if machines.state_uncertainty else StateTracker(machines)


class VectorStateTracker:
    """The states of all machines of a set in many live episodes: `StateTracker` on arrays.

    `values` has a column of states for each machine. The arrays in `values` and `unseen` have an
    entry for each environment; they are replaced and never written into.
    """

    def __init__(
        self, machines: Machines, environments: int, *, on_unseen: OnUnseen = "stay"
    ) -> None:
        self.unseen: Numbers = np.zeros(environments, np.int64)
        self.values: tuple[Numbers, ...] = (self.unseen,) * len(machines)
        self._machines = machines
        self._raises = on_unseen == "raise"
        labels = _all_labels(machines)
        self._codes = _LabelCodes(labels)
        self._others = len(labels)  # the code of all labels that no machine has
        self._tables = []  # of next states, and whether these are unseen, by state and label
        for machine in machines.values():
            next_state = machine.transitions_for(labels, unseen="stay", others=True)
            is_unseen = machine.transitions_for(labels, others=True).ravel() < 0
            self._tables.append((next_state.astype(np.int64).ravel(), is_unseen))
        self._lagged = machines.timing.lag > 0
        starts_are_hidden = machines.state_uncertainty.starts
        self._reads_at_reset = machines.timing.reads_at_reset and not starts_are_hidden
        self._last: Numbers = np.zeros(environments, np.int64)

    def reset(self, labels: Sequence[Any], mask: Mask) -> None:
        """Begin episodes in the masked environments, whose first observations have these labels."""
        going_on = ~mask
        self.values = tuple(column * going_on for column in self.values)
        self.unseen = self.unseen * going_on
        if self._reads_at_reset:
            self._read(self._codes.of(labels), mask, None)
        elif self._lagged:
            self._last = np.where(mask, self._codes.of(labels), self._last)

    def step(self, labels: Sequence[Any], mask: Mask, terminated: Mask) -> None:
        """Read the labels that steps led to, in the masked environments."""
        codes = self._codes.of(labels)
        read = codes
        if self._lagged:
            read, self._last = self._last, np.where(mask, codes, self._last)
        self._read(read, mask, terminated)

    def _read(self, codes: Numbers, mask: Mask, terminated: Mask | None) -> None:
        unseen = np.zeros(len(codes), bool)
        known_codes, is_everywhere = np.minimum(codes, self._others), mask.all()
        next_states = []
        for (next_state, is_unseen), states in zip(self._tables, self.values, strict=True):
            index = states * (self._others + 1) + known_codes
            unseen |= is_unseen.take(index)
            after = next_state.take(index)
            next_states.append(after if is_everywhere else np.where(mask, after, states))
        unseen &= mask
        if unseen.any():
            if terminated is not None:
                unseen &= ~terminated
            if self._raises and unseen.any():
                number = int(np.argmax(unseen))
                label = self._codes.labels[int(codes[number])]
                before = [int(column[number]) for column in self.values]
                error = _unseen_error(self._machines, label, before)
                raise ModelError(f"environment {number}: {error}")
            self.unseen = self.unseen + unseen
        self.values = tuple(next_states)


class VectorBeliefTracker:
    """A `BeliefTracker` for each of many environments, used as `VectorStateTracker` is."""

    def __init__(self, first: BeliefTracker, environments: int) -> None:
        self.trackers = [first, *(copy.copy(first) for _ in range(environments - 1))]
        for tracker in self.trackers[1:]:  # which share what the first one computes
            tracker.belief = first.belief.restarted()

    @property
    def values(self) -> tuple[Numbers, ...]:
        """For each part of the memory a column of states."""
        rows = np.array([tracker.values for tracker in self.trackers], np.int64)
        return tuple(np.ascontiguousarray(column) for column in rows.T)

    @property
    def unseen(self) -> Numbers:
        """The number of unseen labels in each environment's episode."""
        return np.array([tracker.unseen for tracker in self.trackers], np.int64)

    @property
    def probabilities(self) -> list[Probabilities]:
        """For each machine the probability of its states, with a row for each environment."""
        rows = [tracker.probabilities for tracker in self.trackers]
        return [np.stack(column) for column in zip(*rows, strict=True)]

    def reset(self, labels: Sequence[Any], mask: Mask) -> None:
        """Begin episodes in the masked environments, whose first observations have these labels."""
        for number in numbers_in(mask):
            self.trackers[number].reset(labels[number])

    def weigh(self, mask: Mask, *outcomes: Sequence[Any] | Mask) -> None:
        """Weigh by the steps of the masked environments; a column for each argument of `weigh`."""
        for number in numbers_in(mask):
            self.trackers[number].weigh(*(column[number] for column in outcomes))

    def step(self, labels: Sequence[Any], mask: Mask, terminated: Mask) -> None:
        """Read the labels that steps led to, in the masked environments."""
        for number in numbers_in(mask):
            self.trackers[number].step(labels[number], bool(terminated[number]))


class _LabelCodes(dict[Any, int]):
    """Codes of labels, by any spelling; labels that no machine has get higher codes."""

    def __init__(self, labels: Sequence[Label]) -> None:
        super().__init__((label, code) for code, label in enumerate(labels))
        self.labels = list(labels)

    def of(self, labels: Sequence[Any]) -> Numbers:
        if isinstance(labels, np.ndarray):
            if labels.dtype.kind in "iu" and labels.ndim == 1:
                values, codes = np.unique(labels, return_inverse=True)
                return self.of(values.tolist())[codes]
            labels = labels.tolist()
        try:
            return np.fromiter(map(self.__getitem__, labels), np.int64, len(labels))
        except (TypeError, TraceError):  # sets and lists cannot be looked up as they are
            codes = np.empty(len(labels), np.int64)
            for number, spelling in enumerate(labels):
                with locating(f"environment {number}"):
                    codes[number] = self[as_label(spelling)]
            return codes

    def __missing__(self, spelling: Any) -> int:
        label = as_label(spelling)
        code = self.get(label)
        if code is None:
            code = self[label] = len(self.labels)
            self.labels.append(label)
        if type(spelling) is str:
            self[spelling] = code
        return code


def _all_labels(machines: Machines) -> list[Label]:
    """Return the labels of all machines, each once."""
    return list(dict.fromkeys(label for machine in machines.values() for label in machine.labels))


def _unseen_error(machines: Machines, label: Label, states: Sequence[int]) -> ModelError:
    """Return an error that says which label was never seen where, and what to do."""
    where = "at all"
    if any(label in machine.labels for machine in machines.values()):
        where = "in " + " and ".join(
            f"state {state} of the {short(name)} machine"
            for (name, machine), state in zip(machines.items(), states, strict=True)
            if machine.transitions_for([label])[state, 0] < 0
        )
    return ModelError(
        f"label '{label_text(label)}' was never seen {where}: collect traces that show it "
        'there and infer again, or go on with on_unseen="stay"'
    )


class EpisodeStates:
    """The states of machines in an environment's present episode, and its last observation."""

    def __init__(
        self, env: gym.Env[Any, Any], machines: Machines, live: LivePreprocessor, tracker: Tracker
    ) -> None:
        check_fit(machines, live, env.observation_space, env.action_space)
        self.machines, self.live, self.tracker = machines, live, tracker
        self.observation: Any = None
        self._labels = LabelSource(env, live.labeling_fn)
        self._belief = tracker if isinstance(tracker, BeliefTracker) else None

    def reset(self, observation: Any, info: dict[str, Any]) -> None:
        """Begin an episode: all machines are in their initial states."""
        self.tracker.reset(self._labels.at_reset(observation, info))
        self.observation = observation

    def step(
        self, action: Any, observation: Any, reward: Any, terminated: bool, info: dict[str, Any]
    ) -> None:
        """Read the label of a step, given its action and what the environment returned."""
        before, self.observation = self.observation, observation
        label = self._labels.after_step(before, action, reward, observation, info)
        if self._belief is not None:
            self._belief.weigh(before, action, reward, observation, terminated)
        self.tracker.step(label, terminated)

    def augmented_state(self, names: Iterable[str]) -> AugmentedState:
        """Return the symbol of the observation and the states of some machines."""
        states = dict(zip(self.machines, self.tracker.values, strict=True))
        return self.live.observations(self.observation), *(states[name] for name in names)


class VectorEpisodeStates:
    """The states of machines in the present episodes of a vector environment.

    After `step` they are those at the ends of steps, also in environments that the same step has
    reset; `begin` then begins these episodes. With `remembers`, the last observations are kept in
    `labels`.
    """

    def __init__(
        self,
        envs: VectorEnv,
        machines: Machines,
        live: LivePreprocessor,
        tracker: VectorStateTracker | VectorBeliefTracker,
        *,
        remembers: bool = False,
    ) -> None:
        check_fit(machines, live, envs.single_observation_space, envs.single_action_space)
        self.live, self.tracker, self._envs = live, tracker, envs
        remembers = remembers or isinstance(tracker, VectorBeliefTracker)
        self.labels = VectorLabels(envs, live.labeling_fn, remembers=remembers)

    def reset(self, seed: Any, options: dict[str, Any] | None) -> tuple[Any, dict[str, Any], Mask]:
        """Reset all environments or those of a mask in the options; return the mask, too."""
        # Looked up before the reset, which removes it from the options.
        mask = (options or {}).get("reset_mask", self.labels.episodes.all)
        observations, infos = self._envs.reset(seed=seed, options=options)
        self.tracker.reset(self.labels.reset(observations, infos, mask), mask)
        return observations, infos, mask

    def step(self, actions: Any, returned: VectorReturn) -> VectorStep:
        """Read the labels of a step, given its actions and what the environments returned."""
        before = self.labels.observations
        step = self.labels.step(actions, returned)
        observations, rewards, terminations, _, infos = returned
        if isinstance(self.tracker, VectorBeliefTracker):
            self.tracker.weigh(
                step.stepped,
                split(self._envs.observation_space, before),
                split(self._envs.action_space, actions),
                rewards,
                self.labels.episodes.reached(observations, infos),
                terminations,
            )
        self.tracker.step(step.labels, step.stepped, terminations)
        return step

    def begin(self, step: VectorStep) -> None:
        """Begin the episodes that a step has started."""
        self.tracker.reset(step.first_labels, step.started)


def check_fit(
    machines: Machines,
    live: LivePreprocessor,
    observation_space: gym.Space[Any],
    action_space: gym.Space[Any],
) -> None:
    """Raise `ModelError` for machines that were certainly inferred in another environment.

    Traces may lack actions and observations of the environment, and may be from a larger
    one. But machines cannot have actions that the environment lacks, nor lack all of its
    observations. Spaces whose values cannot be listed are not checked.
    """
    actions = live.actions.of_space(action_space)
    known = dict.fromkeys(action for machine in machines.values() for action in machine.actions)
    lacking = [] if actions is None else [action for action in known if action not in actions]
    if actions is not None and lacking:
        raise ModelError(
            f"the machines know the action {_examples(lacking)}, which the environment lacks "
            f"(it has {_examples(actions)}): they were inferred in another environment"
        )
    symbols = dict.fromkeys(  # without the states that they are paired with
        symbol[0] if machine.supplemented else symbol
        for machine in machines.values()
        for symbol in cast("Iterable[Any]", machine.observations)
    )
    observations = live.observations.of_space(observation_space)
    if observations is None or not symbols:
        return
    if not any(observation in symbols for observation in observations):
        raise ModelError(
            f"the machines know none of the environment's observations "
            f"(they know {_examples(symbols)}; it has {_examples(observations)}): "
            f"they were inferred in another environment"
        )


def _examples(symbols: Iterable[Symbol]) -> str:
    first = list(islice(symbols, 4))
    return ", ".join([*map(repr, first[:3]), *("…" for _ in first[3:])])
