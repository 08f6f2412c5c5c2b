from resolvent.inference.attempts import Tried


def test_seconds_make_no_difference():
    assert Tried("edsm", "chosen", 2, 10.0, 0.1) == Tried("edsm", "chosen", 2, 10.0, 3.0)
    assert Tried("edsm", "chosen", 2, 10.0) != Tried("rpni", "chosen", 2, 10.0)


def test_as_json_values():
    assert Tried("rpni", "given up", seconds=0.5).as_dict() == {
        "strategy": "rpni",
        "outcome": "given up",
        "states": None,
        "bits": None,
        "seconds": 0.5,
    }


def test_in_words():
    assert str(Tried("search", "chosen", 1, 1234.4)) == "search: 1 state, 1,234 bits"
    assert str(Tried("rpni", "out of time")) == "rpni: out of time"
