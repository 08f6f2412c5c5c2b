"""Devices: a lift, a vending machine, a printer, traffic lights, a washing machine."""

from typing import NamedTuple

from protocols.rules import model


class Lift(NamedTuple):
    """A lift between three floors."""

    floor: int = 0
    door: str = "closed"
    calls: frozenset[int] = frozenset()
    rising: bool = True


@model(
    "lift",
    after="a lift that goes on in its direction while there is somebody to fetch",
    start=Lift(),
    inputs="call 0, call 1, call 2, time passes, something in the door, forget calls, alarm",
)
def lift(at: Lift, given: str) -> tuple[Lift, str]:
    """Doors close after a while, unless something is between them."""
    match given.split():
        case ["call", number]:
            floor = int(number)
            if floor == at.floor and at.door != "moving":
                return at._replace(door="open"), "doors open"
            return at._replace(calls=at.calls | {floor}), f"lamp {floor}"
        case ["something", *_]:
            return (at._replace(door="open"), "doors open") if at.door == "closing" else (at, "-")
        case ["forget", *_]:
            return at._replace(calls=frozenset()), "lamps off"
        case ["alarm"]:
            return at, "bell"
    match at.door:
        case "open":
            return at._replace(door="closing"), "doors close"
        case "closing":
            return at._replace(door="closed"), "doors closed"
        case "closed" if not at.calls:
            return at, "-"
    above = any(one > at.floor for one in at.calls)
    below = any(one < at.floor for one in at.calls)
    rising = above if at.rising else not below
    floor = at.floor + (1 if rising else -1)
    if floor in at.calls:
        return Lift(floor, "open", at.calls - {floor}, rising), f"floor {floor}, doors open"
    return Lift(floor, "closed", at.calls, rising), f"floor {floor}"


class Vending(NamedTuple):
    """A vending machine's credit and stock."""

    credit: int = 0
    tea: int = 2
    bars: int = 2
    chosen: str = ""


@model(
    "vending",
    after="a vending machine with two goods and a limited stock",
    start=Vending(),
    inputs="coin 1, coin 2, coin 5, tea, bar, confirm, refund, refill, shake",
)
def vending(at: Vending, given: str) -> tuple[Vending, str]:
    """Tea costs 2 and a bar 3; goods are chosen and then confirmed."""
    match given.split():
        case ["coin", "5"]:
            return at, "coin returned"
        case ["coin", value]:
            if at.credit + int(value) > 4:
                return at, "coin returned"
            return at._replace(credit=at.credit + int(value)), "ok"
        case ["tea" | "bar" as good]:
            if (at.tea if good == "tea" else at.bars) == 0:
                return at._replace(chosen=""), "sold out"
            return at._replace(chosen=good), f"{good}?"
        case ["confirm"] if at.chosen:
            price = 2 if at.chosen == "tea" else 3
            if at.credit < price:
                return at, f"{price - at.credit} more"
            paid = at._replace(credit=at.credit - price, chosen="")
            if at.chosen == "tea":
                return paid._replace(tea=at.tea - 1), "tea"
            return paid._replace(bars=at.bars - 1), "bar"
        case ["refund"]:
            return at._replace(credit=0, chosen=""), "coins" if at.credit else "-"
        case ["refill"] if not (at.tea or at.bars):
            return Vending(at.credit), "refilled"
    return at, "-"


class Printer(NamedTuple):
    """A printer's engine."""

    power: str = "off"
    jobs: bool = False
    paper: bool = True
    cover: bool = False
    jam: bool = False


@model(
    "printer",
    after="the status manager of a printing engine",
    start=Printer("warming"),
    inputs="""switch on, switch off, warm, cold, sleep, wake, job, cancel, page out, pause, resume
    paper empty, paper filled, cover opened, cover closed, jam, jam cleared, toner low
    service key, service done, self test, status, counter, network up""",
)
def printer(at: Printer, given: str) -> tuple[Printer, str]:
    """Most of what it is told does nothing, most of the time."""
    if at.power == "off":
        return (Printer("warming"), "starting") if given == "switch on" else (at, "-")
    able = at.paper and not (at.cover or at.jam)
    match at.power, given:
        case _, "switch off":
            return Printer(), "cleaning up" if at.power == "printing" else "off"
        case "service", "service done":
            return at._replace(power="warming"), "starting"
        case "service", "self test":
            return at, "test page"
        case "service", "status":
            return at, "service"
        case "service", _:
            return at, "-"
        case "ready", "service key" if at.cover:
            return Printer("service"), "service"
        case _, "paper empty" if at.paper:
            power = "ready" if at.power == "printing" else at.power
            return at._replace(paper=False, power=power), "fill paper"
        case _, "paper filled" if not at.paper:
            return at._replace(paper=True), "-"
        case _, "cover opened" if not at.cover:
            power = "ready" if at.power == "printing" else at.power
            return at._replace(cover=True, power=power), "close cover"
        case _, "cover closed" if at.cover:
            return at._replace(cover=False), "-"
        case "printing", "jam":
            return at._replace(jam=True, power="ready"), "jam"
        case _, "jam cleared" if at.jam and at.cover:
            return at._replace(jam=False), "-"
        case "warming", "warm":
            return at._replace(power="ready"), "ready" if able else "-"
        case "ready" | "paused", "cold":
            return at._replace(power="warming"), "-"
        case "ready", "sleep" if able and not at.jobs:
            return at._replace(power="asleep"), "asleep"
        case "asleep", "wake" | "job" | "cover opened":
            return at._replace(power="warming", jobs=given == "job"), "starting"
        case "warming" | "ready" | "printing", "job" if not at.jobs:
            return at._replace(jobs=True), "queued"
        case "warming" | "ready" | "printing", "job":
            return at, "queue full"
        case "ready", "resume" if able and at.jobs:
            return at._replace(power="printing"), "printing"
        case "printing", "page out":
            return at._replace(power="ready", jobs=False), "done"
        case "printing", "pause":
            return at._replace(power="ready"), "paused"
        case "ready" | "printing", "cancel" if at.jobs:
            return at._replace(jobs=False, power="ready"), "cancelled"
        case _, "status":
            if at.power in ("asleep", "warming"):
                return at, at.power
            return at, "jam" if at.jam else at.power if able else "attention"
    return at, "-"


class Lights(NamedTuple):
    """Traffic lights at a crossing for pedestrians."""

    cars: str = "green"
    asked: bool = False
    night: bool = False


_NEXT_LIGHT = {"yellow": "red", "red": "walk", "walk": "clearing", "clearing": "red and yellow"}


@model(
    "traffic-lights",
    after="lights at a crossing, with a button and a night mode",
    start=Lights(),
    inputs="button, time passes, night, day, emergency",
)
def traffic_lights(at: Lights, given: str) -> tuple[Lights, str]:
    """Pedestrians ask; cars stop; at night it blinks, once cars have green again."""
    if at.cars == "blinking":
        return (Lights("red and yellow"), "lights on") if given == "day" else (at, "blinks")
    match given:
        case "button":
            lit = at.cars in ("walk", "clearing")
            return (at, "-") if lit else (at._replace(asked=True), "wait")
        case "night" | "day":
            return at._replace(night=given == "night"), "-"
        case "emergency":
            return (at._replace(cars="yellow"), "yellow") if at.cars == "green" else (at, "-")
    if at.cars == "green":
        if at.night:
            return Lights("blinking"), "blinks"
        return (at._replace(cars="yellow"), "yellow") if at.asked else (at, "-")
    if at.cars == "red and yellow":
        return at._replace(cars="green"), "green"
    following = _NEXT_LIGHT[at.cars]
    return at._replace(cars=following, asked=at.asked and following != "walk"), following


class Washing(NamedTuple):
    """A washing machine."""

    power: bool = False
    door: str = "shut"
    program: str = "cotton"
    phase: str = "idle"
    spins: bool = True
    paused: bool = False


_PHASES = {
    "cotton": ("filling", "heating", "washing", "rinsing", "spinning"),
    "wool": ("filling", "washing", "rinsing", "spinning"),
    "rinse": ("filling", "rinsing", "spinning"),
}


@model(
    "washing-machine",
    after="a washing machine with three programs",
    start=Washing(),
    inputs="""power, door, cotton, wool, rinse, no spin, start, pause
    level reached, hot, time passes, leak""",
)
def washing_machine(at: Washing, given: str) -> tuple[Washing, str]:
    """The door is locked while there is water; a leak ends everything."""
    if at.phase == "leaking":
        return at, "call service"
    if not at.power:
        if given == "door":
            return at._replace(door="ajar" if at.door == "shut" else "shut"), "-"
        return (at._replace(power=True), "lamp on") if given == "power" else (at, "-")
    running = at.phase != "idle"
    if running and not at.paused and given == "leak":
        return Washing(True, phase="leaking"), "pumping out"
    match given:
        case "power":
            return (at, "locked") if running else (Washing(door=at.door), "lamp off")
        case "door":
            if running:
                return at, "locked"
            return at._replace(door="ajar" if at.door == "shut" else "shut"), "-"
        case "cotton" | "wool" | "rinse" if not running:
            return at._replace(program=given), f"{given} lamp"
        case "no spin" if at.phase not in ("rinsing", "spinning"):
            return at._replace(spins=not at.spins), "spin off" if at.spins else "spin on"
        case "start" if at.paused:
            return at._replace(paused=False), "goes on"
        case "start" if not running:
            if at.door == "ajar":
                return at, "shut the door"
            return at._replace(phase="filling"), "locked, filling"
        case "pause" if running and not at.paused:
            return at._replace(paused=True), "pauses"
        case "level reached" | "hot" | "time passes" if running and not at.paused:
            waits = {"filling": "level reached", "heating": "hot"}.get(at.phase, "time passes")
            return _washed(at) if given == waits else (at, "-")
    return at, "-"


def _washed(at: Washing) -> tuple[Washing, str]:
    phases = _PHASES[at.program][: None if at.spins else -1]
    later = phases[phases.index(at.phase) + 1 :]
    if later:
        return at._replace(phase=later[0]), later[0]
    return at._replace(phase="idle", spins=True), "done, unlocked"
