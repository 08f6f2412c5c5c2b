"""Acting in an environment so that as much as possible is learned that is worth knowing.

Whoever has a loop of their own asks an `Explorer` what to do and tells it what came of it;
`solve` is such a loop.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import gymnasium as gym
import numpy as np

from resolvent.arguments import check_arguments, shown
from resolvent.control.planning.plans import Plan, plan
from resolvent.control.planning.promises import too_large_to_add_up
from resolvent.control.planning.situations import situation_text
from resolvent.errors import ContradictoryTraces, ModelError, OptionError, TraceError, locating
from resolvent.events import FoundEvents
from resolvent.exploration.actions import list_actions
from resolvent.exploration.buffer import CUT, Episode, Buffer
from resolvent.exploration.build_machines import build_machines
from resolvent.exploration.checkpoint import Checkpoint
from resolvent.exploration.hypothesis import Hypothesis
from resolvent.exploration.learner import EpisodeState, Mind
from resolvent.exploration.relabel import (
    AFTER_NONE,
    EVENTS_APART,
    FIRST_EVENTS,
    MANY_MOVES,
    OBSERVATIONS,
    OUTGROWN,
    discover_labels,
    describe_labeling,
    count_states,
    restored_labelling,
)
from resolvent.exploration.runner import spaces_of
from resolvent.exploration.stopping import Kind, Statement
from resolvent.exploration.tables import TransitionTables
from resolvent.exploration.truncation import always_truncated
from resolvent.exploration.values import largest_gap, promised
from resolvent.machines import Machines
from resolvent.options import Options
from resolvent.pipeline import EVERYTHING
from resolvent.result import InferenceResult
from resolvent.samples import LabelTiming
from resolvent.traces import TraceSet
from resolvent.traces.labelling import GIVEN, Labelling, as_labelling
from resolvent.traces.live.answering import check_info, ended
from resolvent.traces.live.naming import AnyEnv, Labels, MadeOf, Names, finite_reward, label_method
from resolvent.traces.live.vector_naming import one_environment
from resolvent.traces.symbols import INFO_KEYS, Label, Symbol, symbol_text


@dataclass(frozen=True, slots=True)
class EncodedStep:
    """What came of a step, in the words of machines; the action is a number."""

    action: int
    reward: float
    observation: Symbol
    label: Label


MAX_ENVIRONMENTS: Final = 1 << 16
"""Episodes that may be under way at once."""


class Explorer:
    """Decides what to do in an environment, step by step, and learns from what comes of it.

    Ask `act` what to do and tell `learn` what came of it. Where `act` returns None, nothing more
    is to be had from this episode: reset the environment, and ask again. `done` says when
    nothing is left to find out, and `statement()` what holds then.

    With `which`, several episodes are played side by side, as in a vector environment: what
    one of them shows, all know.

    >>> import gymnasium as gym, resolvent as rs
    >>> env = gym.make("resolvent/House-v0")
    >>> explorer = rs.Explorer(env, seed=0)
    >>> observation, info = env.reset(seed=0)
    >>> while not explorer.done:
    ...     action = explorer.act(observation, info)
    ...     if action is None:
    ...         observation, info = env.reset()
    ...         continue
    ...     observation, reward, terminated, truncated, info = env.step(action)
    ...     explorer.learn(action, observation, reward, terminated, truncated, info)
    ...     if terminated or truncated:
    ...         observation, info = env.reset()
    >>> explorer.plan().is_optimal, {kind: one.states for kind, one in explorer.machines().items()}
    (True, {'transition': 2, 'reward': 2})
    """

    def __init__(
        self,
        env: AnyEnv,
        *,
        labels: str | Labelling = "auto",
        label_of: Callable[..., Any] | None = None,
        name_of: Callable[[Any], Any] | None = None,
        timing: LabelTiming | str | None = None,
        gamma: float = 0.95,
        reward_range: tuple[float, float] | None = None,
        target: float = 0.0,
        states: int | Literal["found"] = "found",
        seed: int = 0,
    ) -> None:
        if not isinstance(env, gym.Env | gym.vector.VectorEnv):
            raise OptionError(f"env is a {type(env).__name__}: give a gymnasium.Env or VectorEnv")
        check_arguments(Explorer.__init__, locals(), leaving=["env", "states"])
        _check(gamma, target, states, seed)
        self.gamma, self.reward_range, self.seed = gamma, reward_range, seed
        self.target, self.states = target, states
        single, (space, _) = isinstance(env, gym.Env), spaces_of(env)
        with _standing_for(env) as one:
            self._observations = Names(one, "observation", name_of)
            self._names = Names(one, "action")
            tells = isinstance(one, gym.Env) and label_method(one) is not None
        self._values = list_actions(space)
        symbols = [self._names(value) for value in self._values]
        self._codes = {symbol: code for code, symbol in enumerate(symbols)}
        self._env: gym.Env[Any, Any] | None = env if single else None  # type: ignore[assignment]
        self._auto = labels == "auto" and label_of is None
        self.labelling = GIVEN if labels == "auto" else as_labelling(labels, label_of, found=True)
        self._label_of = label_of
        self.may_tell = self._auto and not tells
        self.events_at, self.events_states = FIRST_EVENTS, 0
        self.relabelled = False
        options = Options(
            noise="none",
            timing=timing,  # type: ignore[arg-type]
            seed=seed,
        )
        log = Buffer(symbols)
        self.mind = Mind(
            log,
            Hypothesis(options, log, may_time=timing is None),
            gamma=gamma,
            seed=seed,
            reward_range=reward_range,
            states=None if states == "found" else states,
            target=target,
        )
        self._make_labels()
        self._last: dict[int, Any] = {}
        self.capped = 0
        self.changed = False

    @property
    def steps(self) -> int:
        """How many steps were taken so far."""
        return self.mind.steps

    @property
    def episodes(self) -> int:
        """How many episodes with any steps are over."""
        return self.mind.log.episodes

    @property
    def done(self) -> bool:
        """Whether nothing is left to find out."""
        return self.mind.settled and not self._rethinks() and not self._tries_actions()

    def _rethinks(self) -> bool:
        """Think it all over once more before it is called done: is there another explanation?"""
        if self.mind.thought_over:
            return False
        self.mind.thought_over = not self.mind.rethink()
        return not self.mind.thought_over

    def _tries_actions(self) -> bool:
        """Where nothing pays, read what is done as well: what is seen may not show what counts."""
        if not self.mind.vacuous or not self._auto or self.labelling.reads != "observation":
            return False
        self._read(EVERYTHING)
        return True

    @property
    def after(self) -> str:
        """What it is after at the moment, in words."""
        return next((one.why for one in self.mind.cursors if one.goes_on), "")

    @property
    def sizes(self) -> dict[str, int]:
        """How many states each machine has that it believes in."""
        tables = self.mind.beliefs.tables
        return {} if tables is None else dict(zip(tables.kinds, tables.sizes, strict=True))

    def worth(self) -> tuple[float, float]:
        """Return what acting by the plan is worth at least, and by how much more others may be."""
        model = self.mind.model
        if model is None:
            return 0.0, float("inf")
        self.mind.weigh()
        return promised(model, self.mind.hopes)

    def _worth_before(self) -> tuple[float, float]:
        """Return the same as it was when that was worked out last, which costs nothing."""
        model = self.mind.model
        return (0.0, float("inf")) if model is None else promised(model, self.mind.hopes)

    def act(self, observation: Any, info: Mapping[str, Any], which: int = 0) -> Any:
        """Return what to do now, or None where the episode is of no more use: then reset.

        If no episode is under way, one begins with this observation.
        """
        cursor = self._cursor(which)
        with locating(f"episode {self.mind.log.episodes}"):
            seen = self._seen(observation)
            if not cursor.goes_on:
                with locating("reset"):
                    check_info(info)
                    label = self._labels.at_reset(observation, info)
                log = self.mind.log
                self.mind.begin(cursor, log.observation(seen), log.label(label))
            elif self.mind.log.observations.codes.get(seen) != cursor.episode.observations[-1]:
                raise TraceError(
                    f"step {len(cursor.episode)}: act() was shown another observation than the "
                    f"last step led to: tell learn() of every step, with truncated=True where "
                    f"the environment is reset"
                )
        self._last[which] = observation
        action = self.mind.act(cursor)
        if action is None:
            self.mind.stop(cursor)
            return None
        return self._values[action]

    def learn(
        self,
        action: Any,
        observation: Any,
        reward: Any,
        terminated: bool,
        truncated: bool,
        info: Mapping[str, Any],
        which: int = 0,
    ) -> None:
        """Take what came of an action, which may be another than `act` gave.

        `changed` says then whether the machines had to change.

        Raises:
            ContradictoryTraces: when the world turns out to be random.
        """
        step = self._told(action, observation, reward, info, which)
        over, cut = ended(terminated, "terminated"), ended(truncated, "truncated")
        self._take(which, step, ended=over, cut=cut)

    def _told(
        self, action: Any, observation: Any, reward: Any, info: Mapping[str, Any], which: int
    ) -> "EncodedStep":
        """Return what a step tells in the words of machines, or refuse it; nothing is learned."""
        cursor = self._cursor(which)
        if not cursor.goes_on:
            raise OptionError("learn() before act(): show act() what the environment's reset gave")
        at = f"episode {self.mind.log.episodes}"
        if len(self.mind.cursors) > 1:
            at = f"environment {which}"
        with locating(at), locating(f"step {len(cursor.episode)}"):
            check_info(info)
            self._settle_labels(info)
            done = self._codes.get(self._names(action))
            if done is None:
                raise OptionError(f"action {shown(action)} is not one of the environment's")
            paid, seen = finite_reward(reward), self._seen(observation)
            label = self._labels.after_step(
                self._last.get(which), action, reward, observation, info
            )
            complaint = too_large_to_add_up(abs(paid), self.gamma, self.steps + 1)
            if complaint is not None:
                raise TraceError(complaint)
            return EncodedStep(done, paid, seen, label)

    def _seen(self, observation: Any) -> Symbol:
        with locating("the observation"):
            return self._observations(observation)

    def _take(self, which: int, step: "EncodedStep", *, ended: bool, cut: bool) -> None:
        """Take a step; where labels do not explain it, have others."""
        mind, cursor, label = self.mind, self._cursor(which), step.label
        self.capped += cut and not ended
        if not self.labelling.is_given:  # it may be another one since the step was told
            label = self.labelling.after_step(mind.log.actions[step.action], step.observation)
        seen, read = mind.log.observation(step.observation), mind.log.label(label)
        try:
            self.changed = mind.learn(
                cursor, step.action, step.reward, seen, read, ended=ended, cut=cut
            )
        except ContradictoryTraces:
            if not self._tell_more():
                raise
            self.changed = True
        else:
            if self.changed or self.steps >= self.events_at:
                self._tell_less()

    def cut(self, which: int = 0) -> None:
        """End an episode that the environment did not end, as a limit on its length does."""
        self.mind.close(self._cursor(which), CUT)
        self.capped += 1

    def _value(self, action: int) -> Any:
        """Return the environment's action of a number."""
        return self._values[action]

    def _saw_last(self, observation: Any, which: int = 0) -> bool:
        """Whether this is what the last step of an episode led to."""
        self._last[which] = observation
        seen = self.mind.log.observations.codes.get(self._observations(observation))
        return seen == self._cursor(which).episode.observations[-1]

    def _cursor(self, which: int) -> EpisodeState:
        """Return where one of the episodes is."""
        if not isinstance(which, int | np.integer) or not 0 <= which < MAX_ENVIRONMENTS:
            raise OptionError(
                f"which={shown(which)}: number the episodes that are played side by side from 0 "
                f"on, up to {MAX_ENVIRONMENTS - 1:,}"
            )
        while len(self.mind.cursors) <= which:
            self.mind.cursors.append(EpisodeState(len(self.mind.cursors)))
        return self.mind.cursors[which]

    def _make_labels(self) -> None:
        label_of = self._label_of
        if not self.labelling.is_given:
            label_of = MadeOf(self.labelling, self._observations, self._names)
        self._labels = Labels(self._env, label_of)

    def _settle_labels(self, info: Mapping[str, Any]) -> None:
        """Make labels of what is seen if the first step shows that the environment tells none."""
        if not self.may_tell:
            return
        self.may_tell = False
        if not any(key in info for key in INFO_KEYS):
            self._relabel(OBSERVATIONS)

    def _relabel(self, labelling: Labelling) -> None:
        self.labelling, self.relabelled = labelling, True
        self._make_labels()
        under_way = [one.episode for one in self.mind.cursors if one.goes_on]
        self.mind.log.relabel(labelling, under_way)

    def _read(
        self, labelling: Labelling, found: FoundEvents[InferenceResult] | None = None
    ) -> None:
        """Read other labels from now on, and believe in machines for these."""
        self._relabel(labelling)
        beliefs = self.mind.beliefs
        timing = LabelTiming.CURRENT if found is None else found.timing
        beliefs.options = replace(beliefs.options, timing=timing)
        beliefs.tables = (
            None if found is None else TransitionTables.of(found.inferred.machines, beliefs.log)
        )
        if beliefs.tables is None:
            beliefs.repair(one.episode for one in self.mind.cursors)
        else:
            self.events_states = sum(beliefs.tables.sizes)
        self.mind.confirm_anew()
        self.mind.rebuild()

    def _events(self) -> FoundEvents[InferenceResult] | None:
        """Look for few events, unless that was done hardly any steps ago."""
        if self.steps < self.events_at:
            return None
        found = discover_labels(self.traces(), self.mind.beliefs.options)
        self.events_at = int((AFTER_NONE if found is None else EVENTS_APART) * self.steps)
        return found

    def _tell_more(self) -> bool:
        """Where labels do not explain the world, make them of what else is seen and done."""
        if not self._auto or self.labelling in (GIVEN, EVERYTHING):
            return False
        found = self._events()
        if found is not None:
            self._read(found.labelling, found)
            return True
        if self.labelling.events is not None:  # other sources may have been events after all
            self._read_all()
        else:
            self._read(EVERYTHING)
        return True

    def _tell_less(self) -> None:
        """Where there is much to test, read few events instead of all that is seen or done.

        Events that need ever more states to explain what comes were not the right ones.
        """
        tables, labels = self.mind.beliefs.tables, len(self.mind.log.labels)
        model = self.mind.model
        if not self._auto or self.labelling == GIVEN or tables is None or model is None:
            return
        states, few = sum(tables.sizes), self.labelling.events is not None
        outgrown = few and states > OUTGROWN * self.events_states
        # Labels that change nothing anywhere are no trouble, however many there are.
        many = not few and states * (labels - len(model.neutral_labels)) >= MANY_MOVES
        hidden = not many and self._is_done_hidden(states, labels)
        if not (outgrown or many or hidden):
            return
        found = self._events()
        if found is not None and found.labelling != self.labelling:
            other = sum(one.states for one in found.inferred.machines.values())
            classes = len(set((found.labelling.events or {}).values()))
            if other <= states and (few or classes + 1 < labels):
                self._read(found.labelling, found)
                return
        if outgrown:
            self._read_all()
        elif hidden:
            self._read(EVERYTHING)

    def _is_done_hidden(self, states: int, labels: int) -> bool:
        """Whether half as many states do if what is done is read as well, where there are many.

        Whoever reads only what is seen needs ever more of them to guess what was done.
        """
        if self.labelling != OBSERVATIONS or states <= labels or self.steps < self.events_at:
            return False
        needed = count_states(EVERYTHING, self.traces(), self.mind.beliefs.options)
        if needed is not None and 2 * needed <= states:
            return True
        self.events_at = int(EVENTS_APART * self.steps)
        return False

    def _read_all(self) -> None:
        """Have each observation be a label; where that explains too little, with the action."""
        try:
            self._read(OBSERVATIONS)
        except ContradictoryTraces:
            self._read(EVERYTHING)

    def _restore(self, point: Checkpoint, log: Buffer, under_way: Sequence[Episode | None]) -> None:
        """Go back to where exploring was at a checkpoint."""
        mind, beliefs = self.mind, self.mind.beliefs
        if self._auto:
            self.labelling = restored_labelling(point.labelling, point.events)
            self.events_at = point.events_at or FIRST_EVENTS
            self.events_states = point.events_states
        self._make_labels()
        self.may_tell, self.capped = self.may_tell and point.may_tell, point.capped
        mind.log = beliefs.log = log
        beliefs.tables, beliefs.thorough_at = point.tables, point.thorough_at
        beliefs.options = replace(
            beliefs.options,
            timing=LabelTiming(point.timing),
            remove_trivial=point.remove_trivial,
        )
        mind.confirmed = {tuple(one) for one in point.confirmed}
        mind.confirming, mind.rechecked = point.confirming, point.rechecked
        mind.cursors = [EpisodeState(place) for place in range(len(under_way))]
        for cursor, episode in zip(mind.cursors, under_way, strict=True):
            if episode is not None:
                cursor.episode, cursor.goes_on = episode, True
        mind.rebuild()

    @property
    def sees_numbers_once(self) -> bool:
        """Whether what is seen are measured numbers, hardly any of which ever came back."""
        seen = self.mind.log.observations.values
        if len(seen) < 0.9 * (self.steps + self.episodes):
            return False
        return any(isinstance(one, float) and not one.is_integer() for one in _parts(seen[0]))

    def traces(self) -> TraceSet:
        """Return all that was seen and done, with episodes under way as traces cut short."""
        return self.mind.log.traces(0, [one.episode for one in self.mind.cursors])

    def machines(self) -> Machines:
        """Return the machines that explain everything so far."""
        mind = self.mind
        tables = mind.beliefs.tables
        if tables is None:
            if not self.steps:
                raise ModelError("nothing was seen yet: take at least one step")
            tables = mind.beliefs.repair(one.episode for one in mind.cursors)
            mind.rebuild()
        columns = mind.log.columns(0, [one.episode for one in mind.cursors])
        return build_machines(
            tables.for_labels(len(mind.log.labels)),
            mind.log,
            columns,
            self.traces(),
            mind.beliefs.options,
            self.labelling,
        )

    def plan(self) -> Plan:
        """Return the best way to act by what is known so far."""
        return plan(
            self.machines(), self.traces(), gamma=self.gamma, reward_range=self.reward_range
        )

    def statement(self, kind: Kind | None = None, failure: str | None = None) -> Statement:
        """Say what holds now; `kind` is why it stopped, where that is another reason than done."""
        mind, model = self.mind, self.mind.model
        mind.weigh()
        gap = float("inf")
        if model is not None and not mind.vacuous:
            gap = largest_gap(model, mind.hopes)
        if kind is None:
            kind = "optimal" if gap == 0 else "target" if gap <= self.target else "out of reach"
            if mind.vacuous:
                kind = "nothing pays"
        varies = self._varying() if kind == "out of reach" else None
        least, most = (0.0, 0.0) if model is None else (model.least, model.most)
        return Statement(
            kind,
            self.steps,
            self.episodes,
            self.sizes,
            0 if model is None else len(model),
            0 if model is None else len(model.queries_after),
            0 if model is None else int(np.count_nonzero(mind.hopes.matters)),
            gap,
            mind.depth,
            self.reward_range or (least, most),
            self.capped,
            contradiction=varies,
            at_most=mind.states,
            tests=mind.doubts.tests,
            untold=mind.doubts.untold,
            labels=describe_labeling(self.labelling),
            failure=failure,
            cut=always_truncated(mind.beliefs.tables, mind.log),
        )

    def _varying(self) -> str | None:
        """Say after which step something else comes each time, if hope is left for one such."""
        model, hopes = self.mind.model, self.mind.hopes
        if model is None:
            return None
        for row, action in sorted(model.nondeterministic):
            if hopes.level(row, action):
                seen, *states = model.augmented_states[row]
                where = situation_text((self.mind.log.observations.values[seen], *states))
                done = symbol_text(self.mind.log.actions[action])
                return f"which label comes after {done} in {where}, or whether it ends, varies"
        return None


def _parts(symbol: Any) -> Iterator[Any]:
    """Go through what a symbol is made of, however deep."""
    if isinstance(symbol, tuple):
        for one in symbol:
            yield from _parts(one)
    else:
        yield symbol


@contextmanager
def _standing_for(env: AnyEnv) -> Iterator[AnyEnv]:
    """Give an environment to look at: it itself, or one that stands for many side by side."""
    if isinstance(env, gym.Env):
        yield env
    else:
        with one_environment(env) as one:
            yield one


def _check(gamma: float, target: float, states: Any, seed: int) -> None:
    if not 0 < gamma <= 1:
        raise OptionError(f"gamma={gamma}: use a number above 0, up to 1")
    if not target >= 0:
        raise OptionError(f"target={target}: use a number from 0 on")
    if not (isinstance(states, str) and states == "found") and (
        not isinstance(states, int) or states < 1
    ):
        raise OptionError(f"states={shown(states)}: use 'found', or how many there are at most")
    if seed < 0:
        raise OptionError(f"seed={seed}: use at least 0")
