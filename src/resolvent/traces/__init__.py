"""Traces: files, Gymnasium rollouts → `TraceSet`, the agent's observations."""

from resolvent.traces.io.formats import read_traces, write_traces
from resolvent.traces.io.read_table import read_log, read_table, scan_traces
from resolvent.traces.source import TraceDataset
from resolvent.traces.symbols import (
    NO_EVENT,
    Label,
    Symbol,
    as_label,
    as_symbol,
    label_order,
    label_text,
    symbol_order,
    symbol_text,
)
from resolvent.traces.trace import Trace
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes, Vocabulary

__all__ = [
    "NO_EVENT",
    "Codes",
    "Label",
    "Symbol",
    "Trace",
    "TraceDataset",
    "TraceSet",
    "Vocabulary",
    "as_label",
    "as_symbol",
    "label_order",
    "label_text",
    "read_log",
    "read_table",
    "read_traces",
    "scan_traces",
    "symbol_order",
    "symbol_text",
    "write_traces",
]
