import pytest

import resolvent as rs
from resolvent import errors
from resolvent.errors import ResolventError, TraceError, locating


def test_one_except_is_enough():
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, Exception)
    ]
    assert len(kinds) >= 7
    assert all(issubclass(kind, ResolventError) for kind in kinds)
    assert all(getattr(rs, kind.__name__) is kind for kind in kinds)


def test_errors_are_also_what_python_would_raise():
    assert issubclass(rs.OptionError, ValueError)
    assert issubclass(rs.MissingExtra, ImportError)


def test_places_go_in_front_from_the_inside_out():
    raised = pytest.raises(TraceError, match=r"^a\.jsonl: line 3: too short$")
    with raised as caught, locating("a.jsonl"), locating("line 3"):
        raise TraceError("too short")
    assert isinstance(caught.value.__cause__, TraceError)


def test_other_errors_pass_untouched():
    with pytest.raises(KeyError, match="'x'"), locating("a.jsonl"):
        raise KeyError("x")
