"""What tests of all rooms may ask for."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says something of the machine, and nothing of what is tested.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

collect_ignore = ["conftest.py"]  # of doctests, for there are others of that name


@pytest.hookimpl(tryfirst=True)  # before xdist looks which tests belong together
def pytest_collection_modifyitems(items):
    """Run all tests that need Ray in one process, so that it is begun once; PyTorch likewise."""
    for item in items:
        if "ray_of_two" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("ray"))
        elif "sb3" in item.nodeid or "stable-baselines" in item.nodeid:
            item.add_marker(pytest.mark.xdist_group("stable-baselines"))


@pytest.fixture(scope="session")
def ray_of_two():
    """A Ray with two processors, begun once; its workers can import what tests import."""
    import ray

    folders = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, folders)))
        patch.delenv("RAY_ADDRESS", raising=False)
        ray.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="CRITICAL",
            object_store_memory=128 << 20,
        )
    yield ray
    ray.shutdown()
