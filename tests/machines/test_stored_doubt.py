import json

import pytest

import resolvent as rs
from resolvent.errors import ModelError
from resolvent.noise import LabelNoise, StateUncertainty
from resolvent.worlds import House

NONE, KEY = frozenset(), frozenset({"key"})
DOUBT = StateUncertainty(LabelNoise(0.05, 0.01, 0.0), {NONE: 0.8, KEY: 0.2}, {NONE: 0.5, KEY: 0.5})


def test_doubt_is_in_the_file(tmp_path):
    machines = House().machines().replacing(doubt=DOUBT)
    machines.save(tmp_path / "machines.json")
    read = rs.load(tmp_path / "machines.json")
    assert read == machines
    assert read.doubt == DOUBT
    assert read != House().machines()
    assert hash(read.doubt) == hash(DOUBT)


def test_without_doubt_the_file_is_as_it_was(tmp_path):
    House().machines().save(tmp_path / "machines.json")
    assert "doubt" not in json.loads((tmp_path / "machines.json").read_text())


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"label_noise": [0.5, 0.0, 0.6]}, "label_noise holds a share"),
        ({"label_noise": [-0.1, 0.0, 0.0]}, "label_noise holds a share"),
        ({"label_shares": [[[], 0.5], [["key"], 0.4]]}, "label_shares does not add up to 1"),
        ({"label_shares": [[["fire"], 1.0]]}, "label_shares names a label that no machine knows"),
        ({"label_shares": []}, "must be there together"),
        ({"starts": [[["key"], 0.5], [["key"], 0.5]]}, "starts names a label twice"),
    ],
)
def test_damaged_doubt_is_refused(tmp_path, damage, message):
    path = tmp_path / "machines.json"
    House().machines().replacing(doubt=DOUBT).save(path)
    content = json.loads(path.read_text())
    content["doubt"].update(damage)
    path.write_text(json.dumps(content))
    with pytest.raises(ModelError, match=message):
        rs.load(path)
