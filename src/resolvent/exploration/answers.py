"""What machines answered: by their states, by what was seen and by what was done.

All but the first machine are asked beside the state of the first. A question is one number,
so that thousands of answers are noted at once.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.traces.vocabulary import Codes


class OutputTable:
    """The answers of machines of so many states each, in a world of so many actions."""

    def __init__(self, sizes: Sequence[int], actions: int) -> None:
        self._beside, self._actions = sizes[0], actions
        self._spans = [sizes[0], *(size * sizes[0] for size in sizes[1:])]
        self._of: list[dict[int, float]] = [{} for _ in sizes]

    def note(
        self, place: int, states: Sequence[int], observation: int, action: int, answer: float
    ) -> float:
        """Note what a machine answered, and return what it answered the first time."""
        question = self._question(place, states, observation, action)
        return self._of[place].setdefault(question, answer)

    def get(self, place: int, states: Sequence[int], observation: int, action: int) -> float | None:
        """Return what a machine answered; None where it was never asked."""
        return self._of[place].get(self._question(place, states, observation, action))

    def note_all(
        self,
        place: int,
        states: Sequence[Codes],
        observations: Codes,
        actions: Codes,
        answers: NDArray[Any],
    ) -> None:
        """Note what a machine answered at many steps, each of which has a state."""
        wide = [one.astype(np.int64) for one in states]
        questions = self._question(place, wide, observations.astype(np.int64), actions)
        self._of[place].update(zip(questions.tolist(), answers.tolist(), strict=True))

    def _question(self, place: int, states: Any, observation: Any, action: Any) -> Any:
        own = states[0] if place == 0 else states[place] * self._beside + states[0]
        return (observation * self._spans[place] + own) * self._actions + action
