"""Moved."""

from resolvent.preprocess.labeling import GIVEN, LABELLINGS, Labelling, Reads, as_labelling, whole_label  # noqa: F401
