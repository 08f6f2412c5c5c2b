"""Workers that do all that a cluster may do: any order, any grouping, some pieces twice."""

import pickle
import random

from resolvent._util.parallel import Workers


class ShuffledWorkers(Workers):
    """Work as it might be done anywhere: nothing is shared, and whatever is possible happens."""

    name = "shuffled"

    def __init__(self, seed):
        self.chance = random.Random(seed)

    def map(self, work, pieces, *, called, report=None):
        for done, made in enumerate(self._made(work, pieces), 1):
            yield made
            if report is not None:
                report(done)

    def map_reduce(self, work, pieces, combine, *, called, report=None):
        made = self._made(work, pieces)
        combine = copied(combine)
        while len(made) > 1:
            at = self.chance.randrange(len(made) - 1)
            if self.chance.random() < 0.2:  # a task is lost, and done again
                combine(made[at], made[at + 1])
            made[at : at + 2] = [copied(combine(made[at], made[at + 1]))]
        if report is not None:
            report(len(pieces))
        return made[0]

    def map_until(self, work, pieces, enough, *, called):
        made = [None] * len(pieces)
        for number in self.chance.sample(range(len(pieces)), len(pieces)):
            made[number] = copied(copied(work)(copied(pieces[number])))
            if enough(made[number]):
                break
        return made

    def _made(self, work, pieces):
        order = list(range(len(pieces)))
        self.chance.shuffle(order)
        order += self.chance.choices(order, k=len(order) // 3)
        made = {}
        for number in order:
            made[number] = copied(copied(work)(copied(pieces[number])))
        return [made[number] for number in range(len(pieces))]


def copied(value):
    return pickle.loads(pickle.dumps(value))  # noqa: S301 -- our own bytes
