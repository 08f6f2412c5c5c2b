"""Fuzzing that stays: damaged files for every reader, and odd arguments for every public call.

An input follows from a seed, the name of its reader and a number, so that any of them can be made
again. There are two ways that trying one may end: a result, or a `ResolventError`. Anything else
counts as a failure: any other exception, a crash, more than five seconds or four gigabytes.

| file | what it has |
|---|---|
| `mutations.py` | ways to damage bytes, texts and JSON |
| `targets.py` | what a reader is to a fuzzer, and all of them by name |
| `trace_readers.py`, `table_readers.py`, `machine_readers.py`, `acting_readers.py`, \
`kept_readers.py` | valid files made from a seed, and who reads them |
| `public_calls.py` | odd arguments |
| `trying.py` | one input, tried |
| `running.py` | many, in processes of their own under limits; counts and failing inputs |
| `corpus/` | small files that are always tried, among them all that ever failed |

`make fuzz` runs it for an hour; `python -m fuzz --help` says how to try one input again.
"""
