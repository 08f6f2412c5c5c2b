"""The log evidence of a machine, straight from its definition and slow."""

import math
from collections import Counter, defaultdict


def log_evidence(samples, transitions, strength, share):
    """Walk all traces; then sum over the possible main answers of every row."""
    answers = defaultdict(Counter)
    pooled = defaultdict(Counter)
    read = set()
    for first, last in zip(samples.offsets[:-1], samples.offsets[1:], strict=True):
        state = 0
        for row in range(first, last):
            if samples.beta[row] >= 0:
                read.add((state, int(samples.beta[row])))
                state = int(transitions[state, samples.beta[row]])
            if samples.alpha[row] >= 0:
                question = int(samples.alpha[row])
                answers[state, question][int(samples.output[row])] += 1
                pooled[question][int(samples.output[row])] += 1
    total = sum(
        log_row(counts, pooled[question], strength, share)
        for (_, question), counts in answers.items()
    )
    return total + log_moves(transitions, read)


def log_row(counts, pooled, strength, share):
    """The answers of one row one after another, as drawn from an urn, for each main answer."""
    likely = []
    asked = sum(pooled.values()) + 0.5 * len(pooled)
    for main, often in pooled.items():
        urn = {answer: strength * share / len(pooled) for answer in pooled}
        urn[main] += strength * (1 - share)
        log_likely = math.log((often + 0.5) / asked)
        for answer, count in counts.items():
            for _ in range(count):
                log_likely += math.log(urn[answer] / sum(urn.values()))
                urn[answer] += 1
        likely.append(log_likely)
    most = max(likely)
    return most + math.log(sum(math.exp(each - most) for each in likely))


def log_moves(transitions, read):
    """A coin of unknown bias says of each move whether it stays; others are drawn evenly."""
    states = len(transitions)
    stays = moves = 0
    total = math.log(math.factorial(states - 1))
    for state, label in sorted(read):
        if transitions[state, label] == state:
            total += math.log((stays + 1) / (stays + moves + 2))
            stays += 1
        else:
            total += math.log((moves + 1) / (stays + moves + 2)) - math.log(max(states - 1, 1))
            moves += 1
    return total
