"""Run work as tasks of a Ray cluster, or of a Ray of this machine alone.

Ray schedules, transfers results, and repeats work lost with a worker or a node; results are
combined near the data. See docs/decisions/util.md.
"""

import importlib
import logging
import os
import platform
import socket
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import reduce
from importlib import metadata
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import urlsplit

from resolvent._util.parallel import (
    CORES,
    Report,
    Submit,
    TaskWarnings,
    Workers,
    fold,
    safe_import_path,
    split_evenly,
)
from resolvent._util.text import amount
from resolvent.errors import ClusterError, MissingExtra, ResolventError, StorageError

Item = TypeVar("Item")
Result = TypeVar("Result")

RETRIES = 5  # of a task whose worker or node was lost, or whose storage failed
FAN_IN = 8  # number of results that one task combines
_AHEAD = 4  # number of tasks per processor that Ray holds at a time: one running, and the next ones
_CONNECT_SECONDS = 10.0  # time limit for a connection to an address
_VERSION_SECONDS = 60.0  # time limit for nodes to report their versions
_STORE_BYTES = 512 << 20  # memory for results in a Ray of this machine alone; they are small

_connected_here = False  # whether `_connect` made the connection: one that a user made is left open
_compatible: set[str] = set()  # IDs of nodes with the same versions as this process


@dataclass(frozen=True)
class Ray(Workers):
    """Tasks of a Ray cluster, each on one core.

    If this process is connected to a Ray, that one is used. Otherwise the first work connects to
    `address`, as `ray.init` takes it: "auto", "10.0.0.1:6379" or "ray://10.0.0.1:10001". Without
    an address it is `RAY_ADDRESS`, or else a Ray of this machine alone.
    """

    address: str | None = None

    @property
    def name(self) -> str:
        """The name in `on=`."""
        return "ray" if self.address is None else f"ray:{self.address}"

    def map_reduce(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        combine: Callable[[Result, Result], Result],
        *,
        called: str,
        report: Report | None = None,
    ) -> Result:
        """Return the results combined in the order of the items, by a tree of tasks."""
        ray = self._ray()
        combine_ref = ray.put(combine)
        task = _remote(ray, _combined).options(name=f"resolvent: {called}, combining")
        # The results of tasks are references: their values stay in the cluster, and neighbors are
        # combined as soon as there are enough, so that about one a processor is left at the end.
        results = self._in_order(function, combine, self._runs(items), called, report)
        refs: list[Any] = []
        while group := list(islice(results, FAN_IN)):
            refs.append(task.remote(combine_ref, *group))
        while len(refs) > 1:
            groups = [refs[first : first + FAN_IN] for first in range(0, len(refs), FAN_IN)]
            refs = [task.remote(combine_ref, *group) for group in groups]
        with _explain_ray_errors(ray, called):
            result: Result = ray.get(refs[0])
            return result

    @contextmanager
    def _executor(
        self, tasks: int, called: str, *, own: bool = False
    ) -> Iterator[tuple[Submit, int]]:
        ray = self._ray()
        slots = _slots(ray)
        with _explain_ray_errors(ray, called):
            session = _Session(ray, called, tasks)
            if not own:
                yield session.submit, _AHEAD * slots
                return
            threads = ThreadPoolExecutor(min(tasks, slots))  # each waits for an actor
            try:
                yield lambda *work: threads.submit(session.run_apart, *work), tasks
            finally:
                threads.shutdown(wait=False, cancel_futures=True)
                session.kill_actors()

    def _runs(self, items: Sequence[Item]) -> Sequence[Sequence[Item]]:
        return split_evenly(items, _slots(self._ray()))

    def reached(self) -> str:
        """Connect, return version, nodes and processors as text, disconnect; or `ClusterError`."""
        ray = self._ray()
        try:
            nodes = amount(sum(node["Alive"] for node in ray.nodes()), "node")
            return f"Ray {ray.__version__}, {nodes} with {amount(_slots(ray), 'processor')}"
        finally:
            self.close()

    def close(self) -> None:
        """Disconnect if `_connect` connected; a Ray of this machine alone ends."""
        global _connected_here
        if _connected_here:
            import ray

            _connected_here = False
            _compatible.clear()
            ray.shutdown()

    def _ray(self) -> Any:
        """Return Ray's module, connected to compatible nodes."""
        ray = import_ray()
        _connect(ray, self.address)
        _check_nodes(ray)
        return ray


def import_ray(name: str = "ray") -> Any:
    """Return one of Ray's modules; `MissingExtra` if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtra(
            'Ray is not installed: pip install "resolvent[ray]", or choose on="threads"'
        ) from error


def _slots(ray: Any) -> int:
    return max(int(ray.cluster_resources().get("CPU", 1)), 1)


def _remote(ray: Any, function: Callable[..., Any]) -> Any:
    options = {"num_cpus": 1, "max_retries": RETRIES, "retry_exceptions": [StorageError]}
    return ray.remote(**options)(function)


def _combined(combine: Callable[[Result, Result], Result], *results: Result) -> Result:
    return reduce(combine, results)


class _Actor:
    """A separate process for one item."""

    run = staticmethod(fold)


@dataclass
class _Session:
    """Tasks of one call; functions are sent to the cluster once."""

    ray: Any
    called: str
    tasks: int
    started: int = 0
    ended: bool = False
    refs: dict[int, Any] = field(default_factory=dict)
    actors: list[Any] = field(default_factory=list)

    def submit(self, task: Any, function: Any, combine: Any, items: Any) -> "_Task":
        """Start a task."""
        remote = _remote(self.ray, task).options(name=self._next_name(), num_returns=2)
        result, warned = remote.remote(self._ref(function), self._ref(combine), items)
        return _Task(self.ray, result, warned, stays_remote=combine is not None)

    def run_apart(self, task: Any, function: Any, combine: Any, items: Any) -> Any:
        """Return the result of an actor, which ends with it: unlike tasks, it can be killed."""
        options = {"num_cpus": 1, "max_restarts": RETRIES, "max_task_retries": RETRIES}
        actor = self.ray.remote(**options)(_Actor).remote()
        self.actors.append(actor)
        try:
            if self.ended:
                return None
            run = actor.run.options(name=self._next_name())
            return self.ray.get(run.remote(self._ref(function), self._ref(combine), items))
        finally:
            self.ray.kill(actor)

    def kill_actors(self) -> None:
        """End all actors, also those that are being started."""
        self.ended = True
        for actor in list(self.actors):
            self.ray.kill(actor)

    def _ref(self, value: Any) -> Any:
        if id(value) not in self.refs:
            self.refs[id(value)] = self.ray.put(value)
        return self.refs[id(value)]

    def _next_name(self) -> str:
        """Return the name of the next task in Ray's dashboard."""
        self.started += 1
        return f"resolvent: {self.called} {self.started} of {self.tasks}"


@dataclass
class _Task:
    """A running task, whose result may stay in the cluster."""

    ray: Any
    result_ref: Any
    warnings_ref: Any
    stays_remote: bool

    def result(self) -> tuple[Any, TaskWarnings]:
        """Return the result, or a reference to it, and the warnings."""
        task_warnings = self.ray.get(self.warnings_ref)
        result = self.result_ref if self.stays_remote else self.ray.get(self.result_ref)
        return result, task_warnings

    def cancel(self) -> None:
        """Do nothing: Ray may abort if tasks are cancelled while they end."""


@contextmanager
def _explain_ray_errors(ray: Any, called: str) -> Iterator[None]:
    """Raise our own errors of tasks unchanged, and Ray's as a `ClusterError`."""
    try:
        yield
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, ResolventError):
            raise cause from None
        if isinstance(cause, ray.exceptions.RayError):
            raise _lost(called, cause) from error
        raise
    except ray.exceptions.RayError as error:
        raise _lost(called, error) from error


def _lost(called: str, error: Exception) -> ClusterError:
    return ClusterError(
        f"{called}: the cluster lost its work, although it was tried {RETRIES} times again "
        f"({type(error).__name__}: {_first_line(error)}): look at its nodes and their memory"
    )


def _connect(ray: Any, address: str | None = None) -> None:
    """Connect to Ray, unless this process is already."""
    global _connected_here
    if ray.is_initialized():
        return
    target = address or os.environ.get("RAY_ADDRESS") or "local"
    _check_reachable(target)
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if target == "local":
        options |= {"num_cpus": CORES, "object_store_memory": _STORE_BYTES}
        options["include_dashboard"] = False
    try:
        with warnings.catch_warnings(), safe_import_path():
            warnings.simplefilter("ignore")
            ray.init(address=target, **options)
    except Exception as error:  # Ray raises errors of many kinds
        raise ClusterError(_refused(target, error)) from error
    _connected_here = True


def _check_nodes(ray: Any) -> None:
    """Refuse nodes with another version of Resolvent or Python; each node once."""

    # A function within another goes to the nodes as it is: they may not have this package.
    def versions() -> dict[str, str | None]:
        installed = None
        with suppress(ImportError):
            importlib.import_module("resolvent")
            installed = metadata.version("resolvent")
        return {"Python": ".".join(platform.python_version_tuple()[:2]), "resolvent": installed}

    addresses = {
        node["NodeID"]: node["NodeManagerAddress"]
        for node in ray.nodes()
        if node["Alive"] and node["Resources"].get("CPU")
    }
    if not addresses:
        raise ClusterError(
            "the Ray cluster has no processors to work on: add nodes with `ray start --address`"
        )
    new = [node for node in addresses if node not in _compatible]
    if not new:
        return
    affinity = import_ray("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
    task = ray.remote(num_cpus=0, max_retries=2, name="resolvent: versions")(versions)
    refs = [task.options(scheduling_strategy=affinity(node, soft=False)).remote() for node in new]
    ready, _ = ray.wait(refs, num_returns=len(refs), timeout=_VERSION_SECONDS)
    reported = {}
    for node, ref in zip(new, refs, strict=True):
        with suppress(ray.exceptions.RayError):  # the node has left
            if ref in ready:
                reported[node] = ray.get(ref)
    if not reported:
        raise ClusterError(
            f"no node of the Ray cluster ran a task within {_VERSION_SECONDS:g} s: look at "
            f"`ray status`"
        )
    for node, there in reported.items():
        for package, version in versions().items():
            if there[package] != version:
                has = f"{package} {there[package]}" if there[package] else f"no {package}"
                raise ClusterError(
                    f"node {addresses[node]} of the Ray cluster has {has}, and this is {package} "
                    f"{version}: install the same version on all nodes"
                )
    _compatible.update(reported)


def _check_reachable(address: str) -> None:
    """Open a socket at an address with a port first: Ray would wait long."""
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
        socket.create_connection((host, port), timeout=_CONNECT_SECONDS).close()
    except OSError as error:
        raise ClusterError(
            f"no Ray cluster responds at {address} ({error.strerror or error}): check the address, "
            f"or start one there with `ray start --head`"
        ) from error


def _refused(address: str, error: Exception) -> str:
    if address == "local":
        return f"Ray cannot be started on this machine ({_first_line(error)})"
    if "ersion mismatch" in str(error):
        return f"the Ray cluster at {address} does not fit: {' '.join(str(error).split())}"
    return (
        f"no Ray cluster responds at {address} ({_first_line(error)}): check the address, and "
        f"RAY_AUTH_TOKEN if the cluster has a token, or start one with `ray start --head`"
    )


def _first_line(error: BaseException) -> str:
    """Return the first line of an error's text that is not blank."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".:") if lines else type(error).__name__
