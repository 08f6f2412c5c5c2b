"""Run pieces of work as tasks of a Ray cluster, or of a Ray of this machine alone.

Ray schedules, moves results, and repeats work lost with a worker or a node; results are
combined near the data. See docs/decisions/util.md.
"""

import importlib
import logging
import os
import platform
import socket
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from importlib import metadata
from itertools import chain
from typing import Any, TypeVar
from urllib.parse import urlsplit

from resolvent._util.parallel import Report, WarningRelay, fold, split_evenly
from resolvent._util.processes import CORES, safe_import_path
from resolvent._util.text import amount
from resolvent.errors import ClusterError, MissingExtra, ResolventError, StorageError

Piece = TypeVar("Piece")
Result = TypeVar("Result")

RETRIES = 5
"""Number of times Ray tries a task again if its worker or node was lost, or storage failed."""

FAN_IN = 8
"""Number of results that one task combines."""

_QUEUED = 2
"""Number of tasks per processor that Ray holds at a time: one running, and the next."""

_WAITING_PER_ENDED = 32
"""Number of waiting tasks per task that has to end before more are started."""

_MOMENT = 0.1
"""Seconds after which ended tasks are collected, however few they are."""

SECONDS_TO_ANSWER = 10.0
"""Seconds that an address may take to answer."""

_SECONDS_FOR_VERSIONS = 60.0
_STORE_BYTES = 512 << 20
"""Bytes of memory for results in a Ray of this machine alone; they are small."""

_connected_here = False
"""Whether `_connect` made the connection: one that a user made is left as it is."""

_compatible: set[str] = set()
"""IDs of nodes that have the same versions as this process."""


@dataclass(frozen=True)
class Ray:
    """Tasks of a Ray cluster, each on one core.

    A Ray that this process is connected to is used as it is. Otherwise the first work connects to
    `address`, as `ray.init` takes it: "auto", "10.0.0.1:6379" or "ray://10.0.0.1:10001". Without
    an address it is `RAY_ADDRESS`, or else a Ray of this machine alone.
    """

    address: str | None = None

    @property
    def name(self) -> str:
        """The name in `on=`."""
        return "ray" if self.address is None else f"ray:{self.address}"

    def each(
        self,
        work: Callable[[Piece], Result],
        pieces: Sequence[Piece],
        *,
        called: str,
        report: Report | None = None,
    ) -> Iterator[Result]:
        """Yield the results in the order of the pieces."""
        ray = self._ray()
        task, work_ref, relay = _task(ray, fold, 2), ray.put(work), WarningRelay()
        waiting: deque[Any] = deque()
        started = 0
        with _explaining(ray, called):
            for number in range(len(pieces)):
                while started < len(pieces) and len(waiting) < _QUEUED * _slots(ray):
                    name = _task_name(called, started, 1, len(pieces))
                    refs = task.options(name=name).remote(work_ref, None, [pieces[started]])
                    waiting.append(refs)
                    started += 1
                result, warned = ray.get(waiting.popleft())
                relay.warn(warned)
                yield result
                if report is not None:
                    report(number + 1)

    def together(
        self,
        work: Callable[[Piece], Result],
        pieces: Sequence[Piece],
        combine: Callable[[Result, Result], Result],
        *,
        called: str,
        report: Report | None = None,
    ) -> Result:
        """Return the results combined in the order of the pieces, by a tree of tasks."""
        ray = self._ray()
        work_ref, combine_ref = ray.put(work), ray.put(combine)
        combining = _task(ray, _combined, 1).options(name=f"resolvent: {called}, combining")
        tree = _ReductionTree(lambda refs: combining.remote(combine_ref, *refs))
        task, first = _task(ray, fold, 2), 0
        runs = []
        for run in split_evenly(pieces, _slots(ray)):
            runs.append((_task_name(called, first, len(run), len(pieces)), run))
            first += len(run)

        def start(number: int) -> Any:
            name, run = runs[number]
            result, warned = task.options(name=name).remote(work_ref, combine_ref, run)
            tree.add(result)
            return warned

        if report is not None:
            report(0)  # Ray may have taken a while to start
        with _explaining(ray, called):
            warned = _awaited(ray, start, [len(run) for _, run in runs], report)
            result: Result = ray.get(tree.root())
        WarningRelay().warn(tuple(chain.from_iterable(warned)))
        return result

    def first(
        self,
        work: Callable[[Piece], Result],
        pieces: Sequence[Piece],
        enough: Callable[[Result], bool],
        *,
        called: str,
    ) -> list[Result | None]:
        """Work on all pieces at once until a result is `enough`; the rest are killed."""
        ray = self._ray()
        # Actors can be killed at any time; see docs/decisions/util.md for tasks.
        options = {"num_cpus": 1, "max_restarts": RETRIES, "max_task_retries": RETRIES}
        actor = ray.remote(**options)(_Actor)
        work_ref = ray.put(work)
        actors, refs = [], []
        for number, piece in enumerate(pieces):
            name = _task_name(called, number, 1, len(pieces))
            actors.append(actor.remote())
            refs.append(actors[-1].run.options(name=name).remote(work_ref, piece))
        results: list[Result | None] = [None] * len(pieces)
        number_of, waiting, stop = {ref: at for at, ref in enumerate(refs)}, list(refs), False
        try:
            with _explaining(ray, called):
                while waiting and not stop:
                    done, waiting = ray.wait(waiting, num_returns=1)
                    for ref in done:
                        results[number_of[ref]] = result = ray.get(ref)
                        ray.kill(actors[number_of[ref]])  # frees its processor for the next one
                        stop |= enough(result)
        finally:
            for actor in actors:
                ray.kill(actor)
        return results

    def reached(self) -> str:
        """Connect, return the version, nodes and processors as a text, and disconnect.

        Raises:
            ClusterError: when the cluster cannot be reached, or is incompatible.
        """
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


def _task(ray: Any, function: Callable[..., Any], returns: int) -> Any:
    return ray.remote(
        num_cpus=1, num_returns=returns, max_retries=RETRIES, retry_exceptions=[StorageError]
    )(function)


def _task_name(called: str, first: int, count: int, pieces: int) -> str:
    """Return the name of a task in Ray's dashboard, with the pieces it is about.

    >>> _task_name("replaying", 11, 8, 90), _task_name("reading", 0, 1, 90)
    ('resolvent: replaying 12-19 of 90', 'resolvent: reading 1 of 90')
    """
    last = f"-{first + count}" if count > 1 else ""
    return f"resolvent: {called} {first + 1}{last} of {pieces}"


def _combined(combine: Callable[[Result, Result], Result], *results: Result) -> Result:
    return reduce(combine, results)


class _Actor:
    """A separate process for one piece."""

    def run(self, work: Callable[[Piece], Result], piece: Piece) -> Result:
        return fold(work, None, [piece])[0]


class _ReductionTree:
    """Results in order, combined as soon as there are `FAN_IN` neighbors.

    >>> tree = _ReductionTree("".join)
    >>> for letter in "abcdefghijklmnopqrs":
    ...     tree.add(letter)
    >>> tree.levels, tree.root()
    ([['q', 'r', 's'], ['abcdefgh', 'ijklmnop']], 'abcdefghijklmnopqrs')
    """

    def __init__(self, combine: Callable[[list[Any]], Any]) -> None:
        self.combine = combine
        self.levels: list[list[Any]] = []

    def add(self, result: Any, level: int = 0) -> None:
        """Add the next result."""
        if level == len(self.levels):
            self.levels.append([])
        self.levels[level].append(result)
        if len(self.levels[level]) == FAN_IN:
            combined = self.combine(self.levels[level])
            self.levels[level] = []
            self.add(combined, level + 1)

    def root(self) -> Any:
        """Return all results combined; those of lower levels come later in order."""
        last: list[Any] = []
        for level in self.levels:
            refs = [*level, *last]
            last = [self.combine(refs)] if len(refs) > 1 else refs
        return last[0]


def _awaited(
    ray: Any, start: Callable[[int], Any], sizes: list[int], report: Report | None
) -> list[Any]:
    """Start tasks as there is room for them, and return the warnings of each.

    The first failure in order, not in time, is raised, so that an error does not depend on chance.
    Whatever ends the waiting, no more tasks are started, and the few under way end by themselves.
    """
    warned: list[Any] = [None] * len(sizes)
    waiting: dict[Any, int] = {}
    started = done = 0
    failure = None
    while waiting or (started < len(sizes) and failure is None):
        room = _QUEUED * _slots(ray)
        while failure is None and started < len(sizes) and len(waiting) < room:
            waiting[start(started)] = started
            started += 1
        # Asking costs by the number of tasks. Meanwhile each processor has its next task.
        some = max(len(waiting) // _WAITING_PER_ENDED, 1)
        timeout = None if some == 1 else _MOMENT
        for ref in ray.wait(list(waiting), num_returns=some, timeout=timeout)[0]:
            number = waiting.pop(ref, None)
            if number is None:  # it comes after a task that failed
                continue
            try:
                warned[number] = ray.get(ref)
            except ray.exceptions.RayError as error:
                failure = error
                waiting = {ref: before for ref, before in waiting.items() if before < number}
                continue
            done += sizes[number]
            if report is not None and failure is None:
                report(done)
    if failure is not None:
        raise failure
    return warned


@contextmanager
def _explaining(ray: Any, called: str) -> Iterator[None]:
    """Raise our own errors of tasks as they were raised, and Ray's as a `ClusterError`."""
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
        f"{called}: the cluster lost what it was working on, although it was tried {RETRIES} times "
        f"again ({type(error).__name__}: {_first_line(error)}): look at its nodes and their memory"
    )


def _connect(ray: Any, address: str | None = None) -> None:
    """Connect to Ray, unless this process is already.

    Raises:
        ClusterError: when no cluster answers in time, or it is incompatible.
    """
    global _connected_here
    if ray.is_initialized():
        return
    target = address or os.environ.get("RAY_ADDRESS") or "local"
    _check_answers(target)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if target == "local":
        quiet |= {
            "num_cpus": CORES,
            "include_dashboard": False,
            "object_store_memory": _STORE_BYTES,
        }
    try:
        with warnings.catch_warnings(), safe_import_path():
            warnings.simplefilter("ignore")
            ray.init(address=target, **quiet)
    except Exception as error:  # Ray raises errors of many kinds
        raise ClusterError(_refused(target, error)) from error
    _connected_here = True


def _check_nodes(ray: Any) -> None:
    """Refuse nodes with another version of Resolvent or Python; each node is asked once.

    Raises:
        ClusterError: with the node and the versions.
    """
    nodes = {
        node["NodeID"]: node["NodeManagerAddress"]
        for node in ray.nodes()
        if node["Alive"] and node["Resources"].get("CPU")
    }
    if not nodes:
        raise ClusterError(
            "the Ray cluster has no processors to work on: add nodes with `ray start --address`"
        )
    new = [node for node in nodes if node not in _compatible]
    if not new:
        return
    here = versions()
    for node, there in zip(new, _versions_of(ray, new), strict=True):
        if there is None:  # the node went away meanwhile
            continue
        for package, version in here.items():
            if there[package] != version:
                has = f"{package} {there[package]}" if there[package] else f"no {package}"
                raise ClusterError(
                    f"node {nodes[node]} of the Ray cluster has {has}, and this is {package} "
                    f"{version}: install the same version on all nodes"
                )
        _compatible.add(node)


def versions() -> dict[str, str]:
    """Return the versions that have to be the same on every node.

    >>> sorted(versions())
    ['Python', 'resolvent']
    """
    return {
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "resolvent": metadata.version("resolvent"),
    }


def _versions_of(ray: Any, nodes: list[str]) -> list[dict[str, str | None] | None]:
    """Ask nodes for their versions; None for a node that does not answer."""

    # A function within another goes to the nodes as it is: they may not have this package.
    def ask() -> dict[str, str | None]:
        import platform
        from importlib import import_module, metadata

        installed: dict[str, str | None] = {
            "Python": ".".join(platform.python_version_tuple()[:2]),
            "resolvent": None,
        }
        try:
            import_module("resolvent")
            installed["resolvent"] = metadata.version("resolvent")
        except ImportError:
            pass
        return installed

    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    task = ray.remote(num_cpus=0, max_retries=2)(ask)
    refs = [
        task.options(
            name="resolvent: versions",
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        ).remote()
        for node in nodes
    ]
    ready, _ = ray.wait(refs, num_returns=len(refs), timeout=_SECONDS_FOR_VERSIONS)
    answers: list[dict[str, str | None] | None] = []
    for ref in refs:
        try:
            answers.append(ray.get(ref) if ref in ready else None)
        except ray.exceptions.RayError:
            answers.append(None)
    if not any(answers):
        raise ClusterError(
            f"no node of the Ray cluster ran a task within {_SECONDS_FOR_VERSIONS:g} s: look at "
            f"`ray status`"
        )
    return answers


def _check_answers(address: str) -> None:
    """Open a socket at an address with a port first: Ray would wait long for an answer."""
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
        return f"Ray cannot be started on this machine ({_first_line(error)})"
    if "ersion mismatch" in str(error):
        return f"the Ray cluster at {address} does not fit: {' '.join(str(error).split())}"
    return (
        f"no Ray cluster answers at {address} ({_first_line(error)}): check the address, and "
        f"RAY_AUTH_TOKEN if the cluster has a token, or start one with `ray start --head`"
    )


def _first_line(error: BaseException) -> str:
    """Return the first line of an error's text that is not blank."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".:") if lines else type(error).__name__
