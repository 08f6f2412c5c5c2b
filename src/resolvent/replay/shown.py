"""Moved."""

from resolvent.replay.counts import (  # noqa: F401
    ANSWER,
    MOVE,
    Replay,
    Rows,
    Sightings,
    answers_vary,
)
