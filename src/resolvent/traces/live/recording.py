"""Resets and steps of one environment → the episodes of a `TraceSet`.

Whoever plays an environment step by step (collecting, plans that act) tells a
`Recorder` what happened, so that all of them record the same.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium as gym

from resolvent.errors import OptionError, locating
from resolvent.traces.column_names import ACTION, LABEL, OBSERVATION, REWARD
from resolvent.traces.columns import CodedEpisodes, ColumnCoder
from resolvent.traces.labelling import Labelling
from resolvent.traces.live.naming import Labels, MadeOf, Names, finite_reward, told_column
from resolvent.traces.symbols import Label
from resolvent.traces.trace_set import TraceSet


class Recorder:
    """Writes down the episodes of an environment as they are played.

    With `inner`, what is written down is not what the environment shows but what a
    wrapper that adds to it was shown itself: see `shown_inside`.

    >>> from resolvent.environments import House
    >>> house = House()
    >>> recorder = Recorder(house)
    >>> recorder.begin(*house.reset())
    frozenset()
    >>> following, reward, terminated, truncated, info = house.step(2)
    >>> recorder.step(2, following, reward, info)
    frozenset({'key'})
    >>> recorder.end(terminated=False, truncated=True)
    >>> recorder.trace_set()[0].observations
    ('corridor', 'orangeroom')
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        label_of: Callable[..., Any] | None = None,
        columns: Sequence[str] = (),
        *,
        labelling: Labelling | None = None,
        name_of: Callable[[Any], Any] | None = None,
        inner: bool = False,
    ) -> None:
        self._wrapper: Any = None
        if inner:
            self._wrapper = shown_inside(env)
            env, name_of = self._wrapper.env, name_of or self._wrapper.name_of
            label_of = label_of or self._wrapper.label_of
        self.observations, self.actions = Names(env, "observation", name_of), Names(env, "action")
        if labelling is not None and not labelling.is_given:
            label_of = MadeOf(labelling, self.observations, self.actions)
        self.labels = Labels(env, label_of)
        self._columns = tuple(columns)
        self._coder, self._played = ColumnCoder(), CodedEpisodes()
        self._seen: Any = None
        self._lists: dict[str, list[Any]] = {}

    def begin(self, observation: Any, info: Mapping[str, Any]) -> Label:
        """Take what a reset returned; return the label of the first observation."""
        self._seen = self._recorded(observation)
        with locating("reset"):
            symbol = self.observations(self._seen)
            label = self.labels.at_reset(self._seen, info)
            self._lists = {
                OBSERVATION: [symbol],
                LABEL: [label],
                ACTION: [],
                REWARD: [],
                **{name: [] for name in self._columns},
            }
        return label

    def step(self, action: Any, following: Any, reward: Any, info: Mapping[str, Any]) -> Label:
        """Take an action and what came of it; return the label of what it led to."""
        lists, following = self._lists, self._recorded(following)
        with locating(f"step {len(lists[ACTION])}"):
            lists[ACTION].append(self.actions(action))
            lists[REWARD].append(finite_reward(reward))
            lists[OBSERVATION].append(self.observations(following))
            label = self.labels.after_step(self._seen, action, reward, following, info)
            lists[LABEL].append(label)
            for name in self._columns:
                lists[name].append(told_column(info, name))
        self._seen = following
        return label

    def end(self, *, terminated: bool, truncated: bool) -> None:
        """Close the episode."""
        codes = self._coder.code(self._lists)
        self._played.add(codes, terminated=bool(terminated), truncated=bool(truncated))

    def cut(self) -> None:
        """Close an episode whose last step failed, without that step."""
        beside = {OBSERVATION: 1, LABEL: 1}  # as many as steps, and one for the beginning
        steps = min(len(one) - beside.get(name, 0) for name, one in self._lists.items())
        for name, one in self._lists.items():
            del one[steps + beside.get(name, 0) :]
        if steps:
            self.end(terminated=False, truncated=True)

    def trace_set(self) -> TraceSet:
        """Return all episodes that were closed."""
        return self._played.trace_set(self._coder.values())

    def _recorded(self, shown: Any) -> Any:
        return shown if self._wrapper is None else self._wrapper.inner_observation


def shown_inside(env: gym.Env[Any, Any]) -> gym.Wrapper[Any, Any, Any, Any]:
    """Return the wrapper, from under any others, that adds to what it is shown itself.

    It is recognised by what it has: `inner_observation`, which it was shown last, and
    `label_of` and `name_of`, by which it finds labels and names.
    """
    while isinstance(env, gym.Wrapper):
        if hasattr(type(env), "inner_observation"):
            return env
        env = env.env
    raise OptionError(
        "inner=True: nothing here shows more than the world inside: "
        "wrap it in AugmentObservation, or leave inner out"
    )
