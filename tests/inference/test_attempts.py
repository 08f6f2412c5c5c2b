from resolvent.inference.attempts import Attempt


def test_seconds_make_no_difference():
    assert Attempt("edsm", "chosen", 2, 10.0, 0.1) == Attempt("edsm", "chosen", 2, 10.0, 3.0)
    assert Attempt("edsm", "chosen", 2, 10.0) != Attempt("rpni", "chosen", 2, 10.0)


def test_as_json_values():
    assert Attempt("rpni", "given up", seconds=0.5).as_dict() == {
        "strategy": "rpni",
        "outcome": "given up",
        "states": None,
        "bits": None,
        "seconds": 0.5,
    }


def test_in_words():
    assert str(Attempt("search", "chosen", 1, 1234.4)) == "search: 1 state, 1,234 bits"
    assert str(Attempt("rpni", "out of time")) == "rpni: out of time"
