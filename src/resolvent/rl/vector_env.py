"""Follow the episodes of a Gymnasium vector environment, in any autoreset mode.

Input: the returns of `reset` and `step`. Output: which environments took a step or began an
episode, their last observations and infos, and the labels.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import iterate
from numpy.typing import NDArray

from resolvent.errors import OptionError, TraceError, locating
from resolvent.rl.env import AnyEnv, LabelSource, label_method, reads_infos
from resolvent.traces.symbols import INFO_KEYS

VectorEnv: TypeAlias = gym.vector.VectorEnv[Any, Any, Any]
Mask: TypeAlias = NDArray[np.bool_]
Infos: TypeAlias = Mapping[str, Any]
VectorReturn: TypeAlias = tuple[Any, Any, Mask, Mask, dict[str, Any]]
"""The return of a step: observations, rewards, terminations, truncations, infos."""


class VectorEpisodes:
    """Follow the episodes of a vector environment from its returns.

    `ended` marks the environments whose last step ended an episode. With `asks_labels`, infos
    without a label get that of the environments' method, if they have one.
    """

    def __init__(self, envs: VectorEnv, *, asks_labels: bool = True) -> None:
        self.mode = AutoresetMode(envs.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
        self.all = np.ones(envs.num_envs, bool)
        self.none = ~self.all
        self.ended: Mask = self.none
        self._envs = envs
        self._method: str | None = None
        if asks_labels:
            with one_environment(envs) as env:
                self._method = label_method(env) if isinstance(env, gym.Env) else None

    def reset(self, mask: Mask) -> None:
        """Begin episodes in the masked environments."""
        self.ended = self.ended & ~mask

    def step(self, terminations: Mask, truncations: Mask) -> tuple[Mask, Mask]:
        """Return which environments stepped (the call may be a reset), and which began."""
        ended_before, self.ended = self.ended, terminations | truncations
        if self.mode is AutoresetMode.SAME_STEP:
            return self.all, self.ended
        if self.mode is AutoresetMode.NEXT_STEP:
            return ~ended_before, ended_before
        return self.all, self.none

    @property
    def reset_in_step(self) -> Mask:
        """The environments whose last step ended an episode and began the next."""
        return self.ended if self.mode is AutoresetMode.SAME_STEP else self.none

    def final_observations(self, infos: Infos) -> dict[int, Any]:
        """Return the last observations of environments that ended and were reset in one step."""
        numbers = numbers_in(self.reset_in_step)
        if not numbers:
            return {}
        if "final_obs" not in infos:
            raise TraceError(
                'the vector environment resets in the same step but gives no infos["final_obs"]: '
                "use another autoreset mode"
            )
        final = infos["final_obs"]
        if not isinstance(final, np.ndarray):
            final = split(self._envs.observation_space, final)
        return {number: final[number] for number in numbers}

    def reached(self, observations: Any, infos: Infos) -> list[Any]:
        """Return the observation that each environment's step led to, given the returned batch."""
        reached = split(self._envs.observation_space, observations)
        for number, final in self.final_observations(infos).items():
            reached[number] = final
        return reached

    def info_after_step(self, number: int, infos: Infos) -> dict[str, Any]:
        """Return the info of one environment's last step."""
        if self.reset_in_step[number]:
            infos = infos.get("final_info", {})  # the others belong to the next episode
        return info_of(number, infos)

    def infos_at_reset(self, which: Mask, infos: Infos) -> dict[int, dict[str, Any]]:
        """Return the infos of environments that were reset, by their numbers."""
        by_number = {number: info_of(number, infos) for number in numbers_in(which)}
        return self._labeled(by_number, self.none)

    def infos_after_step(self, which: Mask, infos: Infos) -> dict[int, dict[str, Any]]:
        """Return the infos of the environments' last steps, by their numbers."""
        by_number = {number: self.info_after_step(number, infos) for number in numbers_in(which)}
        return self._labeled(by_number, self.reset_in_step)

    def _labeled(
        self, by_number: dict[int, dict[str, Any]], reset: Mask
    ) -> dict[int, dict[str, Any]]:
        """Add the labels of the environments' method, if they have one, to infos without any."""
        unlabeled = [
            number
            for number, info in by_number.items()
            if self._method and not any(key in info for key in INFO_KEYS)
        ]
        if any(reset[number] for number in unlabeled):
            raise TraceError(
                f"{self._method}() cannot report the label at an episode's end, since the "
                'next one has begun in the same step: put labels into info["labels"], '
                "pass labeling_fn=, or use another autoreset mode"
            )
        if unlabeled:
            labels = self._envs.unwrapped.call(self._method)  # type: ignore[attr-defined]
            for number in unlabeled:
                by_number[number][INFO_KEYS[0]] = labels[number]
        return by_number


@dataclass(frozen=True, slots=True)
class VectorStep:
    """The meaning of one call of `step` for each environment.

    `stepped` marks the environments that took a step, `started` those whose returned observation
    begins an episode, and `begins` says whether there are any. `labels` are, where stepped, those
    of next observations, `first_labels`, where started, those of first ones, as spelled there.
    """

    stepped: Mask
    started: Mask
    begins: bool
    labels: Sequence[Any]
    first_labels: Sequence[Any]


class VectorLabels:
    """Find the labels of a vector environment's observations: `LabelSource` for its returns.

    `where` names an environment, by its number, in errors. With `remembers`, `observations` are
    the last ones that were returned.
    """

    def __init__(
        self,
        envs: VectorEnv,
        labeling_fn: Callable[..., Any] | None,
        where: Callable[[int], str] = "environment {}".format,
        *,
        remembers: bool = False,
    ) -> None:
        self.episodes = VectorEpisodes(envs, asks_labels=reads_infos(labeling_fn))
        self.observations: Any = None
        self._envs, self._where = envs, where
        self._source = LabelSource(None, labeling_fn)
        self._remembers = remembers or self._source.of_step

    def reset(self, observations: Any, infos: Infos, mask: Mask) -> Sequence[Any]:
        """Take the return of a reset of the masked environments; return the labels."""
        self.episodes.reset(mask)
        self._remember(observations)
        return self._at_reset(mask, observations, infos)

    def step(self, actions: Any, returned: VectorReturn) -> VectorStep:
        """Take the actions and the return of a step with them."""
        observations, rewards, terminations, truncations, infos = returned
        stepped, started = self.episodes.step(terminations, truncations)
        labels = self._column_after_step(stepped, infos)
        if labels is None:
            labels = self._each_after_step(stepped, actions, observations, rewards, infos)
        begins = started is not self.episodes.none and bool(started.any())
        first_labels = self._at_reset(started, observations, infos) if begins else ()
        self._remember(observations)
        return VectorStep(stepped, started, begins, labels, first_labels)

    def _at_reset(self, which: Mask, observations: Any, infos: Infos) -> Sequence[Any]:
        column = self._column(which, infos)
        if column is not None:
            return column
        each = split(self._envs.observation_space, observations)
        labels: list[Any] = [None] * len(which)
        for number, info in self.episodes.infos_at_reset(which, infos).items():
            with locating(self._where(number)), locating("reset"):
                labels[number] = self._source.at_reset(each[number], info)
        return labels

    def _column_after_step(self, which: Mask, infos: Infos) -> Sequence[Any] | None:
        reset = self.episodes.reset_in_step
        if reset is self.episodes.none or not reset.any():
            return self._column(which, infos)
        column = self._column(which & ~reset, infos)
        final = self._column(reset, infos.get("final_info", {}))
        if column is None or final is None:
            return None
        labels = list(column)
        for number in numbers_in(reset):
            labels[number] = final[number]
        return labels

    def _each_after_step(
        self, which: Mask, actions: Any, observations: Any, rewards: Any, infos: Infos
    ) -> list[Any]:
        info_of_number = self.episodes.infos_after_step(which, infos)
        before = each_action = reached = self.episodes.reached(observations, infos)
        if self._source.of_step:
            before = split(self._envs.observation_space, self.observations)
            each_action = split(self._envs.action_space, actions)
        labels: list[Any] = [None] * len(which)
        for number, info in info_of_number.items():
            with locating(self._where(number)):
                labels[number] = self._source.after_step(
                    before[number], each_action[number], rewards[number], reached[number], info
                )
        return labels

    def _column(self, which: Mask, infos: Infos) -> Sequence[Any] | None:
        """Return the labels in `infos` as they are, if every environment in `which` has one."""
        if self._source.are_made:
            return None
        key = next((key for key in INFO_KEYS if key in infos), None)
        if key is None:
            return None
        present = infos.get(f"_{key}")
        return infos[key] if present is None or present.all() or present[which].all() else None

    def _remember(self, observations: Any) -> None:
        if self._remembers:  # a copy: some vector environments overwrite their batches
            self.observations = copy.deepcopy(observations)


@contextmanager
def one_environment(envs: VectorEnv) -> Iterator[AnyEnv]:
    """Yield one single environment whose attributes stand for those of all.

    If the environments live in other processes, it is a new one, closed afterwards: a missing
    attribute would end those processes. A vector environment without single ones is yielded itself.
    """
    inner = envs.unwrapped
    if isinstance(inner, gym.vector.SyncVectorEnv):
        yield inner.envs[0]
    elif isinstance(inner, gym.vector.AsyncVectorEnv):
        with closing(inner.env_fns[0]()) as env:
            yield env
    else:
        yield envs


def info_of(number: int, infos: Infos) -> dict[str, Any]:
    """Return one environment's part of infos by Gymnasium's masks, without what has no row."""
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


def numbers_in(which: Mask) -> list[int]:
    """Return the numbers of the masked environments."""
    numbers: list[int] = np.flatnonzero(which).tolist()
    return numbers
