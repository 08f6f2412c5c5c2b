"""One call of `solve` under way: episode after episode, with checkpoints, until it is enough."""

import copy
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np

from resolvent._util.interrupts import stop_requests
from resolvent.control.planning.plans import Plan
from resolvent.errors import (
    EnvironmentFailed,
    ModelError,
    OptionError,
    ResolventError,
    ResumeWarning,
    TraceError,
    locating,
)
from resolvent.exploration.buffer import CUT
from resolvent.exploration.checkpoint import Checkpoint, restored, whole_point
from resolvent.exploration.environment import EnvironmentId
from resolvent.exploration.explorer import Explorer
from resolvent.exploration.relabel import describe_labeling, stored_sources
from resolvent.exploration.replay_log import LogReplay
from resolvent.exploration.runner import Shown, playing
from resolvent.exploration.solution import TRACES, Round, Solved
from resolvent.exploration.stochastic import StochasticSolver
from resolvent.exploration.stopping import Kind, Statement
from resolvent.traces import TraceSet
from resolvent.traces.live.naming import AnyEnv
from resolvent.wording import amount

MOST_STEPS: Final = 2_000
"""Episodes of an environment without a limit are cut after so many steps."""

FIRST_POINT, POINTS_APART = 500, 1.25
"""When a checkpoint is made: it makes decisions those of whoever resumes there."""

ENOUGH_READINGS: Final = 1_000
"""After so many steps numbers would have come back, if they ever did."""

SECONDS_BETWEEN_NEWS: Final = 0.1

WRITING_SHARE: Final = 0.05
"""The share of the time that may be spent on writing to the folder."""

FIRST_WRITTEN: Final = 0.1
"""So many seconds pass at least before anything is written to the folder."""

Listener: TypeAlias = Callable[[Round], object]


class SolveRun:
    """One call of `solve` under way."""

    def __init__(
        self,
        env: AnyEnv,
        explorer: Explorer,
        budget: int,
        limit: int | None,
        folder: str | Path | None,
        progress: Listener | None,
        world: EnvironmentId | None = None,
    ) -> None:
        self.playing, self.explorer, self.world = playing(env), explorer, world
        self.limit = limit or (None if self.playing.has_limit else MOST_STEPS)
        if budget < self.playing.count:
            raise OptionError(
                f"budget={budget}: allow at least one step in each of the "
                f"{self.playing.count} environments"
            )
        self.budget, self.progress = budget, progress
        self.folder = None if folder is None else Path(folder)
        self.history: list[Round] = []
        self.resets = 0
        self.point: Checkpoint | None = None
        self.shown: dict[int, Shown] = {}
        self.began: dict[int, int] = {}
        """The number of the reset that each environment's last episode began with."""
        self.chosen: dict[int, Any] = {}
        self._next_point, self._many_open = FIRST_POINT, 1
        self._written, self._writing, self._told = time.monotonic(), 0.0, 0.0

    def run(self) -> Solved:
        """Explore until nothing is left to find out, or nothing may be spent any more."""
        with stop_requests() as interrupted:
            try:
                why = self._explore(interrupted)
            except TraceError as error:
                raise self._failed(error) from error
        if why == "interrupted" and not self.explorer.steps:
            raise KeyboardInterrupt
        return self._kept(self.solved(why))

    def _kept(self, solved: Solved) -> Solved:
        if self.folder is not None:
            solved.save(self.folder)
        return solved

    def _failed(self, error: TraceError, solved: Solved | None = None) -> EnvironmentFailed:
        """Return the error for an environment that failed, with what was found until then."""
        failed = EnvironmentFailed(str(error))
        if solved is None and self.explorer.steps:
            with suppress(ResolventError):  # too few steps may not even make machines
                solved = self.solved("failed", str(error))
        if solved is not None:
            failed.solved = self._kept(solved)
            if self.folder is not None:
                failed = EnvironmentFailed(
                    f"{error} (what was found is kept in {self.folder}: resume goes on from there)"
                )
                failed.solved = solved
        elif self.explorer.steps:
            self.keep_traces()
        return failed

    def by_chance(self, chance: StochasticSolver, why: str) -> Solved:
        """Go on in a world that has turned out to be random."""
        with stop_requests() as interrupted:
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
                solved = self._kept(self._solved_by_chance(chance, found, why))
                settled = chance.gap(found) <= self.explorer.target
                if settled or steps >= self.budget or interrupted():
                    return solved
                try:
                    chance.explore(found, self.budget, interrupted)
                except TraceError as error:
                    raise self._failed(
                        error, self._solved_by_chance(chance, found, why, str(error))
                    ) from error

    def _solved_by_chance(
        self, chance: StochasticSolver, found: Plan, why: str, failure: str | None = None
    ) -> Solved:
        statement = Statement(
            "chance",
            chance.traces.steps,
            len(chance.traces),
            {kind: one.states for kind, one in found.machines.items()},
            len(found.model),
            0,
            found.model.unknown,
            chance.gap(found),
            1,
            found.reward_range,
            self.explorer.capped + chance.capped,
            found.confidence,
            why,
            labels=describe_labeling(chance.options.labels),  # type: ignore[arg-type]
            failure=failure,
        )
        return Solved(
            found,
            found.machines,
            chance.traces,
            tuple(self.history),
            statement,
            self.explorer.seed,
            self.explorer.reward_range,
            world=self.world,
        )

    def keep_traces(self) -> None:
        """Write all that was seen to the folder, where machines cannot explain it."""
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.explorer.traces().save(self.folder / TRACES)

    def _explore(self, interrupted: Callable[[], bool]) -> Kind | None:
        explorer, count = self.explorer, self.playing.count
        while not explorer.done:
            if explorer.relabelled:  # which may have come of asking
                self._make_point()
            if explorer.steps + count > self.budget:
                return "budget"
            if interrupted():
                return "interrupted"
            if explorer.steps >= ENOUGH_READINGS and explorer.sees_numbers_once:
                return "readings"
            self._begin()
            for which in range(count):
                if which not in self.chosen:
                    action = explorer.act(*self.shown[which], which)
                    if action is None:
                        del self.shown[which]
                    else:
                        self.chosen[which] = action
            if len(self.chosen) == count:
                self._step()
        return None

    def _step(self) -> None:
        explorer, cursors, chosen = self.explorer, self.explorer.mind.cursors, self.chosen
        self.chosen = {}
        with locating(f"episode {explorer.episodes}: step {len(cursors[0].episode)}"):
            came = self.playing.step(chosen)
        # All of them are learned from or none is: whoever goes on finds them side by side.
        told = [
            explorer._told(one.action, one.observation, one.reward, one.info, one.which)
            for one in came
        ]
        changed = False
        for one, step in zip(came, told, strict=True):
            cut = one.truncated or len(cursors[one.which].episode) + 1 == self.limit
            explorer._take(one.which, step, ended=one.terminated, cut=cut)
            changed |= explorer.changed
            self.shown[one.which] = one.observation, one.info
            if one.terminated or cut:
                del self.shown[one.which]
        self._after_step(changed)

    def _after_step(self, changed: bool) -> None:
        """Do what is due after a step in every environment."""
        self._check_late_labels()
        if changed:
            self._note()
        # The ways of many are never all at their end.
        free = self.playing.count > 1 or not self.explorer.mind.cursors[0].way
        if self.explorer.relabelled or (free and self.explorer.steps >= self._next_point):
            self._make_point()
        self._write()
        self._tell()

    def _check_late_labels(self) -> None:
        """With labels that are read late, see at once whether a plan can go by them."""
        model = self.explorer.mind.model
        if model is None or not model.lag or len(model.nondeterministic) < self._many_open:
            return
        self._many_open = 2 * len(model.nondeterministic)
        self._plan()

    def _plan(self) -> Plan:
        try:
            return self.explorer.plan()
        except ModelError:  # labels that are read late may be such that no plan can go by them
            self.keep_traces()
            raise

    def _begin(self) -> None:
        """Begin episodes where none is, each by a seed that follows from ours and its number."""
        idle = [one for one in range(self.playing.count) if one not in self.shown]
        for which in idle:
            self.began[which] = self.resets
            self.resets += 1
        self.reset(idle)

    def reset(self, which: Iterable[int]) -> None:
        """Reset environments, each by the seed of the episode that it began last."""
        seeds = {}
        for one in which:
            drawn = np.random.SeedSequence((self.explorer.seed, self.began[one])).generate_state(1)
            seeds[one] = int(drawn[0]) >> 1
        if seeds:
            with locating(f"episode {self.explorer.episodes}"):
                self.shown.update(self.playing.reset(seeds))

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
        self.chosen = {}
        for cursor in mind.cursors:  # an episode without a step leaves no trace
            if cursor.goes_on and not len(cursor.episode):
                mind.stop(cursor)
                self.shown.pop(cursor.place, None)
        mind.log.forget_left_starts([one.episode for one in mind.cursors])
        mind.rebuild()
        explorer.relabelled = False
        self._plan_point()
        self.point = self._point_now()

    def _plan_point(self) -> None:
        """Say when the next point is due."""
        steps = self.explorer.steps
        self._next_point = max(steps + FIRST_POINT, int(POINTS_APART * steps))

    def _point_now(self) -> Checkpoint:
        mind, explorer = self.explorer.mind, self.explorer
        traces, tables = explorer.traces(), mind.beliefs.tables
        first, *beside = [len(one.episode) if one.goes_on else -1 for one in mind.cursors]
        return Checkpoint(
            mind.log.episodes,
            first,
            self.resets,
            mind.beliefs.thorough_at,
            mind.log.observations.numbers_in(traces.observations),
            mind.log.labels.numbers_in(traces.labels),
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
            stored_sources(explorer.labelling),
            explorer.events_at,
            explorer.events_states,
            beside,
            [self.began.get(which, 0) for which in range(self.playing.count)],
        )

    def _write(self) -> None:
        """Write what was found to the folder, if not too much time went into that already."""
        now = time.monotonic()
        since = now - self._written
        if self.folder is None or since < max(FIRST_WRITTEN, self._writing / WRITING_SHARE):
            return
        if self.explorer.mind.beliefs.tables is None:
            return
        with self._leaving_all_as_it_is():
            self.solved("interrupted").save(self.folder)
        self._written = time.monotonic()
        self._writing = self._written - now

    @contextmanager
    def _leaving_all_as_it_is(self) -> Iterator[None]:
        """Have nothing follow from when a folder is written: that depends on the clock."""
        mind = self.explorer.mind
        hopes, weighed = copy.copy(mind.hopes), mind._weighed_at
        try:
            yield
        finally:
            mind.hopes, mind._weighed_at = hopes, weighed

    def solved(self, why: Kind | None, failure: str | None = None) -> Solved:
        """Return what was found so far."""
        explorer, mind = self.explorer, self.explorer.mind
        if explorer.relabelled:
            self._make_point()
        statement = explorer.statement(why, failure)
        found, traces = self._plan(), explorer.traces()
        under_way = [one.place for one in mind.cursors if len(one.episode)]
        places = (*mind.log.places, *under_way) if self.playing.count > 1 else ()
        return Solved(
            found,
            found.machines,
            traces,
            (*self.history, self._round(*explorer._worth_before())),
            statement,
            explorer.seed,
            explorer.reward_range,
            self._renumbered(self.point, traces),
            tuple(mind.log.ends),
            places,
            self.world,
        )

    def _renumbered(self, point: Checkpoint | None, traces: TraceSet) -> Checkpoint | None:
        """Return a point with the numbers that observations and labels have in these traces."""
        if point is None:
            return None
        log = self.explorer.mind.log
        return msgspec.structs.replace(
            point,
            observations=log.observations.numbers_in(traces.observations, len(point.observations)),
            labels=log.labels.numbers_in(traces.labels, len(point.labels)),
        )

    def resume(self, before: Solved) -> None:
        """Go on from what an earlier call gave, without taking its steps again."""
        explorer, mind = self.explorer, self.explorer.mind
        labelling = before.machines.senses.labelling
        if not explorer._auto and explorer.labelling != labelling:
            raise ModelError(
                f"what to go on from has other labels ({labelling.reads}, not "
                f"{explorer.labelling.reads}): resume with the same ones"
            )
        count, traces = self.playing.count, before.traces
        ends, places = list(before.ends), list(before.places) or [0] * len(traces)
        point = before.point or Checkpoint(
            0, -1, 0, mind.beliefs.thorough_at, [], [], may_tell=True, beside=[-1] * (count - 1)
        )
        were = max(places, default=0) + 1 if before.point is None else len(point.lengths)
        if were != count:  # more or fewer side by side: those under way are cut
            if len(ends) < len(traces):
                warnings.warn(
                    f"{amount(were, 'environment')} side by side before, {count} now: what was "
                    f"seen stays, and episodes that were under way count as cut",
                    ResumeWarning,
                    stacklevel=3,
                )
            ends, places = ends + [CUT] * (len(traces) - len(ends)), [0] * len(traces)
            resets = max(point.resets, len(traces))
            point = whole_point(
                traces, labelling, mind.beliefs.options, resets, point.capped, count
            )
        fits = point.episodes <= len(ends) <= len(traces) == len(places)
        if not (fits and set(places) <= set(range(count))):
            raise ModelError("what to go on from is damaged: its episodes do not fit its traces")
        found = restored(point, traces, ends, places, mind.log.actions)
        explorer._restore(point, found.log, found.under_way)
        self.history = list(before.history[: point.rounds])
        self.point, self.resets = before.point, point.resets
        self.began = dict(enumerate(point.began or [point.resets - 1]))
        if mind.log.steps and mind.beliefs.tables is None:  # there were more or fewer
            mind.beliefs.rethink(())
            mind.rebuild()
            self._make_point()
        self._plan_point()
        try:
            LogReplay(self, found).run()
        except TraceError as error:
            raise self._failed(error, before) from error
