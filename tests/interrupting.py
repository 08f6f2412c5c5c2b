"""Ctrl-C for a process, and whether it ends soon, however slow or busy the machine is."""

import os
import signal
import subprocess
import time
from pathlib import Path

PATIENCE = 120.0
"""Seconds after which a process has not heard: what tests interrupt would go on for minutes."""


def interrupt(process: "subprocess.Popen[bytes] | subprocess.Popen[str]") -> None:
    """Press Ctrl-C and wait for the end, which is to take no longer than the beginning took.

    Both are counted in seconds of the processor, which nothing else on the machine uses up. What
    the process prints after Ctrl-C has to fit into its pipes: nobody reads them meanwhile.
    """
    before = processor_seconds(process.pid)
    process.send_signal(signal.SIGINT)
    until = time.monotonic() + PATIENCE
    # Not `process.wait`, after which nothing would say what the process has used.
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        assert time.monotonic() < until, "it has not heard Ctrl-C"
        time.sleep(0.01)
    after = processor_seconds(process.pid) - before
    assert after < before, f"{after:.2f} s of the processor after Ctrl-C, {before:.2f} s until then"


def processor_seconds(process: int) -> float:
    """Return the seconds that a process has had of the processor so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
