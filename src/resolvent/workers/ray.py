"""A Ray cluster, or a Ray of this machine: pieces of work as its tasks, combined near the data.

Ray schedules, moves results, and tries again what was lost with a worker or a node.
"""

import importlib
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

_SECONDS_BETWEEN_LOOKS = 0.2


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
        ahead, telling = 2 * _slots(ray), Telling()
        task, given = _task(ray, fold, 2), ray.put(work)
        waiting: list[Any] = []
        with _explaining(ray, called), _cancelling(ray, waiting):
            for number in range(len(pieces)):
                while len(waiting) < min(len(pieces), number + ahead):
                    name = _task_name(called, len(waiting), 1, len(pieces))
                    piece = [pieces[len(waiting)]]
                    waiting.append(task.options(name=name).remote(given, None, piece))
                made, note = ray.get(waiting[number])
                waiting[number] = ()  # Ray need not keep what the caller has
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
        runs = neighbours(pieces, _slots(ray))
        task, first = _task(ray, fold, 2), 0
        tasks = []
        for run in runs:
            name = _task_name(called, first, len(run), len(pieces))
            tasks.append(task.options(name=name).remote(given, join, run))
            first += len(run)
        made, notes = (list(refs) for refs in zip(*tasks, strict=True))
        joining = _task(ray, _combined, 1).options(name=f"resolvent: {called}, combining")
        level = made
        every = [*notes]
        while len(level) > 1:
            level = [
                joining.remote(join, *level[start : start + FAN_IN])
                for start in range(0, len(level), FAN_IN)
            ]
            every += level
        with _explaining(ray, called), _cancelling(ray, every):
            said = _awaited(ray, notes, list(map(len, runs)), report)
            result: Made = ray.get(level[0])
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
        """Work on all pieces side by side until one is enough; the other tasks are killed."""
        ray = self._ray()
        task, given = _task(ray, _made_alone, 1), ray.put(work)
        names = [_task_name(called, number, 1, len(pieces)) for number in range(len(pieces))]
        refs = [
            task.options(name=name).remote(given, piece)
            for name, piece in zip(names, pieces, strict=True)
        ]
        made: list[Made | None] = [None] * len(pieces)
        number, waiting, stop = {ref: at for at, ref in enumerate(refs)}, list(refs), False
        with _explaining(ray, called), _cancelling(ray, refs):
            while waiting and not stop:
                done, waiting = ray.wait(waiting, num_returns=1)
                for ref in done:
                    made[number[ref]] = result = ray.get(ref)
                    stop |= enough(result)
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
        try:
            ray = importlib.import_module("ray")
        except ImportError as error:
            raise MissingExtra(
                'Ray is not installed: pip install "resolvent[ray]", or choose on="threads"'
            ) from error
        connect(ray, self.address)
        check_nodes(ray)
        return ray


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


def _made_alone(work: Callable[[Given], Made], piece: Given) -> Made:
    return fold(work, None, [piece])[0]


def _awaited(ray: Any, notes: list[Any], sizes: list[int], report: Report | None) -> list[Any]:
    """Wait for tasks by the notes they leave, and return these; what fails first is raised.

    That is the first task in order, not in time, so that an error does not depend on chance.
    """
    said: list[Any] = [None] * len(notes)
    waiting = {note: number for number, note in enumerate(notes)}
    done, failed = 0, None
    while waiting:
        refs = list(waiting)
        ready, _ = ray.wait(refs, num_returns=len(refs), timeout=_SECONDS_BETWEEN_LOOKS)
        for ref in ready:
            number = waiting.pop(ref, None)
            if number is None:
                continue
            try:
                said[number] = ray.get(ref)
            except ray.exceptions.RayError as error:
                failed = error
                waiting = {ref: before for ref, before in waiting.items() if before < number}
            else:
                done += sizes[number]
        if ready and report is not None and failed is None:
            report(done)
    if failed is not None:
        raise failed
    return said


@contextmanager
def _cancelling(ray: Any, refs: list[Any]) -> Iterator[None]:
    """Stop tasks that are not done when a block ends, however it ends."""
    try:
        yield
    finally:
        for ref in refs:
            one = ref[0] if isinstance(ref, list | tuple) and ref else ref
            if not isinstance(one, tuple):
                ray.cancel(one, force=True)


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
