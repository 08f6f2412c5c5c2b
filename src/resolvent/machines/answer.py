"""One entry of a machine's output table."""

from typing import Any, NamedTuple

from resolvent.machines.knowledge import Knowledge
from resolvent.traces.symbols import Symbol


class Answer(NamedTuple):
    """One entry of a machine's output table; `state` is None where all states agree."""

    state: int | None
    observation: Symbol
    action: Symbol
    output: Any

    @property
    def knowledge(self) -> Knowledge:
        """What the answer rests on; one for all states is assumed in those never asked."""
        return Knowledge.ASSUMED if self.state is None else Knowledge.WITNESSED
