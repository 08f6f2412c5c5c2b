"""Machines + traces → one HTML page that shows them, for any browser, without a network.

`contents` puts together what the page says, as JSON values; `page` writes it into
the template beside it.
"""

from resolvent.display.report.writing import report

__all__ = ["report"]
