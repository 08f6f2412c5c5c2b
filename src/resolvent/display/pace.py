"""Fractions of a piece of work done over time → how fast it goes and how long it will take."""

_LEAST_SECONDS, _LEAST_FRACTION = 0.5, 0.005
_STEPS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


class Pace:
    """How fast a stage goes, as the mean since it began."""

    def __init__(self, began: float) -> None:
        self._began = began

    def text(self, now: float, fraction: float, total: float | None, unit: str) -> str:
        """Write rate and time left, or the time so far while nothing can be told.

        >>> pace = Pace(100.0)
        >>> pace.text(110.0, 0.25, 4e9, "B"), pace.text(110.0, 0.25, None, "")
        ('100 MB/s, 30 s left', '30 s left')
        >>> pace.text(190.0, 0.0, None, "")
        '1:30 so far'
        """
        seconds = now - self._began
        if fraction < _LEAST_FRACTION or seconds < _LEAST_SECONDS:
            return f"{duration(seconds)} so far"
        left = f"{duration(seconds * (1 - min(fraction, 1.0)) / fraction)} left"
        return left if total is None else f"{rate(total * fraction / seconds, unit)}, {left}"


def rate(per_second: float, unit: str) -> str:
    """Write how many of something are done in a second; in a minute or an hour if it is slow.

    >>> rate(1_234_567, "B"), rate(12_345, "steps"), rate(3.21, "episodes"), rate(0.05, "runs")
    ('1.23 MB/s', '12.3k steps/s', '3.21 episodes/s', '3 runs/min')
    """
    for per, name in ((1, "s"), (60, "min")):
        if per_second * per >= 1:
            return f"{_short(per_second * per, unit)}/{name}"
    return f"{_short(per_second * 3600, unit)}/h"


def _short(number: float, unit: str) -> str:
    size, letter = next((step for step in _STEPS if number >= step[0]), (1.0, ""))
    text = f"{number / size:.3g}"
    return f"{text} {letter}{unit}" if unit == "B" else f"{text}{letter} {unit}"


def duration(seconds: float) -> str:
    """Write a time as people say it.

    >>> duration(0.4), duration(59.6), duration(754), duration(7322)
    ('0 s', '1:00', '12:34', '2:02:02')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
