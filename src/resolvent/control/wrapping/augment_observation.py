"""One environment + machines → the same environment with the machines' states in view."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym

from resolvent.arguments import check_arguments
from resolvent.control.wrapping.augmentation import Mode, augmentation, state_names
from resolvent.control.wrapping.belief_memory import BeliefMemory
from resolvent.control.wrapping.fitting import GivenMachines, check_fit, machines_from
from resolvent.control.wrapping.memory import Memory, OnUnseen
from resolvent.control.wrapping.step_knowledge import StepKnowledge
from resolvent.errors import OptionError
from resolvent.senses.live import LiveSenses
from resolvent.traces.labelling import Labelling
from resolvent.traces.live.answering import of_reset, of_step
from resolvent.traces.live.naming import Labels


class AugmentObservation(
    gym.Wrapper[Any, Any, Any, Any],
    gym.utils.RecordConstructorArgs,
):
    """Puts the states of all machines beside the observation, so that the world is Markovian.

    | `mode` | observations |
    |---|---|
    | "dict" | {"observation", "transition_state", "reward_state"}; a Dict just gains the keys |
    | "flatten" | one vector: the flattened observation, then the states one-hot |
    | "multidiscrete" | a row of numbers: observation(s), transition state, reward state |
    | "discrete" | one number, which `decode` takes apart |
    | "belief" | as "dict", with "transition_belief", …: how likely each state is, as an array |

    Each machine has its state there, in the order of the set and under the name of
    its kind: a third one that predicts "cost" comes last, as "cost_state".
    A "discrete" number is ((o − start) · |Q| + q) · |U| + u, where |Q| and |U| are
    the numbers of states. All count from 0, wherever the inner space starts; "dict" leaves
    numbers as they are unless some are below 0. Parts of nested observations are there by
    names such as "robot/arm", and a text as the numbers of its characters, so that deep
    learners take them; a `SpaceWarning` says which parts they do not take.

    With mode="belief" the states are inferred, where labels lie or starts are hidden, as
    `machines.doubt` says: from the labels that are recorded, and from what each step comes to.
    `info["transition_state"]` is then the most likely state.

    Labels are found as by `rs.collect`: pass the same `label_of` and `name_of`, if any.
    Machines that were inferred with `labels="observation"` and the like make them by
    themselves; for those inferred from traces that `collect` labelled so, pass the same
    `labels`. With
    on_unseen="stay" a label that a machine was never shown leaves its state as it
    is; with "raise" it raises a `ModelError`, except after the episode has
    terminated. `info["transition_state"]`, `info["reward_state"]` and
    `info["unseen"]`, the number of unseen labels in this episode, are there at
    reset and at every step. `info["knowledge"]` says at every step what each machine's
    answer to it rests on: "witnessed", "assumed" or "unseen". By default it does where
    observations and actions are Discrete, so that it is looked up in half a microsecond;
    `knowledge=True` or `False` says it yourself.

    `machines` may be a path: then `env.spec` can be written to JSON and made
    again anywhere the file is. Given the machines themselves, or a `label_of`,
    `gym.make(env.spec)` works in this process only, and `to_json` refuses.

    >>> import gymnasium as gym, resolvent as rs
    >>> env = gym.make("resolvent/House-v0")
    >>> pair = rs.infer(rs.collect(env, episodes=200, seed=0)).machines
    >>> wrapped = AugmentObservation(env, pair)
    >>> wrapped.reset()[0]
    {'observation': 0, 'transition_state': 0, 'reward_state': 0}
    >>> wrapped.step(2)[0]  # left, to where the key is
    {'observation': 1, 'transition_state': 1, 'reward_state': 0}
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        machines: GivenMachines,
        *,
        mode: Mode = "dict",
        on_unseen: OnUnseen = "stay",
        labels: str | Labelling | None = None,
        label_of: Callable[..., Any] | None = None,
        name_of: Callable[[Any], Any] | None = None,
        knowledge: bool | None = None,
    ) -> None:
        if not isinstance(env, gym.Env):
            raise OptionError(
                f"env is a {type(env).__name__}: give a gymnasium.Env, "
                "or use VectorAugmentObservation for a VectorEnv"
            )
        judged = ["env", "machines", "mode", "on_unseen", "label_of"]
        check_arguments(AugmentObservation.__init__, locals(), leaving=judged)
        self.machines = machines_from(machines)
        gym.utils.RecordConstructorArgs.__init__(
            self,
            machines=str(machines) if isinstance(machines, str | Path) else self.machines,
            mode=mode,
            on_unseen=on_unseen,
            labels=labels,
            label_of=label_of,
            name_of=name_of,
            knowledge=knowledge,
            _disable_deepcopy=True,
        )
        gym.Wrapper.__init__(self, env)
        self.live = live = LiveSenses(env, self.machines.senses, labels, label_of, name_of)
        check_fit(self.machines, live, env.observation_space, env.action_space)
        self._augmentation = augmentation(mode, env.observation_space, self.machines)
        self.observation_space = self._augmentation.space
        if mode == "discrete":
            self.observation_names = None  # those of the inner observations name other numbers
        self._belief = (
            BeliefMemory(self.machines, live, on_unseen=on_unseen) if mode == "belief" else None
        )
        self._memory = self._belief or Memory(self.machines, on_unseen=on_unseen)
        self.label_of, self.name_of = live.label_of, name_of
        self._labels = Labels(env, live.label_of)
        self._state_names = state_names(self.machines)
        self._named: dict[tuple[int, ...], dict[str, int]] = {}  # those met, by their states
        self._knowledge: StepKnowledge | None = None
        spaces = env.observation_space, env.action_space
        if knowledge is None:
            knowledge = all(isinstance(space, gym.spaces.Discrete) for space in spaces)
        if knowledge:
            self._knowledge = StepKnowledge(self.machines, live, *spaces)
        self._seen: Any = None
        plainly_labelled = live.label_of is None and name_of is None
        self.is_plain = on_unseen == "stay" and plainly_labelled and self._belief is None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; all machines begin anew."""
        observation, info = of_reset(self.env.reset(seed=seed, options=options))
        self._memory.reset(self._labels.at_reset(observation, info))
        return self._augmented(observation, info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step; all machines read the label it led to."""
        observation, reward, terminated, truncated, info = of_step(self.env.step(action))
        label = self._labels.after_step(self._seen, action, reward, observation, info)
        if self._knowledge is not None:
            levels = self._knowledge.one(self._seen, action, self._memory.values)
            info = {**info, "knowledge": levels}
        if self._belief is not None:
            self._belief.took(self._seen, action, reward, observation, terminated)
        self._memory.step(label, terminated)
        augmented, info = self._augmented(observation, info)
        return augmented, reward, terminated, truncated, info

    @property
    def inner_observation(self) -> Any:
        """What the environment inside showed at the last reset or step."""
        return self._seen

    @property
    def situation(self) -> tuple[Any, ...]:
        """The inner observation and all states, as of the last reset or step."""
        return self._seen, *self._memory.values

    def encode(self, observation: Any, *states: int) -> Any:
        """Return what is shown for an inner observation and the states of all machines."""
        if self._belief is not None:
            raise OptionError('mode="belief" shows how likely states are: it encodes no states')
        return self._augmentation.one(observation, states)

    def decode(self, observation: int) -> tuple[int, ...]:
        """Return the inner observation and all states of a "discrete" one."""
        return self._augmentation.decode(observation)

    def _augmented(self, observation: Any, info: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        self._seen = observation
        memory = self._memory
        states = memory.values
        named = self._named.get(states)
        if named is None:
            named = self._named[states] = dict(zip(self._state_names, states, strict=True))
        info = {**info, **named, "unseen": memory.unseen}
        shown = states if self._belief is None else self._belief.shown
        return self._augmentation.one(observation, shown), info


def augmented_inside(env: gym.Env[Any, Any]) -> AugmentObservation | None:
    """Return the wrapper that puts the machines in view, from under any others."""
    while isinstance(env, gym.Wrapper) and not isinstance(env, AugmentObservation):
        env = env.env
    return env if isinstance(env, AugmentObservation) else None
