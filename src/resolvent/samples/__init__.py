"""Moved."""

from resolvent.preprocess.samples import (  # noqa: F401
    Histories,
    ObservationColumn,
    SampleSet,
    output_samples,
    rounded,
)
from resolvent.preprocess.timing import NONE, LabelReader, LabelTiming, labels_read  # noqa: F401
