"""A vending machine by its rules, and logs of it as rows of a table."""

import random

EVENTS = ("coin 1", "coin 2", "cola", "refund")
START = (0, 2)
PRICE, MOST_CREDIT = 3, 4


def respond(state, event):
    """Return the next (credit, stock), and what the machine answers."""
    credit, stock = state
    match event.split():
        case ["coin", value]:
            if credit + int(value) > MOST_CREDIT:
                return state, "coin returned"
            return (credit + int(value), stock), "ok"
        case ["cola"] if not stock:
            return state, "sold out"
        case ["cola"] if credit < PRICE:
            return state, "pay first"
        case ["cola"]:
            return (credit - PRICE, stock - 1), "cola"
    return (0, stock), f"returned {credit}"


def log(sessions, seed, events=25):
    """Rows of random sessions, one after the other; times rise over all of them."""
    chance = random.Random(seed)
    rows = []
    for session in range(sessions):
        state = START
        for _ in range(events):
            event = chance.choice(EVENTS)
            state, response = respond(state, event)
            rows.append(
                {"time": len(rows), "session": f"s{session}", "event": event, "response": response}
            )
    return rows


def interleaved(rows, seed):
    """The same rows in any order; times still tell the order within each session."""
    rows = list(rows)
    random.Random(seed).shuffle(rows)
    return rows


def same_machine(machine, observation):
    """Whether a machine is the vending machine but for the names of its states.

    The states (credit, stock) all differ in what they answer, so that the true machine has
    as many as can be reached from the start.
    """
    partner, queue = {START: 0}, [START]
    for state in queue:
        for event in EVENTS:
            following, response = respond(state, event)
            if machine.output(partner[state], observation, event) != response:
                return False
            reached = machine.step(partner[state], {event})
            if following not in partner:
                queue.append(following)
            if partner.setdefault(following, reached) != reached:
                return False
    return len(partner) == machine.states == len(set(partner.values()))
