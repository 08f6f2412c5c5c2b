"""Steps that were taken before → the explorer as it was after them, without taking them again.

An explorer decides by what it was shown alone. So it is shown the same once more, and
environments are reset as they were; only for the episode that was under way at last are the
actions done again, so that the environment is where it was.
"""

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from resolvent.errors import TraceError
from resolvent.exploring.checkpoint import Restored
from resolvent.exploring.log import CUT, ENDED, STOPPED, Episode

if TYPE_CHECKING:
    from resolvent.exploring.exploration import Solving


class Repeating:
    """Shows an explorer what it was shown before.

    An environment that does not begin as it did then is one whose episodes do not follow from
    seeds; what was seen counts all the same.
    """

    def __init__(self, solving: "Solving", found: Restored, ends: list[int]) -> None:
        self.solving, self.later, self.ends = solving, found.later, ends
        self.explorer, self.mind = solving.explorer, solving.explorer.mind
        self.under_way, self.coding = found.under_way, found.coding

    def run(self) -> None:
        """Go through all episodes, and bring the environment to where the last one stopped."""
        for number, episode in enumerate(self.later):
            end = self.ends[number] if number < len(self.ends) else None
            if not self._begin(episode, first=number == 0):
                return
            self._go_through(episode, end)
        if self.mind.cursors and self.mind.cursors[0].goes_on:
            self._catch_up()

    def _begin(self, episode: Episode, first: bool) -> bool:
        """Reset until an episode begins that is worth any steps; False where none is."""
        cursor = self.explorer._cursor(0)
        if first and self.under_way is not None:
            return True
        log = self.mind.log
        while not self.explorer.done:
            observation, info = self.solving._reset()
            if self.explorer.act(observation, info) is not None:
                break
        else:
            return False
        seen = log.observation(self.coding.observations.values[episode.seen[0]])
        label = log.label(self.coding.labels.values[episode.labels[0]])
        if (cursor.episode.seen[0], cursor.episode.labels[0]) != (seen, label):
            self.mind.begin(cursor, seen, label)
        return True

    def _go_through(self, episode: Episode, end: int | None) -> None:
        cursor, mind, log = self.explorer._cursor(0), self.mind, self.mind.log
        for step in range(len(cursor.episode), len(episode)):
            if self.explorer.done or not cursor.goes_on:
                break
            mind.act(cursor)
            last = step + 1 == len(episode)
            ended, cut = last and end == ENDED, last and end == CUT
            self.explorer._take(
                cursor,
                episode.actions[step],
                episode.rewards[step],
                log.observation(self.coding.observations.values[episode.seen[step + 1]]),
                self.coding.labels.values[episode.labels[step + 1]],
                ended=ended,
                cut=cut,
            )
            self.solving._after_step(self.explorer.changed)
        if end == STOPPED and cursor.goes_on and not self.explorer.done:
            mind.act(cursor)
            mind.stop(cursor)

    def _catch_up(self) -> None:
        """Do the actions of the episode under way again; cut it if they lead elsewhere."""
        cursor, explorer, solving = self.mind.cursors[0], self.explorer, self.solving
        episode, labels = cursor.episode, explorer._labels
        solving.resets -= 1
        shown: tuple[Any, Any] = solving._reset()
        with suppress(TraceError):  # what failed then may fail again, and is left alone
            same = self._is_label(labels.at_reset(*shown), episode.labels[0])
            for step, action in enumerate(episode.actions):
                if not same:
                    break
                value, before = explorer._value(action), shown[0]
                (came,) = solving.playing.step({0: value})
                shown = came.observation, came.info
                label = labels.after_step(before, value, came.reward, *shown)
                same = self._is_label(label, episode.labels[step + 1])
                same = same and not (came.terminated or came.truncated)
            if same and explorer._saw_last(shown[0]):
                solving.shown = {0: shown}
                return
        self.mind.close(cursor, CUT)
        solving.shown = {}

    def _is_label(self, label: Any, code: int) -> bool:
        """Whether a label is the one of this number."""
        return self.mind.log.labels.codes.get(label) == code
