"""Moved."""

from resolvent._util.validation import (_MANY, _SAID, _either, _fits, _fits_parts, _fits_tuple, _is_in_range, _kinds_of, _words, check_arguments, is_single, needs_arguments, shown)  # noqa: F401
