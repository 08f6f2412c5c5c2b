"""A live vector environment → its episodes and labels, whichever way it resets by itself.

Whoever steps many environments at once (collecting, wrappers) asks here which
of them took a step, which began an episode, and which labels hold, so that all
mean the same.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import iterate
from numpy.typing import NDArray

from resolvent.errors import OptionError, TraceError, locating
from resolvent.traces.live.naming import STEP_AND_INFO, AnyEnv, Labels, label_method
from resolvent.traces.symbols import INFO_KEYS

VectorEnv: TypeAlias = gym.vector.VectorEnv[Any, Any, Any]
Mask: TypeAlias = NDArray[np.bool_]
Infos: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class VectorStep:
    """What one call of `step` meant for each environment.

    `stepped` are those that took a step: after an episode's end the call may have
    been a reset instead. `started` are those whose returned observation begins an
    episode. `labels` hold, where stepped, the label of the observation that the
    step led to; `first_labels`, where started, that of the episode's first. Both
    are spelled as the environments do, and mean nothing elsewhere.
    """

    stepped: Mask
    started: Mask
    labels: Sequence[Any]
    first_labels: Sequence[Any]


class VectorEpisodes:
    """Follows the episodes of a vector environment: call it with all that this returns.

    `where` says for an environment's number how errors should call the place.
    """

    def __init__(
        self,
        envs: VectorEnv,
        label_of: Callable[..., Any] | None,
        where: Callable[[int], str] = "environment {}".format,
    ) -> None:
        self.mode = AutoresetMode(envs.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
        self._envs = envs
        self._labels = Labels(None, label_of)
        with one_environment(envs) as env:
            self._method = label_method(env) if isinstance(env, gym.Env) else None
        self._where = where
        self._all = np.ones(envs.num_envs, bool)
        self._none = ~self._all
        self._ended = self._none
        self._observations: Any = None
        self._rewards: Any = None

    def reset(self, observations: Any, infos: Infos, mask: Mask | None = None) -> Sequence[Any]:
        """Take what a reset of all or of the masked environments gave; return their labels."""
        mask = self._all if mask is None else mask
        self._ended = self._ended & ~mask
        self._remember(observations)
        return self._first_labels(mask, observations, infos)

    def step(
        self,
        actions: Any,
        observations: Any,
        rewards: Any,
        terminations: Mask,
        truncations: Mask,
        infos: Infos,
    ) -> VectorStep:
        """Take the actions and what a step with them gave; say what it meant."""
        before, ended = self._ended, terminations | truncations
        self._ended, self._rewards = ended, rewards
        if self.mode is AutoresetMode.SAME_STEP and ended.any():
            step = self._step_with_ends(ended, actions, observations, infos)
        elif self.mode is AutoresetMode.NEXT_STEP and before.any():
            labels = self._after_step(~before, actions, observations, infos)
            step = VectorStep(
                ~before, before, labels, self._first_labels(before, observations, infos)
            )
        else:
            labels = self._after_step(self._all, actions, observations, infos)
            step = VectorStep(self._all, self._none, labels, labels)
        self._remember(observations)
        return step

    def final_observations(self, ended: Mask, infos: Infos) -> dict[int, Any]:
        """Return what those environments saw last that ended and were reset in one step."""
        if "final_obs" not in infos:
            raise TraceError(
                'the vector environment resets in the same step but gives no infos["final_obs"]: '
                "use another autoreset mode"
            )
        final = infos["final_obs"]
        if not isinstance(final, np.ndarray):
            final = split(self._envs.observation_space, final)
        return {number: final[number] for number in np.flatnonzero(ended).tolist()}

    def info_after_step(self, number: int, infos: Infos) -> dict[str, Any]:
        """Return what the last step's infos tell of one environment that took it."""
        if self.mode is AutoresetMode.SAME_STEP and self._ended[number]:
            infos = infos.get("final_info", {})  # the others are of the next episode's reset
        return info_of(number, infos)

    def told_at_reset(self, which: Mask, infos: Infos) -> dict[int, dict[str, Any]]:
        """Return what those say that were reset, with the labels that a method of theirs tells."""
        return self._with_labels(which, {one: info_of(one, infos) for one in _numbers(which)})

    def told_after_step(self, infos: Infos) -> dict[int, dict[str, Any]]:
        """Return what all say of the last step, with the labels that a method of theirs tells."""
        told = {one: self.info_after_step(one, infos) for one in _numbers(self._all)}
        if self.mode is AutoresetMode.SAME_STEP and self._method:
            for number in _numbers(self._ended):
                if not _tells(told[number]):
                    raise self._asked_too_late()
        return self._with_labels(self._all, told)

    def _with_labels(
        self, which: Mask, told: dict[int, dict[str, Any]]
    ) -> dict[int, dict[str, Any]]:
        """Ask a method for labels, where there is one, unless all tell theirs by themselves."""
        if self._method and not all(map(_tells, told.values())):
            asked = self._envs.unwrapped.call(self._method)  # type: ignore[attr-defined]
            for number in _numbers(which):
                told[number].setdefault(INFO_KEYS[0], asked[number])
        return told

    def _asked_too_late(self) -> TraceError:
        return TraceError(
            f"{self._method}() cannot be asked for the label at an episode's end, since the "
            'next one has begun in the same step: put labels into info["labels"], '
            "pass label_of=, or use another autoreset mode"
        )

    def _step_with_ends(
        self, ended: Mask, actions: Any, observations: Any, infos: Infos
    ) -> VectorStep:
        first = self._first_labels(ended, observations, infos)
        labels = list(self._after_step(~ended, actions, observations, infos))
        final_infos = infos.get("final_info", {})
        if not self._labels.made and self._method and not _tells(final_infos):
            raise self._asked_too_late()
        last: list[Any] = [None] * self._envs.num_envs
        if self._labels.made:
            for number, observation in self.final_observations(ended, infos).items():
                last[number] = observation
        at_end = self._column(ended, final_infos)
        if at_end is None:
            at_end = self._each_after_step(ended, actions, last, final_infos)
        for number in np.flatnonzero(ended).tolist():
            labels[number] = at_end[number]
        return VectorStep(self._all, ended, labels, first)

    def _first_labels(self, which: Mask, observations: Any, infos: Infos) -> Sequence[Any]:
        column = self._column(which, infos)
        if column is not None:
            return column
        each = self._split(observations)
        told: list[Any] = [None] * len(which)
        for number, info in self._infos(which, infos):
            with locating(self._where(number)), locating("reset"):
                told[number] = self._labels.at_reset(each[number], info)
        return told

    def _after_step(
        self, which: Mask, actions: Any, observations: Any, infos: Infos
    ) -> Sequence[Any]:
        column = self._column(which, infos)
        if column is not None:
            return column
        return self._each_after_step(which, actions, self._split(observations), infos)

    def _each_after_step(
        self, which: Mask, actions: Any, following: Sequence[Any], infos: Infos
    ) -> list[Any]:
        of_step = self._labels.of_step
        before = self._split(self._observations) if of_step else following
        done = split(self._envs.action_space, actions) if of_step else following
        told: list[Any] = [None] * len(which)
        for number, info in self._infos(which, infos):
            with locating(self._where(number)):
                told[number] = self._labels.after_step(
                    before[number], done[number], self._reward(number), following[number], info
                )
        return told

    def _column(self, which: Mask, infos: Infos) -> Sequence[Any] | None:
        """Return the labels in `infos` as they are, if they are there for each asked for."""
        if self._labels.made:
            return None
        for key in INFO_KEYS:
            if key in infos:
                there = infos.get(f"_{key}")
                full = there is None or there.all() or there[which].all()
                return infos[key] if full else None
        return None

    def _infos(self, which: Mask, infos: Infos) -> Iterator[tuple[int, dict[str, Any]]]:
        """Go through the environments asked for, each with what `infos` say for its label."""
        asked = None
        for number in np.flatnonzero(which).tolist():
            if self._labels.reads == STEP_AND_INFO:
                yield number, info_of(number, infos)
                continue
            info = {
                key: infos[key][number]
                for key in INFO_KEYS
                if key in infos and infos.get(f"_{key}", self._all)[number]
            }
            if not (info or self._labels.made or self._method is None):
                asked = asked or self._envs.unwrapped.call(self._method)  # type: ignore[attr-defined]
                info = {INFO_KEYS[0]: asked[number]}
            yield number, info

    def _reward(self, number: int) -> Any:
        return self._rewards[number] if self._labels.of_step else None

    def _split(self, observations: Any) -> Sequence[Any]:
        """Return the observation of each environment, where they are asked for."""
        if not self._labels.made:
            return [None] * self._envs.num_envs
        return split(self._envs.observation_space, observations)

    def _remember(self, observations: Any) -> None:
        if self._labels.of_step:  # a copy: some vector environments write over their batches
            self._observations = copy.deepcopy(observations)


@contextmanager
def one_environment(envs: VectorEnv) -> Iterator[AnyEnv]:
    """Give one environment that stands for all, to look at its attributes.

    Where environments live in other processes it is a new one, closed again
    afterwards: to ask those for an attribute that they lack would end them. A
    vector environment that holds no single ones stands for itself.
    """
    inner = envs.unwrapped
    if isinstance(inner, gym.vector.SyncVectorEnv):
        yield inner.envs[0]
    elif isinstance(inner, gym.vector.AsyncVectorEnv):
        env = inner.env_fns[0]()
        try:
            yield env
        finally:
            env.close()
    else:
        yield envs


def info_of(number: int, infos: Infos) -> dict[str, Any]:
    """Return one environment's part of infos; a mask beside each key says who told it.

    What has no row for each environment is left out.

    >>> infos = {"cost": np.array([3, 0]), "_cost": np.array([True, False]), "at": [5, 6], "n": 2}
    >>> info_of(0, infos), info_of(1, infos)
    ({'cost': np.int64(3), 'at': 5}, {'at': 6})
    """
    told = {}
    for key, values in infos.items():
        is_mask = key.startswith("_") and key[1:] in infos
        if is_mask or (f"_{key}" in infos and not infos[f"_{key}"][number]):
            continue
        if isinstance(values, Mapping):
            told[key] = info_of(number, values)
        elif isinstance(values, np.ndarray | list | tuple) and number < len(values):
            told[key] = values[number]
    return told


def split(space: gym.Space[Any], batch: Any) -> list[Any]:
    """Return the values of a batch one by one, numbers as plain Python ones."""
    if isinstance(batch, np.ndarray) and batch.ndim == 1:
        values: list[Any] = batch.tolist()
        return values
    return list(iterate(space, batch))


def check_single_resets(envs: VectorEnv, what: str) -> None:
    """Refuse `what` where single environments cannot be reset while the others go on."""
    inner = envs.unwrapped
    by_mask = (
        envs.metadata.get("autoreset_mode") is AutoresetMode.DISABLED
        or isinstance(inner, gym.vector.SyncVectorEnv | gym.vector.AsyncVectorEnv)
        or getattr(inner, "resets_by_mask", False)
    )
    if not by_mask:
        raise OptionError(
            f"{what} of {type(inner).__name__}, which may reset all its environments together: "
            f"give it a time limit of its own, or use gymnasium's SyncVectorEnv"
        )


def _tells(infos: Infos) -> bool:
    return any(key in infos for key in INFO_KEYS)


def _numbers(which: Mask) -> list[int]:
    numbers: list[int] = np.flatnonzero(which).tolist()
    return numbers
