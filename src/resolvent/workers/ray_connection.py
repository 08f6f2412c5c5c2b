"""An address → a Ray that this process is connected to, whose nodes fit; and away from it."""

import logging
import os
import platform
import socket
import warnings
from importlib import metadata
from typing import Any
from urllib.parse import urlsplit

from resolvent.errors import ClusterError
from resolvent.workers.cores import CORES
from resolvent.workers.safely import starting_safely

SECONDS_TO_ANSWER = 10.0
"""How long an address may take to answer."""

_SECONDS_TO_SAY_VERSIONS = 60.0
_STORE_BYTES = 512 << 20
"""Memory for results in a Ray of this machine alone; they are small."""

_ours = False
"""Whether the connection was begun here: another's is left as it is."""

_fitting: set[str] = set()
"""Nodes that have the same versions as this process."""


def connect(ray: Any, address: str | None = None) -> None:
    """Connect to Ray, unless this process is already.

    Raises:
        ClusterError: when nobody answers in time, or what answers does not fit.
    """
    global _ours
    if ray.is_initialized():
        return
    wanted = address or os.environ.get("RAY_ADDRESS") or "local"
    _check_answers(wanted)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if wanted == "local":
        quiet |= {
            "num_cpus": CORES,
            "include_dashboard": False,
            "object_store_memory": _STORE_BYTES,
        }
    try:
        with warnings.catch_warnings(), starting_safely():
            warnings.simplefilter("ignore")
            ray.init(address=wanted, **quiet)
    except Exception as error:  # Ray raises errors of many kinds
        raise ClusterError(_refused(wanted, error)) from error
    _ours = True


def disconnect() -> None:
    """Leave a Ray to which `connect` connected, and end it if it ran for this process alone."""
    global _ours
    if _ours:
        import ray

        _ours = False
        _fitting.clear()
        ray.shutdown()


def check_nodes(ray: Any) -> None:
    """Refuse nodes with another version of Resolvent or of Python, each looked at once.

    Raises:
        ClusterError: with the node and the versions.
    """
    nodes = {
        one["NodeID"]: one["NodeManagerAddress"]
        for one in ray.nodes()
        if one["Alive"] and one["Resources"].get("CPU")
    }
    if not nodes:
        raise ClusterError(
            "the Ray cluster has no processors to work on: add nodes with `ray start --address`"
        )
    new = [node for node in nodes if node not in _fitting]
    if not new:
        return
    here = versions()
    for node, found in zip(new, _versions_of(ray, new), strict=True):
        if found is None:  # it went away meanwhile
            continue
        for package, version in here.items():
            if found[package] != version:
                there = f"{package} {found[package]}" if found[package] else f"no {package}"
                raise ClusterError(
                    f"node {nodes[node]} of the Ray cluster has {there}, and this is {package} "
                    f"{version}: install the same version on all nodes"
                )
        _fitting.add(node)


def versions() -> dict[str, str]:
    """Return the versions here that have to be the same on every node.

    >>> sorted(versions())
    ['Python', 'resolvent']
    """
    return {
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "resolvent": metadata.version("resolvent"),
    }


def _versions_of(ray: Any, nodes: list[str]) -> list[dict[str, str | None] | None]:
    """Ask nodes for their versions; None for a node that does not say."""

    # A function within another goes to the nodes as it is: they may not have this package.
    def ask() -> dict[str, str | None]:
        import platform
        from importlib import import_module, metadata

        found: dict[str, str | None] = {
            "Python": ".".join(platform.python_version_tuple()[:2]),
            "resolvent": None,
        }
        try:
            import_module("resolvent")
            found["resolvent"] = metadata.version("resolvent")
        except ImportError:
            pass
        return found

    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    task = ray.remote(num_cpus=0, max_retries=2)(ask)
    refs = [
        task.options(
            name="resolvent: versions",
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        ).remote()
        for node in nodes
    ]
    ready, _ = ray.wait(refs, num_returns=len(refs), timeout=_SECONDS_TO_SAY_VERSIONS)
    found: list[dict[str, str | None] | None] = []
    for ref in refs:
        try:
            found.append(ray.get(ref) if ref in ready else None)
        except ray.exceptions.RayError:
            found.append(None)
    if not any(found):
        raise ClusterError(
            f"no node of the Ray cluster ran a task within {_SECONDS_TO_SAY_VERSIONS:g} s: look at "
            f"`ray status`"
        )
    return found


def _check_answers(address: str) -> None:
    """Knock at an address with a port, for Ray would wait long for an answer."""
    parts = urlsplit(address if "://" in address else f"ray://{address}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ClusterError(
            f"{address} is no address of a Ray cluster: write HOST:PORT, ray://HOST:PORT or auto"
        ) from None
    if host is None or port is None:
        return
    try:
        socket.create_connection((host, port), timeout=SECONDS_TO_ANSWER).close()
    except OSError as error:
        raise ClusterError(
            f"no Ray cluster answers at {address} ({error.strerror or error}): check the address, "
            f"or start one there with `ray start --head`"
        ) from error


def _refused(address: str, error: Exception) -> str:
    if address == "local":
        return f"Ray cannot be started on this machine ({first_line(error)})"
    if "ersion mismatch" in str(error):
        return f"the Ray cluster at {address} does not fit: {' '.join(str(error).split())}"
    return (
        f"no Ray cluster answers at {address} ({first_line(error)}): check the address, and "
        f"RAY_AUTH_TOKEN if the cluster has a token, or start one with `ray start --head`"
    )


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says that says anything."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".:") if lines else type(error).__name__
