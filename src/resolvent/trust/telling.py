"""How far gathering evidence is → whoever listens."""

from collections.abc import Callable

from resolvent.progress import Listener, Progress

CoreListener = Callable[[int, int, int, int], object]
"""Told by the core the four numbers of a `Progress`."""


class Teller:
    """Tells a listener, if there is one, how far each stage is."""

    def __init__(self, listener: Listener | None, about: str = "") -> None:
        self.listener, self._about = listener, about

    def of(self, about: str) -> "Teller":
        """Return one that puts what it is about before each stage."""
        return Teller(self.listener, f"{about}: ")

    def begin(self, stage: str) -> CoreListener | None:
        """Say that a stage begins; return what the core tells how far it is."""
        listener, text = self.listener, self._about + stage
        if listener is None:
            return None
        listener(text, Progress(0, 0, 0, 0))
        return lambda *numbers: listener(text, Progress(*numbers))
