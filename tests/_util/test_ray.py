"""Ray: clusters that are missing or incompatible are refused in one line; what else runs on Ray."""

import os
import socket
import subprocess
import sys

import pytest

import resolvent as rs
from exact_samples import same, world_samples
from pieces_of_work import doubled, joined
from resolvent._util import ray as ray_backend
from resolvent._util.ray import Ray
from resolvent.inference.engine import merge, search_with_restarts
from resolvent.inference.exact_search import minimal_automaton
from resolvent.worlds import TMaze
from shuffled_workers import ShuffledWorkers


def work(address=None):
    return Ray(address).map_reduce(doubled, "ab", joined, called="doubling")


@pytest.fixture
def alone(monkeypatch):
    """A process that is connected to no Ray, whatever other tests have begun."""
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    return ray


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(rs.errors.MissingExtra, match=r'pip install "resolvent\[ray\]"'):
        work()
    with pytest.raises(rs.errors.MissingExtra, match=r"resolvent\[ray\]"):
        rs.collect("resolvent/House-v0", episodes=1, on="ray")


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_an_address_nobody_answers_at_is_refused_at_once(alone, scheme):
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        address = f"{scheme}127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(
            rs.errors.ClusterError, match=rf"^no Ray cluster responds at {address} \(.*\): "
        ):
            work(address)


@pytest.mark.parametrize("address", ["10.0.0.1:port", "10.0.0.1:99999", "here"])
def test_what_is_no_address_is_refused(alone, address):
    with pytest.raises(rs.errors.ClusterError, match=address):
        work(address)


def test_what_ray_says_of_versions_fits_a_line(alone, monkeypatch):
    def init(**_):
        raise RuntimeError("Version mismatch: The cluster was started with:\n    Ray: 2.9.0")

    monkeypatch.setattr(alone, "init", init)
    with pytest.raises(rs.errors.ClusterError) as caught:
        work("auto")
    assert str(caught.value) == (
        "the Ray cluster at auto does not fit: Version mismatch: The cluster was started with: "
        "Ray: 2.9.0"
    )


def test_nodes_with_other_versions_are_refused_by_name(ray_of_two, monkeypatch):
    monkeypatch.setattr(ray_backend, "_compatible", set())
    here = rs.__version__
    monkeypatch.setattr(ray_backend.metadata, "version", lambda name: "9.9")
    with pytest.raises(rs.errors.ClusterError) as caught:
        work()
    node = ray_of_two.nodes()[0]["NodeManagerAddress"]
    assert str(caught.value) == (
        f"node {node} of the Ray cluster has resolvent {here}, and this is resolvent "
        f"9.9: install the same version on all nodes"
    )


def test_a_cluster_of_others_is_left_as_it_is(ray_of_two):
    assert work() == "aabb"
    Ray().close()
    assert ray_of_two.is_initialized()
    assert Ray().reached() == f"Ray {ray_of_two.__version__}, 1 node with 2 processors"


WITHOUT = """
import os, sys
import resolvent as rs
from resolvent._util.ray import Ray
os.environ["PYTHONPATH"] = sys.argv[1]  # of what is begun from here on
for _ in range(2):
    try:
        Ray().map_reduce(len, ["a"], int.__add__, called="counting")
    except rs.errors.ClusterError as error:
        print(error)
    Ray().close()
"""


NOT_HERE = """
import sys

class NotHere:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "resolvent":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NotHere())  # also before an editable installation
"""


@pytest.mark.slow
def test_a_cluster_without_the_package_is_refused(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(NOT_HERE)
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT, str(tmp_path)],
        capture_output=True,
        text=True,
        env={name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"},
        check=True,
    )
    lines = run.stdout.splitlines()
    assert len(lines) == 2
    assert all("of the Ray cluster has no resolvent, and this is resolvent" in one for one in lines)


# --- Searches, reproductions and episodes ---


@pytest.mark.usefixtures("ray_of_two")
@pytest.mark.slow
def test_attempts_of_an_exact_search(monkeypatch):
    monkeypatch.setattr("resolvent.inference.exact_search.ALONE", 0)
    _, samples = world_samples(0, 40, size=11, labels=4, tm_states=5)
    found = minimal_automaton(samples, merge(samples), workers=Ray())
    assert (found.automaton.states, found.lower_bound, found.unique) == (5, 5, True)
    assert {attempt.workers for attempt in found.attempts} == {"ray"}
    assert same(found.automaton, minimal_automaton(samples, merge(samples)).automaton)


@pytest.mark.usefixtures("ray_of_two")
@pytest.mark.slow
def test_seeds_of_a_search():
    _, samples = world_samples(1, 25, size=11, labels=5, tm_states=7)
    found, attempts = search_with_restarts(samples, Ray(), effort=0.001)
    expected, _ = search_with_restarts(samples, ShuffledWorkers(0), effort=0.001)
    assert same(found, expected)
    assert [attempt.workers for attempt in attempts] == ["ray"] * 4


@pytest.mark.usefixtures("ray_of_two")
def test_episodes():
    traces = rs.collect(lambda: TMaze(length=4), episodes=40, seed=1, on="ray")
    assert traces == rs.collect(lambda: TMaze(length=4), episodes=40, seed=1, on="threads")
