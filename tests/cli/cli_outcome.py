"""What a command leaves behind: an exit code and two streams."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one object on standard output; anything else there is an error."""
        return json.loads(self.out)

    @property
    def error(self) -> str:
        """The one line on standard error, with nothing on standard output."""
        assert self.out == ""
        assert self.err.endswith("\n")
        assert self.err.count("\n") == 1, self.err
        assert self.err.startswith("resolvent: error: ")
        return self.err.removeprefix("resolvent: error: ")


Run = Callable[..., Outcome]
