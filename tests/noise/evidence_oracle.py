"""The log evidence of a machine, straight from its definition and slow."""

import math
from collections import Counter, defaultdict


def log_evidence(samples, transitions, strength, share):
    """Walk all traces; then sum over the possible main outputs of every row."""
    outputs = defaultdict(Counter)
    pooled = defaultdict(Counter)
    read = set()
    for first, last in zip(samples.offsets[:-1], samples.offsets[1:], strict=True):
        state = 0
        for row in range(first, last):
            if samples.beta[row] >= 0:
                read.add((state, int(samples.beta[row])))
                state = int(transitions[state, samples.beta[row]])
            if samples.alpha[row] >= 0:
                query = int(samples.alpha[row])
                outputs[state, query][int(samples.output[row])] += 1
                pooled[query][int(samples.output[row])] += 1
    total = sum(
        log_row(counts, pooled[query], strength, share) for (_, query), counts in outputs.items()
    )
    return total + log_transitions(transitions, read)


def log_row(counts, pooled, strength, share):
    """The outputs of one row one after another, as drawn from an urn, for each main output."""
    log_likelihoods = []
    queried = sum(pooled.values()) + 0.5 * len(pooled)
    for main, often in pooled.items():
        urn = {output: strength * share / len(pooled) for output in pooled}
        urn[main] += strength * (1 - share)
        log_likely = math.log((often + 0.5) / queried)
        for output, count in counts.items():
            for _ in range(count):
                log_likely += math.log(urn[output] / sum(urn.values()))
                urn[output] += 1
        log_likelihoods.append(log_likely)
    most = max(log_likelihoods)
    return most + math.log(sum(math.exp(each - most) for each in log_likelihoods))


def log_transitions(transitions, read):
    """Each transition is a loop with one unknown probability, or leads to any other state."""
    states = len(transitions)
    stays = leaves = 0
    total = math.log(math.factorial(states - 1))
    for state, label in sorted(read):
        if transitions[state, label] == state:
            total += math.log((stays + 1) / (stays + leaves + 2))
            stays += 1
        else:
            total += math.log((leaves + 1) / (stays + leaves + 2)) - math.log(max(states - 1, 1))
            leaves += 1
    return total
