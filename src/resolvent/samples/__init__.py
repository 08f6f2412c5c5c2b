"""Moved."""

from resolvent.preprocess.samples import Histories, ObservationColumn, SampleSet, output_samples, rounded  # noqa: F401
from resolvent.preprocess.timing import NONE, LabelReader, LabelTiming, labels_read  # noqa: F401
