"""Signals that ask to stop, for work that can be resumed."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def stop_requests() -> Iterator[Callable[[], bool]]:
    """Yield a function that says whether a stop was requested; a second request stops at once."""
    requests: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return

    def note(number: int, frame: Any) -> None:
        if requests:
            raise KeyboardInterrupt
        requests.append(number)

    before = {
        signal_number: signal.signal(signal_number, note)
        for signal_number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield lambda: bool(requests)
    finally:
        for signal_number, handler in before.items():
            signal.signal(signal_number, handler)
