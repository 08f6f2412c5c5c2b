"""What is left out of a piece of files since some of them are damaged, as plain data."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

from resolvent.errors import DamagedFile, TableWarning
from resolvent.wording import amount


@dataclass(frozen=True)
class Gap:
    """What of a piece is left out.

    Attributes:
        piece: What the piece is called.
        rows: How many rows it says it holds, if all of it is left out and that is known.
        whole: Whether all of it is left out.
        first: Whether its first episode is, which may have begun where nothing can be read.
        last: Whether its last episode is, which may go on there.
        why: What is damaged.
    """

    piece: str
    rows: int | None = None
    whole: bool = False
    first: bool = False
    last: bool = False
    why: str = ""

    @property
    def episodes(self) -> int:
        """How many episodes are left out of a piece that can be read."""
        return self.first + self.last


def gaps_text(gaps: Mapping[int, Gap]) -> str:
    """Say in one line what was left out.

    >>> gaps_text({3: Gap("a", 7, whole=True, why="a: damaged"), 4: Gap("b", first=True)})
    '1 piece that cannot be read is left out, with 7 rows (a: damaged), and 1 episode beside it \
that may lack rows'
    """
    whole = [gap for gap in gaps.values() if gap.whole]
    episodes = sum(gap.episodes for gap in gaps.values())
    rows = sum(gap.rows or 0 for gap in whole)
    unknown = sum(gap.rows is None for gap in whole)
    parts = []
    if whole:
        counted = [amount(rows, "row")] * (unknown < len(whole))
        counted += [f"{amount(unknown, 'file')} of unknown length"] * bool(unknown)
        more = f", and {len(whole) - 1:,} more" * (len(whole) > 1)
        be = "is" if len(whole) == 1 else "are"
        parts.append(
            f"{amount(len(whole), 'piece')} that cannot be read {be} left out, with "
            f"{' and '.join(counted)} ({whole[0].why}{more})"
        )
    if episodes:
        beside = f" beside {'it' if len(whole) == 1 else 'them'}" if whole else " left out"
        why = "" if whole else f" ({next(gap.why for gap in gaps.values())})"
        parts.append(f"{amount(episodes, 'episode')}{beside} that may lack rows{why}")
    return ", and ".join(parts)


def tell_of(gaps: Mapping[int, Gap], traces: int) -> None:
    """Warn of what was left out, if anything was, when so many traces are left.

    Raises:
        DamagedFile: when none are.
    """
    if not gaps:
        return
    if not traces:
        raise DamagedFile(f"no traces are left: {gaps_text(gaps)}")
    warnings.warn(gaps_text(gaps), TableWarning, stacklevel=4)
