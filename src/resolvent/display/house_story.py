"""Moved."""

from resolvent.paper.demo import (HouseStory, Moment, _answer, _before_and_after, _happened, _machine_table, _one_for_each_state, _row, _say, _tally, _tell_check, _tell_machines, _tell_next, _tell_plan, _tell_problem, _title, tell)  # noqa: F401
