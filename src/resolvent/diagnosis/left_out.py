"""Files that cannot be read → a warning of what machines do not know for that reason."""

from collections.abc import Iterator

from resolvent.diagnosis.findings import Finding, Severity
from resolvent.errors import DamagedFile
from resolvent.replay import Corpus
from resolvent.traces.gap import gaps_text
from resolvent.traces.shards import gaps_of

LEFT_OUT = "left-out"
"""What the warning is called."""

_MOST_NAMED = 100
"""So many pieces are named in the figures."""


def left_out(corpus: Corpus) -> Iterator[Finding]:
    """Say what was left out as files are damaged.

    Raises:
        DamagedFile: when nothing is left.
    """
    gaps = gaps_of(corpus.shards)
    if not gaps:
        return
    text = gaps_text(gaps)
    if corpus.traces == 0:
        raise DamagedFile(f"there is nothing to infer from: {text}")
    whole = [gap for gap in gaps.values() if gap.whole]
    yield Finding(
        LEFT_OUT,
        Severity.WARNING,
        f"Of {len(corpus.shards):,} pieces of files not all could be read: {text}. Make the files "
        f"again, and infer once more.",
        {
            "pieces": [gap.piece for gap in whole[:_MOST_NAMED]],
            "left_out": len(whole),
            "rows": sum(gap.rows or 0 for gap in whole),
            "of_unknown_length": sum(gap.rows is None for gap in whole),
            "episodes_beside": sum(gap.episodes for gap in gaps.values()),
        },
    )
