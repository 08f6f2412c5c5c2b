"""`resolvent demo`: the house of the paper's Figure 1, from traces to a plan."""

from resolvent.cli import flags, outputs
from resolvent.paper.demo import run_demo, show_demo


def demo(json: flags.Json = False) -> None:
    """Show every step in a small house: traces, two machines, a check and a plan."""
    results = run_demo()
    if json:
        outputs.print_json(results.as_dict())
    else:
        show_demo(results, outputs.program_name())
