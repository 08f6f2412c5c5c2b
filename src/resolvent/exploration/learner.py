"""Steps and what came of them → what is known, for any number of episodes side by side; in codes.

A step that was not foreseen ends the way, and the machines are mended at once.
"""

from typing import Final

from resolvent.exploration.buffer import CUT, ENDED, STOPPED, Episode
from resolvent.exploration.empirical_model import UNKNOWN, EmpiricalModel
from resolvent.exploration.tests import PLAN_HOLDS, EpisodeState, Deciding
from resolvent.exploration.values import TESTED
from resolvent.exploration.words import AGAIN, without_neutral, recent_labels

FIRST_STEPS: Final = 8
"""So many steps are taken at random before machines are thought of."""


class Mind(Deciding):
    """One knowledge of a world: it learns from every step, and decides on the next."""

    def begin(self, cursor: EpisodeState, seen: int, label: int) -> None:
        """Take what a reset showed."""
        cursor.episode = Episode()
        cursor.episode.begin(seen, label)
        cursor.goes_on, cursor.way = True, []
        self._calm += 1
        cursor.row = UNKNOWN
        if self.model is not None:
            if self.model.is_new_start(seen, label):
                self._calm = 0
                self.settled = self.thought_over = False
            cursor.row = self.model.begin(seen, label)
        cursor.start, cursor.context, cursor.before = cursor.row, (-1, seen, label), ()

    def learn(
        self,
        cursor: EpisodeState,
        action: int,
        reward: float,
        seen: int,
        label: int,
        *,
        ended: bool,
        cut: bool,
    ) -> bool:
        """Take a step and what came of it; return whether the machines had to change."""
        before = cursor.episode.labels[-1]
        cursor.episode.step(action, reward, seen, label)
        model, row = self.model, cursor.row
        if model is None:
            wrong = self.steps >= FIRST_STEPS or ended or cut
        elif row == UNKNOWN:
            wrong = True
        else:
            wrong = self._foreseen(model, cursor, action, reward, seen, label, before, ended)
        if ended or cut:
            self.close(cursor, ENDED if ended else CUT)
        if wrong:
            self.beliefs.repair(one.episode for one in self.cursors)
            self.confirm_anew()
            self.rebuild()
        return wrong

    def confirm_anew(self) -> None:
        """Take it that the plan was never carried out, since machines are others now."""
        self.confirmed.clear()
        self.confirming = 0

    def _foreseen(
        self,
        model: EmpiricalModel,
        cursor: EpisodeState,
        action: int,
        reward: float,
        seen: int,
        label: int,
        before: int,
        ended: bool,
    ) -> bool:
        """Compare a step with what is known, and return whether that is wrong."""
        row, planned = cursor.row, cursor.way[:1]
        model.note_query_at(cursor.context, cursor.before, row, action)
        if self._asked is not None:  # the last label is that of what the step led to
            history = without_neutral(model, cursor.episode.labels[1:-1])
            self._asked.add(history, model.augmented_states[row][0], action)
        read = before if model.lag else label
        if read not in model.neutral_labels:
            cursor.before = cursor.context
            cursor.context = (read, *model.augmented_states[row][1:])
            model.note_word(recent_labels(model, cursor.episode))
        taken = model.add_step(row, action, reward, seen, label, before, ended)
        cursor.row = taken.following if taken.following >= 0 else UNKNOWN
        if planned == [(row, action)]:
            cursor.way.pop(0)
            self.confirming += cursor.why == PLAN_HOLDS
            self.rechecked += cursor.why in (AGAIN, TESTED)
            if cursor.way and cursor.way[0][0] != taken.following:
                cursor.way = []
            elif (
                not cursor.way
                and cursor.why == PLAN_HOLDS
                and taken.surprise is None
                and cursor.start != UNKNOWN
            ):
                self.confirmed.add(model.augmented_states[cursor.start])
        else:  # somebody else decided
            cursor.way = []
        if taken.news:
            self.settled = self.thought_over = False
            self._given_up.clear()
            self._given_up_pairs.clear()
        self.surprises += taken.surprise is not None
        return taken.surprise is not None

    def stop(self, cursor: EpisodeState) -> None:
        """End an episode that is of no more use."""
        self.close(cursor, STOPPED)

    def close(self, cursor: EpisodeState, end: int) -> None:
        """Put an episode with those that are over."""
        known, carried_out = self.model, cursor.way and cursor.why == PLAN_HOLDS
        if known is not None and carried_out and end == CUT and cursor.start != UNKNOWN:
            self.confirmed.add(known.augmented_states[cursor.start])  # for as long as episodes last
        self.log.close(cursor.episode, end, cursor.place)
        cursor.episode, cursor.goes_on, cursor.way = Episode(), False, []
        cursor.row = UNKNOWN

    def rethink(self) -> bool:
        """Infer machines from scratch once more; return whether others are believed in now."""
        before = self.beliefs.tables
        after = self.beliefs.rethink((one.episode for one in self.cursors), last=True)
        if before is not None and after.equals(before):
            return False
        self.confirm_anew()
        self.rebuild()
        return True

    def rebuild(self) -> None:
        """Work out anew what is known, from what is believed and what was seen."""
        if self.beliefs.tables is None:
            return
        columns = self.log.columns(0, [one.episode for one in self.cursors])
        tables = self.beliefs.tables = self.beliefs.tables.for_labels(len(self.log.labels))
        self.model = EmpiricalModel(tables, self.log, columns)
        self._weighed_at, self._rated_at = -1, (-1, -1)
        self.settled, self._empty, self._calm = False, 0, 0
        self.thought_over = False
        self._given_up.clear()
        self._given_up_pairs.clear()
        self._asked = None
        self.doubts.forget()
        for cursor in self.cursors:
            cursor.way = []
            if cursor.goes_on:
                cursor.row, cursor.context, cursor.before = self.model.locate(cursor.episode)
                cursor.start = UNKNOWN if len(cursor.episode) else cursor.row


__all__ = ["EpisodeState", "Mind"]
