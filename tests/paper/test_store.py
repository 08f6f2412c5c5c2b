import json
from dataclasses import asdict

import pytest
from fake_methods import run
from tiny import tiny

from resolvent.errors import ResolventError
from resolvent.paper import reproduce
from resolvent.paper.reproduce import Results, Store

RUN = run("answers")


def opened(folder, time_limit=30.0):
    return Store(folder, asdict(tiny(time_limit)), "resolvent reproduce --quick")


def test_a_record_is_one_file_and_comes_back(tmp_path):
    store = opened(tmp_path / "new" / "results")
    assert store.needs(RUN)
    store.add(RUN, {"status": "found", "value": 7})
    assert not store.needs(RUN)
    path = tmp_path / "new/results/runs/tiny/here--fake--0.json"
    assert json.loads(path.read_text()) == {"status": "found", "value": 7, "arguments": {}}
    assert Results.read(opened(tmp_path / "new" / "results").folder).records[0]["value"] == 7


def test_the_folder_says_how_it_was_made_and_nothing_of_where(tmp_path):
    opened(tmp_path / "results")
    about = json.loads((tmp_path / "results" / "about.json").read_text())
    assert about["settings"]["time_limit"] == 30.0
    assert about["command"] == "resolvent reproduce --quick"
    assert about["packages"]["numpy"].count(".") >= 1
    assert set(about["machine"]) == {"processor", "cores", "system", "architecture"}
    assert str(tmp_path) not in json.dumps(about)


def test_other_settings_do_not_mix(tmp_path):
    opened(tmp_path / "results")
    with pytest.raises(ResolventError) as error:
        opened(tmp_path / "results", time_limit=60.0)
    assert "settings: time_limit, 30.0 there, 60.0 here" in str(error.value)
    assert "repeat 'resolvent reproduce --quick'" in str(error.value)
    assert "another folder with -o" in str(error.value)


def test_another_version_does_not_mix(tmp_path):
    opened(tmp_path / "results")
    path = tmp_path / "results" / "about.json"
    about = json.loads(path.read_text())
    about["packages"]["resolvent"] = "0.0.1"
    path.write_text(json.dumps(about))
    with pytest.raises(ResolventError, match=r"packages: resolvent, 0\.0\.1 there"):
        opened(tmp_path / "results")
    path.write_text(json.dumps(about | {"format": 99}))
    with pytest.raises(ResolventError, match="another format"):
        opened(tmp_path / "results")


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(ResolventError, match="has other files"):
        opened(tmp_path)
    with pytest.raises(ResolventError, match="is a file"):
        opened(tmp_path / "thesis.tex")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("content", ["{", "[1]", "\udcff", '{"a":' * 9999, '{"a": 1' + "0" * 5000])
def test_a_broken_record_is_named(tmp_path, content):
    store = opened(tmp_path / "results")
    store.add(RUN, {})
    (tmp_path / "results" / RUN.file).write_text(content, errors="surrogateescape")
    with pytest.raises(ResolventError, match=r"here--fake--0\.json: not a record.*delete it"):
        Results.read(store.folder)


def test_a_full_disk_keeps_what_is_done(tmp_path, monkeypatch):
    store = opened(tmp_path / "results")
    store.add(RUN, {"value": 1})

    def full(path):
        raise ResolventError(f"cannot write {path}: no space left on device")

    monkeypatch.setattr(reproduce, "atomic_write", full)
    with pytest.raises(ResolventError, match=r"no space left.*finished runs are kept.*to continue"):
        store.add(run("answers", "other"), {"value": 2})
    assert [one["value"] for one in Results.read(store.folder).records] == [1]


def test_a_folder_without_results_is_named(tmp_path):
    with pytest.raises(ResolventError, match="has no results"):
        Results.read(tmp_path)


def test_lines_come_back():
    results = Results({"format": 1}, [{"a": 1.5}, {"b": [None, "×"]}])
    assert Results.from_lines(results.lines()) == results
