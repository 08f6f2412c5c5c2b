"""Follow the episodes and labels of a Gymnasium vector environment, in any autoreset mode.

Input: the returns of `reset` and `step`. Output: which environments took a step or began an
episode, and the labels.
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
from resolvent.rl.env import AnyEnv, LabelSource, label_method
from resolvent.traces.label_function import STEP_AND_INFO
from resolvent.traces.symbols import INFO_KEYS

VectorEnv: TypeAlias = gym.vector.VectorEnv[Any, Any, Any]
Mask: TypeAlias = NDArray[np.bool_]
Infos: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class VectorStep:
    """The meaning of one call of `step` for each environment.

    `stepped` marks the environments that took a step: after an episode's end the call may be
    a reset instead. `started` marks those whose returned observation begins an episode.
    `labels` holds, where stepped, the label of the next observation, and `first_labels`, where
    started, that of the episode's first observation; elsewhere they are undefined. Labels are as
    the environments spell them.
    """

    stepped: Mask
    started: Mask
    labels: Sequence[Any]
    first_labels: Sequence[Any]


class VectorEpisodes:
    """Follow the episodes of a vector environment from its returns.

    `where` names an environment, by its number, in errors.
    """

    def __init__(
        self,
        envs: VectorEnv,
        label_of: Callable[..., Any] | None,
        where: Callable[[int], str] = "environment {}".format,
    ) -> None:
        self.mode = AutoresetMode(envs.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
        self._envs = envs
        self._labels = LabelSource(None, label_of)
        with one_environment(envs) as env:
            self._method = label_method(env) if isinstance(env, gym.Env) else None
        self._where = where
        self._all = np.ones(envs.num_envs, bool)
        self._none = ~self._all
        self._ended = self._none
        self._observations: Any = None
        self._rewards: Any = None

    def reset(self, observations: Any, infos: Infos, mask: Mask | None = None) -> Sequence[Any]:
        """Take the return of a reset of all, or of the masked, environments; return the labels."""
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
        """Take the actions and the return of a step with them."""
        before, ended = self._ended, terminations | truncations
        self._ended, self._rewards = ended, rewards
        if self.mode is AutoresetMode.SAME_STEP and ended.any():
            step = self._step_with_ends(ended, actions, observations, infos)
        elif self.mode is AutoresetMode.NEXT_STEP and before.any():
            labels = self._after_step(~before, actions, observations, infos)
            first_labels = self._first_labels(before, observations, infos)
            step = VectorStep(~before, before, labels, first_labels)
        else:
            labels = self._after_step(self._all, actions, observations, infos)
            step = VectorStep(self._all, self._none, labels, labels)
        self._remember(observations)
        return step

    def final_observations(self, ended: Mask, infos: Infos) -> dict[int, Any]:
        """Return the last observations of environments that ended and were reset in one step."""
        if "final_obs" not in infos:
            raise TraceError(
                'the vector environment resets in the same step but gives no infos["final_obs"]: '
                "use another autoreset mode"
            )
        final = infos["final_obs"]
        if not isinstance(final, np.ndarray):
            final = split(self._envs.observation_space, final)
        return {number: final[number] for number in _numbers(ended)}

    def reached(self, observations: Sequence[Any], ended: Mask, infos: Infos) -> list[Any]:
        """Return the next observation of each step, from the split returned ones."""
        reached = list(observations)
        if self.mode is AutoresetMode.SAME_STEP and ended.any():
            for number, final in self.final_observations(ended, infos).items():
                reached[number] = final
        return reached

    def info_after_step(self, number: int, infos: Infos) -> dict[str, Any]:
        """Return the info of one environment's last step."""
        if self.mode is AutoresetMode.SAME_STEP and self._ended[number]:
            infos = infos.get("final_info", {})  # the others belong to the next episode's reset
        return info_of(number, infos)

    def told_at_reset(self, which: Mask, infos: Infos) -> dict[int, dict[str, Any]]:
        """Return the infos of environments that were reset, with the labels of their method."""
        by_number = {number: info_of(number, infos) for number in _numbers(which)}
        return self._with_labels(which, by_number)

    def told_after_step(self, infos: Infos) -> dict[int, dict[str, Any]]:
        """Return all infos of the last step, with the labels of the environments' method."""
        by_number = {number: self.info_after_step(number, infos) for number in _numbers(self._all)}
        if self.mode is AutoresetMode.SAME_STEP and self._method:
            for number in _numbers(self._ended):
                if not _has_label(by_number[number]):
                    raise self._label_lost()
        return self._with_labels(self._all, by_number)

    def _with_labels(
        self, which: Mask, by_number: dict[int, dict[str, Any]]
    ) -> dict[int, dict[str, Any]]:
        """Add the labels of the environments' method to infos that have none."""
        if self._method and not all(map(_has_label, by_number.values())):
            labels = self._method_labels()
            for number in _numbers(which):
                by_number[number].setdefault(INFO_KEYS[0], labels[number])
        return by_number

    def _method_labels(self) -> Sequence[Any]:
        labels: Sequence[Any] = self._envs.unwrapped.call(self._method)  # type: ignore[attr-defined]
        return labels

    def _label_lost(self) -> TraceError:
        return TraceError(
            f"{self._method}() cannot be asked for the label at an episode's end, since the "
            'next one has begun in the same step: put labels into info["labels"], '
            "pass label_of=, or use another autoreset mode"
        )

    def _step_with_ends(
        self, ended: Mask, actions: Any, observations: Any, infos: Infos
    ) -> VectorStep:
        first_labels = self._first_labels(ended, observations, infos)
        labels = list(self._after_step(~ended, actions, observations, infos))
        final_infos = infos.get("final_info", {})
        if not self._labels.are_made and self._method and not _has_label(final_infos):
            raise self._label_lost()
        final: list[Any] = [None] * self._envs.num_envs
        if self._labels.are_made:
            for number, observation in self.final_observations(ended, infos).items():
                final[number] = observation
        final_labels = self._column(ended, final_infos)
        if final_labels is None:
            final_labels = self._each_after_step(ended, actions, final, final_infos)
        for number in _numbers(ended):
            labels[number] = final_labels[number]
        return VectorStep(self._all, ended, labels, first_labels)

    def _first_labels(self, which: Mask, observations: Any, infos: Infos) -> Sequence[Any]:
        column = self._column(which, infos)
        if column is not None:
            return column
        each = self._split(observations)
        labels: list[Any] = [None] * len(which)
        for number, info in self._infos(which, infos):
            with locating(self._where(number)), locating("reset"):
                labels[number] = self._labels.at_reset(each[number], info)
        return labels

    def _after_step(
        self, which: Mask, actions: Any, observations: Any, infos: Infos
    ) -> Sequence[Any]:
        column = self._column(which, infos)
        if column is not None:
            return column
        return self._each_after_step(which, actions, self._split(observations), infos)

    def _each_after_step(
        self, which: Mask, actions: Any, next_observations: Sequence[Any], infos: Infos
    ) -> list[Any]:
        # Observations and actions are split only if labels depend on them.
        observations = each_action = rewards = next_observations
        if self._labels.of_step:
            observations, rewards = self._split(self._observations), self._rewards
            each_action = split(self._envs.action_space, actions)
        labels: list[Any] = [None] * len(which)
        for number, info in self._infos(which, infos):
            with locating(self._where(number)):
                labels[number] = self._labels.after_step(
                    observations[number],
                    each_action[number],
                    rewards[number],
                    next_observations[number],
                    info,
                )
        return labels

    def _column(self, which: Mask, infos: Infos) -> Sequence[Any] | None:
        """Return the labels in `infos` as they are, if every environment in `which` has one."""
        if self._labels.are_made:
            return None
        for key in INFO_KEYS:
            if key in infos:
                present = infos.get(f"_{key}")
                is_full = present is None or present.all() or present[which].all()
                return infos[key] if is_full else None
        return None

    def _infos(self, which: Mask, infos: Infos) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the number of each environment in `which`, and the info that its label needs."""
        labels: Sequence[Any] | None = None
        for number in _numbers(which):
            if self._labels.reads == STEP_AND_INFO:
                yield number, info_of(number, infos)
                continue
            info = {
                key: infos[key][number]
                for key in INFO_KEYS
                if key in infos and infos.get(f"_{key}", self._all)[number]
            }
            if not (info or self._labels.are_made or self._method is None):
                labels = labels or self._method_labels()
                info = {INFO_KEYS[0]: labels[number]}
            yield number, info

    def _split(self, observations: Any) -> Sequence[Any]:
        """Return the observation of each environment, or None for each if no label needs it."""
        if not self._labels.are_made:
            return [None] * self._envs.num_envs
        return split(self._envs.observation_space, observations)

    def _remember(self, observations: Any) -> None:
        if self._labels.of_step:  # a copy: some vector environments overwrite their batches
            self._observations = copy.deepcopy(observations)


@contextmanager
def one_environment(envs: VectorEnv) -> Iterator[AnyEnv]:
    """Yield one single environment whose attributes stand for those of all.

    If the environments live in other processes, it is a new one, closed afterwards: a missing
    attribute would end those processes. A vector environment without single ones is yielded
    itself.
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
    """Return one environment's part of infos, by Gymnasium's masks.

    Entries without a row for each environment are left out.

    >>> infos = {"cost": np.array([3, 0]), "_cost": np.array([True, False]), "at": [5, 6], "n": 2}
    >>> info_of(0, infos), info_of(1, infos)
    ({'cost': np.int64(3), 'at': 5}, {'at': 6})
    """
    info = {}
    for key, values in infos.items():
        is_mask = key.startswith("_") and key[1:] in infos
        if is_mask or (f"_{key}" in infos and not infos[f"_{key}"][number]):
            continue
        if isinstance(values, Mapping):
            info[key] = info_of(number, values)
        elif isinstance(values, np.ndarray | list | tuple) and number < len(values):
            info[key] = values[number]
    return info


def split(space: gym.Space[Any], batch: Any) -> list[Any]:
    """Return the values of a batch as a list, numbers as plain Python ones."""
    if isinstance(batch, np.ndarray) and batch.ndim == 1:
        values: list[Any] = batch.tolist()
        return values
    return list(iterate(space, batch))


def check_single_resets(envs: VectorEnv, purpose: str) -> None:
    """Raise `OptionError` if single environments cannot be reset while the others go on."""
    inner = envs.unwrapped
    by_mask = (
        envs.metadata.get("autoreset_mode") is AutoresetMode.DISABLED
        or isinstance(inner, gym.vector.SyncVectorEnv | gym.vector.AsyncVectorEnv)
        or getattr(inner, "resets_by_mask", False)
    )
    if not by_mask:
        raise OptionError(
            f"{purpose} of {type(inner).__name__}, which may reset all its environments together: "
            f"give it a time limit of its own, or use gymnasium's SyncVectorEnv"
        )


def _has_label(infos: Infos) -> bool:
    return any(key in infos for key in INFO_KEYS)


def _numbers(which: Mask) -> list[int]:
    numbers: list[int] = np.flatnonzero(which).tolist()
    return numbers
