"""An environment → the best way to act in it, with a proof or with what is still open."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import gymnasium as gym
import msgspec
import numpy as np

from resolvent.arguments import check_arguments
from resolvent.control.planning.plans import plan
from resolvent.errors import ContradictoryTraces, OptionError, ResolventError, TraceError
from resolvent.exploring.chance import ByChance
from resolvent.exploring.checkpoint import Point, restored
from resolvent.exploring.explorer import Explorer
from resolvent.exploring.repeating import Repeating
from resolvent.exploring.solved import TRACES, Round, Solved
from resolvent.exploring.statement import Kind, Statement
from resolvent.options import Options
from resolvent.samples import LabelTiming
from resolvent.traces import TraceSet
from resolvent.traces.labelling import Labelling
from resolvent.traces.live.rolling import time_limit

MOST_STEPS: Final = 2_000
"""Episodes of an environment without a limit are cut after so many steps."""

FIRST_POINT, POINTS_APART = 500, 1.25
"""When a checkpoint is made: it makes decisions those of whoever resumes there."""

SECONDS_BETWEEN_NEWS: Final = 0.1

WRITING_SHARE: Final = 0.05
"""The share of the time that may be spent on writing checkpoints."""

Listener: TypeAlias = Callable[[Round], object]


def solve(
    env: gym.Env[Any, Any] | str | Callable[[], gym.Env[Any, Any]],
    *,
    labels: str | Labelling = "auto",
    label_of: Callable[..., Any] | None = None,
    name_of: Callable[[Any], Any] | None = None,
    timing: LabelTiming | str | None = None,
    budget: int = 100_000,
    target: float = 0.0,
    states: int | Literal["found"] = "found",
    gamma: float = 0.95,
    reward_range: tuple[float, float] | None = None,
    noise: Literal["auto", "none"] = "auto",
    confidence: float = 0.95,
    max_steps: int | None = None,
    seed: int = 0,
    resume: Solved | str | Path | None = None,
    folder: str | Path | None = None,
    progress: Listener | None = None,
) -> Solved:
    """Find the best way to act in an environment: explore on purpose, learn its memory, plan.

    It goes where something is worth knowing, repairs the machines whenever a step surprises
    them, and stops when nothing better is possible in any world that agrees with what was
    seen and has the states that were found; or says what is still open.

    Args:
        env: The environment, or its Gymnasium id, or a function that makes it.
        labels: Where labels come from; "auto" takes those that the environment tells, and
            otherwise makes them of what is seen and done. Else as in `collect`.
        label_of: A function that makes labels, as in `collect`.
        name_of: A function that names observations, as in `collect`.
        timing: Which labels are read before a step is answered. By default all but the first,
            and the first as well where that is needed.
        budget: How many steps to take at most.
        target: How far below the best the plan may be, at most, from any of the starts.
        states: "found", or how many states the world may have at most: then words of so many
            more labels are read before anything is called optimal.
        gamma: What a reward one step later is worth.
        reward_range: What a step nobody has taken may pay, if other than was ever paid.
        noise: What to do about a world that turns out to be random. "auto": go on with machines
            that say how often what comes, whose plan holds with a confidence. "none": raise
            `ContradictoryTraces`, which says what was seen; a folder keeps all of it.
        confidence: How sure bounds are to be in a random world.
        max_steps: After how many steps an episode is cut; by default the environment's limit,
            or 2,000 where it has none.
        seed: Which all episodes follow from: the same one gives the same result.
        resume: What an earlier call gave, or the folder it wrote, to go on from.
        folder: Where to keep what was found so far, now and then and when it is interrupted.
        progress: Called now and then with how far it is.

    >>> import resolvent as rs
    >>> solved = rs.solve("resolvent/House-v0")
    >>> solved.optimal, solved.states, round(solved.value, 4)
    (True, {'transition': 2, 'reward': 2}, 0.7738)
    >>> print(solved.plan.run(rs.environments.House(), episodes=3))
    3 episodes: mean return 1 (discounted 0.7738), mean length 6; 3 ended, 0 were cut
    """
    check_arguments(solve, locals(), leaving=["env"])
    if budget < 1:
        raise OptionError(f"budget={budget}: allow at least one step")
    if max_steps is not None and max_steps < 1:
        raise OptionError(f"max_steps={max_steps}: allow at least one step")
    if noise not in ("auto", "none"):
        raise OptionError(f"noise={noise!r}: use 'auto' or 'none'")
    if not 0 < confidence < 1:
        raise OptionError(f"confidence={confidence}: use a number above 0 and below 1")
    made, own = _made(env)
    if isinstance(resume, str | Path):
        resume = Solved.load(resume)
    try:
        explorer = Explorer(
            made,
            labels=labels,
            label_of=label_of,
            name_of=name_of,
            timing=timing,
            gamma=gamma,
            reward_range=reward_range,
            target=target,
            states=states,
            seed=seed if resume is None else resume.seed,
        )
        limit = max_steps or (None if time_limit(made) is not None else MOST_STEPS)
        solving = Solving(made, explorer, budget, limit, folder, progress)
        asked = Options(noise="auto", labels=explorer.labelling, timing=timing, seed=seed)  # type: ignore[arg-type]
        chance = ByChance(
            made,
            asked,
            gamma=gamma,
            reward_range=reward_range,
            confidence=confidence,
            limit=limit,
            seed=explorer.seed,
            label_of=label_of,
            name_of=name_of,
            actions=explorer._values,
        )
        if resume is not None and resume.statement.contradiction is not None:
            return solving.by_chance(chance, resume.traces, resume.statement.contradiction)
        try:
            if resume is not None:
                solving.resume(resume)
            return solving.run()
        except ContradictoryTraces as contradiction:
            if noise == "none":
                solving.keep_traces()
                raise
            why = str(contradiction).split(";")[0]
            return solving.by_chance(chance, explorer.traces(), why)
    finally:
        if own:
            made.close()


class Solving:
    """One call of `solve` under way."""

    def __init__(
        self,
        env: gym.Env[Any, Any],
        explorer: Explorer,
        budget: int,
        limit: int | None,
        folder: str | Path | None,
        progress: Listener | None,
    ) -> None:
        self.env, self.explorer = env, explorer
        self.budget, self.limit, self.progress = budget, limit, progress
        self.folder = None if folder is None else Path(folder)
        self.history: list[Round] = []
        self.resets = 0
        self.point: Point | None = None
        self.shown: tuple[Any, Any] | None = None
        self._next_point = FIRST_POINT
        self._written, self._writing, self._told = time.monotonic(), 0.0, 0.0

    def run(self) -> Solved:
        """Explore until nothing is left to find out, or nothing may be spent any more."""
        with _interruptions() as interrupted:
            why = self._explore(interrupted)
        solved = self.solved(why)
        if self.folder is not None:
            solved.save(self.folder)
        return solved

    def by_chance(self, chance: ByChance, traces: TraceSet, why: str) -> Solved:
        """Go on in a world that has turned out to be random."""
        chance.traces = traces
        with _interruptions() as interrupted:
            while True:
                found = chance.think()
                sizes = {kind: one.states for kind, one in found.machines.items()}
                bound = found.bound if np.isfinite(found.bound) else None
                steps, episodes = chance.traces.steps, len(chance.traces)
                self.history.append(
                    Round(steps, episodes, sizes, found.value, bound, "how often what comes")
                )
                if self.progress is not None:
                    self.progress(self.history[-1])
                if (
                    steps >= self.budget
                    or interrupted()
                    or found.largest_gap <= self.explorer.target
                ):
                    break
                chance.explore(found, self.budget, interrupted)
        statement = Statement(
            "chance",
            steps,
            episodes,
            sizes,
            len(found.model),
            0,
            found.model.unknown,
            found.largest_gap,
            1,
            found.reward_range,
            self.explorer.capped,
            found.confidence,
            why,
        )
        solved = Solved(
            found,
            found.machines,
            chance.traces,
            tuple(self.history),
            statement,
            self.explorer.seed,
            self.explorer.reward_range,
        )
        if self.folder is not None:
            solved.save(self.folder)
        return solved

    def keep_traces(self) -> None:
        """Write all that was seen to the folder, where machines cannot explain it."""
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.explorer.traces().save(self.folder / TRACES)

    def _explore(self, interrupted: Callable[[], bool]) -> Kind | None:
        explorer = self.explorer
        while not explorer.done:
            if explorer.steps >= self.budget:
                return "budget"
            if interrupted():
                return "interrupted"
            shown = self.shown or self._reset()
            action = explorer.act(*shown)
            if action is None:
                self.shown = None
                continue
            observation, reward, terminated, truncated, info = _told_by(
                partial(self.env.step, action), "step", 5
            )
            cut = bool(truncated) or len(explorer.mind.cursors[0].episode) + 1 == self.limit
            explorer.learn(action, observation, reward, terminated, cut, info)
            self.shown = None if terminated or cut else (observation, info)
            self._after_step(explorer.changed)
        return None

    def _after_step(self, changed: bool) -> None:
        if changed:
            self._note()
        if self.explorer.steps >= self._next_point and not self.explorer.mind.cursors[0].way:
            self._make_point()
            self._write()
        self._tell()

    def _reset(self) -> tuple[Any, Any]:
        """Begin an episode, by a seed that follows from ours and its number."""
        drawn = np.random.SeedSequence((self.explorer.seed, self.resets)).generate_state(1)[0]
        self.resets += 1
        observation, info = _told_by(partial(self.env.reset, seed=int(drawn) >> 1), "reset", 2)
        return observation, info

    def _note(self) -> None:
        """Put down how far it is, unless that was done hardly any steps ago."""
        steps = self.explorer.steps
        if self.history and steps < 1.02 * self.history[-1].steps:
            return
        self.history.append(self._round(*self.explorer.worth()))

    def _round(self, value: float, bound: float) -> Round:
        explorer = self.explorer
        return Round(
            explorer.steps,
            explorer.episodes,
            explorer.sizes,
            value,
            bound if np.isfinite(bound) else None,
            explorer.after,
        )

    def _tell(self) -> None:
        now = time.monotonic()
        if self.progress is not None and now >= self._told:
            self._told = now + SECONDS_BETWEEN_NEWS
            self.progress(self._round(*self.explorer._worth_before()))

    def _make_point(self) -> None:
        """Work out all that is known anew: from here, whoever resumes decides the same."""
        mind, explorer = self.explorer.mind, self.explorer
        self._note()
        mind.rebuild()
        self._next_point = max(explorer.steps + FIRST_POINT, int(POINTS_APART * explorer.steps))
        self.point = self._point_now()

    def _point_now(self) -> Point:
        mind, explorer = self.explorer.mind, self.explorer
        traces, cursor, tables = explorer.traces(), mind.cursors[0], mind.beliefs.tables
        return Point(
            mind.log.episodes,
            len(cursor.episode) if cursor.goes_on else -1,
            self.resets,
            mind.beliefs.thorough_at,
            [traces.observations.code(one) for one in mind.log.observations.values],
            [traces.labels.code(one) for one in mind.log.labels.values],
            [] if tables is None else list(tables.kinds),
            [] if tables is None else [one.tolist() for one in tables.moves],
            mind.beliefs.options.timing.value,
            explorer.labelling.reads,
            explorer.may_tell,
            explorer.capped,
            len(self.history),
            sorted(list(one) for one in mind.confirmed),
            mind.confirming,
            mind.rechecked,
            mind.beliefs.options.remove_trivial,
        )

    def _write(self) -> None:
        """Write a checkpoint to the folder, if not too much time went into that already."""
        now = time.monotonic()
        if self.folder is None or self._writing > WRITING_SHARE * (now - self._written):
            return
        self.solved("interrupted").save(self.folder)
        self._writing, self._written = time.monotonic() - now, now

    def solved(self, why: Kind | None) -> Solved:
        """Return what was found so far."""
        explorer = self.explorer
        statement = explorer.statement(why)
        machines, traces = explorer.machines(), explorer.traces()
        return Solved(
            plan(machines, traces, gamma=explorer.gamma, reward_range=explorer.reward_range),
            machines,
            traces,
            (*self.history, self._round(*explorer._worth_before())),
            statement,
            explorer.seed,
            explorer.reward_range,
            self._renumbered(self.point, traces),
            tuple(explorer.mind.log.ends),
        )

    def _renumbered(self, point: Point | None, traces: TraceSet) -> Point | None:
        """Return a point with the numbers that observations and labels have in these traces."""
        if point is None:
            return None
        log = self.explorer.mind.log
        seen, read = len(point.observations), len(point.labels)
        return msgspec.structs.replace(
            point,
            observations=[traces.observations.code(one) for one in log.observations.values[:seen]],
            labels=[traces.labels.code(one) for one in log.labels.values[:read]],
        )

    def resume(self, before: Solved) -> None:
        """Go on from what an earlier call gave, without taking its steps again."""
        explorer, mind = self.explorer, self.explorer.mind
        point = before.point or Point(0, -1, 0, mind.beliefs.thorough_at, [], [], may_tell=True)
        found = restored(point, before.traces, list(before.ends), mind.log.actions)
        explorer._restore(point, found.log, found.under_way)
        self.history = list(before.history[: point.rounds])
        self.point, self.resets = before.point, point.resets
        if point.episodes:
            self._next_point = max(explorer.steps + FIRST_POINT, int(POINTS_APART * explorer.steps))
        Repeating(self, found, list(before.ends[point.episodes :])).run()


def _made(
    env: gym.Env[Any, Any] | str | Callable[[], gym.Env[Any, Any]],
) -> tuple[gym.Env[Any, Any], bool]:
    """Return the environment, and whether it was made here."""
    if isinstance(env, gym.Env):
        return env, False
    if isinstance(env, str):
        try:
            return gym.make(env), True
        except gym.error.Error as error:
            raise OptionError(f"cannot make environment '{env}': {error}") from error
    if isinstance(env, gym.vector.VectorEnv) or not callable(env):
        raise OptionError(
            f"solve needs a gymnasium.Env, the id of one or a function that makes one, not a "
            f"{type(env).__name__}: use gym.make"
        )
    made = env()
    if not isinstance(made, gym.Env):
        raise OptionError(f"the function made a {type(made).__name__}: it has to make an Env")
    return made, True


def _told_by(call: Callable[[], Any], method: str, parts: int) -> tuple[Any, ...]:
    """Return what an environment gives, or an error that says what is wrong with it."""
    try:
        given = call()
    except ResolventError:
        raise
    except Exception as error:
        told = f"{type(error).__name__}: {error}".removesuffix(": ")
        raise TraceError(f"the environment's {method}() raised {told}") from error
    if not isinstance(given, tuple) or len(given) != parts:
        wanted = "(observation, info)" if parts == 2 else "five values"
        raise TraceError(f"the environment's {method}() has to return {wanted}")
    return given


@contextmanager
def _interruptions() -> Iterator[Callable[[], bool]]:
    """Give a function that says whether somebody asked to stop; asking twice stops at once."""
    asked: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return

    def note(number: int, frame: Any) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    before = {one: signal.signal(one, note) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(asked)
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
