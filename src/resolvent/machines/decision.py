"""One decision of the search for a machine, told in the machine's own states."""

from typing import NamedTuple

from resolvent.traces.symbols import Label


class Decision(NamedTuple):
    """Where a label leads from a state, and on what that rests.

    Either `target` was found to be a `new` state, for it could be none of those
    known; or all that follows the label was merged into a state known already:
    `agreeing` answers were the same on both sides, none differed, and `folded`
    nodes of the prefix tree went away. A merge with few agreeing answers is one
    that little speaks for, though nothing speaks against it.
    """

    source: int
    label: Label
    target: int
    new: bool
    agreeing: int
    folded: int
