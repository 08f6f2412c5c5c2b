"""Steps that were taken before → the explorer as it was after them, without taking them again.

An explorer decides by what it was shown alone. So it is shown the same once more, and
environments are reset as they were; only for the episodes that were under way at last are the
actions done again, so that the environments are where they were.
"""

import warnings
from typing import TYPE_CHECKING

from resolvent.errors import ResumeWarning, TraceError
from resolvent.exploration.buffer import CUT, ENDED, STOPPED
from resolvent.exploration.checkpoint import RestoredLog
from resolvent.exploration.explorer import EncodedStep
from resolvent.exploration.learner import EpisodeState
from resolvent.exploration.runner import StepResult, Shown
from resolvent.traces.symbols import Label
from resolvent.wording import amount

if TYPE_CHECKING:
    from resolvent.exploration.run import SolveRun


class LogReplay:
    """Shows an explorer what it was shown before.

    Every environment takes a step whenever the others do. So what each of them was shown, one
    after another, is all that there is to know of the order in which steps were taken.

    An environment that does not begin as it did then is one whose episodes do not follow from
    seeds; what was seen counts all the same.
    """

    def __init__(self, solving: "SolveRun", found: RestoredLog) -> None:
        self.solving, self.later, self.coding = solving, found.later, found.coding
        self.explorer, self.mind = solving.explorer, solving.explorer.mind
        self.all = range(solving.playing.count)
        self.shown = [0 if one is None else len(one) for one in found.under_way]
        """How many steps were shown of the first of the later episodes."""

    def run(self) -> None:
        """Go through all episodes, and bring the environments to where the last ones stopped."""
        solving, ready = self.solving, set[int]()
        under_way = (one for one in self.mind.cursors if one.goes_on)
        solving.shown = {one.place: (None, {}) for one in under_way}
        while all(map(self._goes_on, self.all)) and not self.explorer.done:
            solving._begin()
            for which in self.all:
                if which not in ready and self._decides(which):
                    ready.add(which)
            if len(ready) == len(self.all):
                ready.clear()
                self._step()
        if len(self.all) == 1:
            self._stop_at_last()
        solving.shown = {}
        self._catch_up()

    def _goes_on(self, which: int) -> bool:
        """Whether a step is left to be shown to one of them."""
        later, shown = self.later[which], self.shown[which]
        return len(later) > 1 or (len(later) == 1 and shown < len(later[0][0]))

    def _decides(self, which: int) -> bool:
        """Have it decided what to do in one of them; False where another episode has to begin."""
        cursor = self.explorer._cursor(which)
        if not cursor.goes_on:
            if self.explorer.act(*self.solving.shown[which], which) is None:
                del self.solving.shown[which]
                return False
            self._begin_as_before(cursor)
            return True
        self.mind.act(cursor)
        if self.shown[which] < len(self.later[which][0][0]):
            return True
        self._stop(cursor)
        return False

    def _stop(self, cursor: EpisodeState) -> None:
        """Leave an episode that was left."""
        self.mind.stop(cursor)
        del self.solving.shown[cursor.place]
        self._is_over(cursor.place)

    def _is_over(self, which: int) -> None:
        self.later[which].popleft()
        self.shown[which] = 0

    def _begin_as_before(self, cursor: EpisodeState) -> None:
        episode, log = self.later[cursor.place][0][0], self.mind.log
        seen = log.observation(self.coding.observations.values[episode.observations[0]])
        label = log.label(self.coding.labels.values[episode.labels[0]])
        if (cursor.episode.observations[0], cursor.episode.labels[0]) != (seen, label):
            self.mind.begin(cursor, seen, label)

    def _step(self) -> None:
        """Show what came of the next step in every environment."""
        changed = False
        for which in self.all:
            (episode, end), step = self.later[which][0], self.shown[which]
            self.shown[which] += 1
            last = step + 1 == len(episode)
            told = EncodedStep(
                episode.actions[step],
                episode.rewards[step],
                self.coding.observations.values[episode.observations[step + 1]],
                self.coding.labels.values[episode.labels[step + 1]],
            )
            ended, cut = last and end == ENDED, last and end == CUT
            self.explorer._take(which, told, ended=ended, cut=cut)
            changed |= self.explorer.changed
            if ended or cut:
                del self.solving.shown[which]
                self._is_over(which)
        self.solving._after_step(changed)

    def _stop_at_last(self) -> None:
        """Leave an episode that was left at last; of many, it is found out again who leaves."""
        cursor = self.explorer._cursor(0)
        left = cursor.goes_on and bool(self.later[0]) and self.later[0][0][1] == STOPPED
        if left and not self._goes_on(0) and not self.explorer.done:
            self.mind.act(cursor)
            self._stop(cursor)

    def _catch_up(self) -> None:
        """Do the actions of the episodes under way again; cut those that lead elsewhere."""
        under_way = {one.place: one for one in self.mind.cursors if one.goes_on}
        try:
            lost = self._repeated(under_way)
            why = "the environment does not do the same again by the same seed and actions"
        except TraceError as error:  # what failed then may fail again, and is left alone
            lost, why = set(under_way), str(error)
        for which in sorted(lost):
            self.mind.close(under_way[which], CUT)
        if lost:
            warnings.warn(
                f"{amount(len(lost), 'episode')} under way could not be brought back ({why}): "
                f"what was seen stays, as of an episode that was cut",
                ResumeWarning,
                stacklevel=5,
            )
        self.solving.shown = {
            which: one
            for which, one in self.solving.shown.items()
            if which in under_way and which not in lost
        }

    def _repeated(self, under_way: dict[int, EpisodeState]) -> set[int]:
        """Do the actions once more, so that all are through at the same time.

        Those whose turn has not come yet, and those without an episode, do the first action there
        is until then. Return those that were led elsewhere.
        """
        solving, lost = self.solving, set[int]()
        longest = max((len(one.episode) for one in under_way.values()), default=0)
        left = {which: len(one.episode) for which, one in under_way.items()}
        ended = set(self.all)
        for remaining in range(longest, 0, -1):
            begins = {which for which, length in left.items() if length == remaining}
            solving.reset(sorted(ended | begins))
            lost |= {one for one in begins if not self._is_begun(under_way[one])}
            actions = {}
            for which in self.all:
                turn = left.get(which, 0) >= remaining
                done = under_way[which].episode.actions[-remaining] if turn else 0
                actions[which] = self.explorer._value(done)
            before, came = dict(solving.shown), solving.playing.step(actions)
            for one in came:
                solving.shown[one.which] = one.observation, one.info
                turn = left.get(one.which, 0) >= remaining
                if turn and not self._is_as_before(under_way[one.which], remaining, before, one):
                    lost.add(one.which)
            ended = {one.which for one in came if one.terminated or one.truncated}
        saw = self.explorer._saw_last
        return lost | {which for which in under_way if not saw(solving.shown[which][0], which)}

    def _is_begun(self, cursor: EpisodeState) -> bool:
        label = self.explorer._labels.at_reset(*self.solving.shown[cursor.place])
        return self._is_label(label, cursor.episode.labels[0])

    def _is_as_before(
        self, cursor: EpisodeState, remaining: int, before: dict[int, Shown], came: StepResult
    ) -> bool:
        label = self.explorer._labels.after_step(
            before[came.which][0], came.action, came.reward, came.observation, came.info
        )
        over = came.terminated or came.truncated
        place = len(cursor.episode.labels) - remaining
        return not over and self._is_label(label, cursor.episode.labels[place])

    def _is_label(self, label: Label, code: int) -> bool:
        """Whether a label is the one of this number."""
        return self.mind.log.labels.codes.get(label) == code
