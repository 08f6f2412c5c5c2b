"""Workers: pieces of work that do not need each other → their results, wherever they are done.

Whoever has much to do says so as a function of one piece, which can be pickled; threads,
processes or a cluster go through the pieces. What comes back does not depend on who did what,
in which order, or how often it was tried.
"""

from resolvent.workers.cores import cores
from resolvent.workers.named import at_work, workers_named
from resolvent.workers.processes import Processes
from resolvent.workers.ray import Ray
from resolvent.workers.threads import Threads
from resolvent.workers.working import Report, Workers

__all__ = [
    "Processes",
    "Ray",
    "Report",
    "Threads",
    "Workers",
    "at_work",
    "cores",
    "workers_named",
]
