"""A Ray cluster, or a Ray of this machine: pieces of work as its tasks, combined near the data.

Ray schedules, moves results, and tries again what was lost with a worker or a node.
"""

import importlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from resolvent.errors import ClusterError, MissingExtra, ResolventError, StorageError
from resolvent.wording import amount
from resolvent.workers.folding import Telling, fold, neighbours
from resolvent.workers.ray_connection import check_nodes, connect, disconnect, first_line
from resolvent.workers.working import Report

Given = TypeVar("Given")
Made = TypeVar("Made")

RETRIES = 5
"""How often Ray tries a task again: if its worker or node was lost, or storage failed."""

FAN_IN = 8
"""Results that are combined by one task."""

_QUEUED = 2
"""Tasks for each processor that Ray is given at a time: it has one to do, and the next at hand."""

_ENDED_TOGETHER = 32
"""One of so many tasks that are under way has to end before others are begun."""

_MOMENT = 0.1
"""Seconds after which those that have ended are seen to, however few they are."""


@dataclass(frozen=True)
class Ray:
    """Tasks of Ray that go through pieces of work, each on one core.

    A Ray that runs in this process already is used as it is. Otherwise it is begun with the first
    work: `address` is what `ray.init` takes, such as "auto", "10.0.0.1:6379" or
    "ray://10.0.0.1:10001". Without an address it is `RAY_ADDRESS`, or else a Ray of this machine
    alone.
    """

    address: str | None = None

    @property
    def name(self) -> str:
        """How a user asks for it."""
        return "ray" if self.address is None else f"ray:{self.address}"

    def each(
        self,
        work: Callable[[Given], Made],
        pieces: Sequence[Given],
        *,
        called: str,
        report: Report | None = None,
    ) -> Iterator[Made]:
        """Return what is made of every piece, in the order of the pieces."""
        ray = self._ray()
        task, given, telling = _task(ray, fold, 2), ray.put(work), Telling()
        waiting: deque[Any] = deque()
        begun = 0
        with _explaining(ray, called):
            for number in range(len(pieces)):
                while begun < len(pieces) and len(waiting) < _QUEUED * _slots(ray):
                    name = _task_name(called, begun, 1, len(pieces))
                    refs = task.options(name=name).remote(given, None, [pieces[begun]])
                    waiting.append(refs)
                    begun += 1
                made, note = ray.get(waiting.popleft())
                telling.tell([note])
                yield made
                if report is not None:
                    report(number + 1)

    def together(
        self,
        work: Callable[[Given], Made],
        pieces: Sequence[Given],
        combine: Callable[[Made, Made], Made],
        *,
        called: str,
        report: Report | None = None,
    ) -> Made:
        """Return what is made of all pieces, combined in their order, in a tree of tasks."""
        ray = self._ray()
        given, join = ray.put(work), ray.put(combine)
        joining = _task(ray, _combined, 1).options(name=f"resolvent: {called}, combining")
        tree = _Tree(lambda refs: joining.remote(join, *refs))
        task, first = _task(ray, fold, 2), 0
        folding = []
        for run in neighbours(pieces, _slots(ray)):
            folding.append((_task_name(called, first, len(run), len(pieces)), run))
            first += len(run)

        def begin(number: int) -> Any:
            name, run = folding[number]
            made, note = task.options(name=name).remote(given, join, run)
            tree.add(made)
            return note

        if report is not None:
            report(0)  # Ray may have taken a while to begin
        with _explaining(ray, called):
            said = _awaited(ray, begin, [len(run) for _, run in folding], report)
            result: Made = ray.get(tree.root())
        Telling().tell(said)
        return result

    def first(
        self,
        work: Callable[[Given], Made],
        pieces: Sequence[Given],
        enough: Callable[[Made], bool],
        *,
        called: str,
    ) -> list[Made | None]:
        """Work on all pieces side by side until one is enough; the others are killed."""
        ray = self._ray()
        # Actors can be killed at any time; see docs/decisions/workers.md for tasks.
        kind = ray.remote(
            num_cpus=1,
            max_restarts=RETRIES,
            max_task_retries=RETRIES,
        )(_Alone)
        given = ray.put(work)
        actors, refs = [], []
        for number, piece in enumerate(pieces):
            name = _task_name(called, number, 1, len(pieces))
            actors.append(kind.remote())
            refs.append(actors[-1].made.options(name=name).remote(given, piece))
        made: list[Made | None] = [None] * len(pieces)
        number_of, waiting, stop = {ref: at for at, ref in enumerate(refs)}, list(refs), False
        try:
            with _explaining(ray, called):
                while waiting and not stop:
                    done, waiting = ray.wait(waiting, num_returns=1)
                    for ref in done:
                        made[number_of[ref]] = result = ray.get(ref)
                        ray.kill(actors[number_of[ref]])  # its processor is for the next one
                        stop |= enough(result)
        finally:
            for actor in actors:
                ray.kill(actor)
        return made

    def reached(self) -> str:
        """Connect, look at the nodes and say what there is; then leave again.

        Raises:
            ClusterError: when it cannot be reached, or does not fit.
        """
        ray = self._ray()
        try:
            nodes = sum(one["Alive"] for one in ray.nodes())
            there = amount(nodes, "node"), amount(_slots(ray), "processor")
            return f"Ray {ray.__version__}, {there[0]} with {there[1]}"
        finally:
            self.close()

    def close(self) -> None:
        """Leave Ray, and end it if it runs on this machine alone, if it was begun here."""
        disconnect()

    def _ray(self) -> Any:
        """Return Ray's module, connected to nodes that have what is needed."""
        ray = part_of_ray()
        connect(ray, self.address)
        check_nodes(ray)
        return ray


def part_of_ray(name: str = "ray") -> Any:
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


def _task_name(called: str, first: int, many: int, of: int) -> str:
    """Say which pieces a task is about, for those who watch Ray's dashboard.

    >>> _task_name("replaying", 11, 8, 90), _task_name("reading", 0, 1, 90)
    ('resolvent: replaying 12-19 of 90', 'resolvent: reading 1 of 90')
    """
    last = f"-{first + many}" if many > 1 else ""
    return f"resolvent: {called} {first + 1}{last} of {of}"


def _combined(combine: Callable[[Made, Made], Made], *made: Made) -> Made:
    result, *rest = made
    for one in rest:
        result = combine(result, one)
    return result


class _Alone:
    """Works on one piece in a process of its own."""

    def made(self, work: Callable[[Given], Made], piece: Given) -> Made:
        return fold(work, None, [piece])[0]


class _Tree:
    """Results that come in order, combined as soon as there are enough neighbours.

    >>> tree = _Tree("".join)
    >>> for letter in "abcdefghijklmnopqrs":
    ...     tree.add(letter)
    >>> tree.levels, tree.root()
    ([['q', 'r', 's'], ['abcdefgh', 'ijklmnop']], 'abcdefghijklmnopqrs')
    """

    def __init__(self, combine: Callable[[list[Any]], Any]) -> None:
        self.combine = combine
        self.levels: list[list[Any]] = []

    def add(self, one: Any, level: int = 0) -> None:
        """Take in the next result."""
        if level == len(self.levels):
            self.levels.append([])
        self.levels[level].append(one)
        if len(self.levels[level]) == FAN_IN:
            together = self.combine(self.levels[level])
            self.levels[level] = []
            self.add(together, level + 1)

    def root(self) -> Any:
        """Return all results combined. Those of lower levels came later."""
        last: list[Any] = []
        for level in self.levels:
            refs = [*level, *last]
            last = [self.combine(refs)] if len(refs) > 1 else refs
        return last[0]


def _awaited(
    ray: Any, begin: Callable[[int], Any], sizes: list[int], report: Report | None
) -> list[Any]:
    """Begin tasks as there is room for them, and return the notes they leave.

    What fails first is raised: first in order, not in time, so that an error does not depend on
    chance. Whatever ends the waiting, no more tasks are begun, and the few under way are left to
    end by themselves.
    """
    said: list[Any] = [None] * len(sizes)
    waiting: dict[Any, int] = {}
    begun = done = 0
    failed = None
    while waiting or (begun < len(sizes) and failed is None):
        room = _QUEUED * _slots(ray)
        while failed is None and begun < len(sizes) and len(waiting) < room:
            waiting[begin(begun)] = begun
            begun += 1
        for ref in _ready(ray, list(waiting)):
            number = waiting.pop(ref, None)
            if number is None:  # it comes after one that failed
                continue
            try:
                said[number] = ray.get(ref)
            except ray.exceptions.RayError as error:
                failed = error
                waiting = {ref: before for ref, before in waiting.items() if before < number}
                continue
            done += sizes[number]
            if report is not None and failed is None:
                report(done)
    if failed is not None:
        raise failed
    return said


def _ready(ray: Any, waiting: list[Any]) -> list[Any]:
    """Wait until a task has ended; of many, until some have or a moment has passed.

    To ask costs by the number of tasks asked for. Meanwhile each processor has its next task.
    """
    some = max(len(waiting) // _ENDED_TOGETHER, 1)
    ready, _ = ray.wait(waiting, num_returns=some, timeout=None if some == 1 else _MOMENT)
    found: list[Any] = ready
    return found


@contextmanager
def _explaining(ray: Any, called: str) -> Iterator[None]:
    """Raise what a task raised as if it had been raised here, and say in a line what Ray says."""
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
        f"again ({type(error).__name__}: {first_line(error)}): look at its nodes and their memory"
    )
