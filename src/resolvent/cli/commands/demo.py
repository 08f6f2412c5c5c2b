"""`resolvent demo`: the house of the paper's Figure 1, from traces to a plan."""

from resolvent.cli.options import Json
from resolvent.cli.output import print_json, program_name
from resolvent.paper.demo import run_demo, show_demo


def demo(json: Json = False) -> None:
    """Show every step in a small house: traces, two machines, a check and a plan."""
    results = run_demo()
    if json:
        print_json(results.as_dict())
    else:
        show_demo(results, program_name())
