"""Moved."""

from resolvent.preprocess.timing import NONE, LabelReader, LabelTiming, labels_read  # noqa: F401
