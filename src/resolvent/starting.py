"""Moved."""

from resolvent._util.startup import (_AS_MODULE, _FIRST, _end, _end_at_once, _ended, _interrupt, _interrupted, _leave_out_current_folder, end_at_once, end_by_exceptions, is_command, was_ended, was_interrupted)  # noqa: F401
