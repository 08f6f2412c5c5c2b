"""Moved."""

from resolvent.preprocess.labeling import (  # noqa: F401
    GIVEN,
    LABELLINGS,
    Labelling,
    Reads,
    as_labelling,
    whole_label,
)
