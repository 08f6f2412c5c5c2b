import codecs
import gzip
import os
import threading

import pyarrow as pa
import pytest
from hypothesis import given, settings

from resolvent.errors import OptionError, ResolventError, TraceError
from resolvent.traces import Trace, TraceSet, read_traces, write_traces
from strategies import paper_trace_sets, trace_sets

TRACE = Trace([1, 2, 1], [[], ["key"], []], [0, 1], [0.0, 0.5], terminated=True)
TRACES = TraceSet([TRACE, Trace([2, 2], [[], []], [0], [1], terminated=True)])
JSON_LINE = (
    b'{"observations": [1, 2, 1], "labels": [[], ["key"], []], '
    b'"actions": [0, 1], "rewards": [0, 0.5], "terminated": true}'
)
PAPER_LINE = b'[[["None", 1], 0, 0.0], [["key", 2], 1, 0.5], [["None", 1], 1, 0.5]]'
ENDINGS = ["jsonl", "json", "jsonl.gz", "jsonl.zst", "parquet", "JSONL.GZ"]


def zstd(content):
    return pa.Codec("zstd").compress(content, asbytes=True)


@pytest.fixture
def read(tmp_path):
    def read(content, **options):
        (tmp_path / "f.dat").write_bytes(content)
        return read_traces(tmp_path / "f.dat", **options)

    return read


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd])
@pytest.mark.parametrize("line", [JSON_LINE, PAPER_LINE])
def test_the_content_tells_the_format(read, line, pack):
    assert list(read(pack(line + b"\n" + line))) == [TRACE, TRACE]


def test_the_content_tells_parquet(tmp_path):
    write_traces(TRACES, tmp_path / "f.dat", format="parquet")
    assert read_traces(tmp_path / "f.dat") == TRACES


def test_several_members_of_one_compressed_file(read):
    for pack in (gzip.compress, zstd):
        assert list(read(pack(JSON_LINE + b"\n") + pack(JSON_LINE + b"\n"))) == [TRACE, TRACE]


def test_blank_lines_spaces_and_byte_order_mark(read):
    content = codecs.BOM_UTF8 + b"\n  \r\n  " + JSON_LINE + b"\r\n\n\t\n" + JSON_LINE + b"  \n\n"
    assert list(read(content)) == [TRACE, TRACE]
    assert list(read(codecs.BOM_UTF8 + JSON_LINE)) == [TRACE]


def test_lines_longer_than_a_buffer(read):
    steps = 300_000
    line = b"%s" % (b'[["None", 1], 0, 0.0], ' * steps)
    traces = read(b"[" + line + b'[["None", 1], 0, 0.0]]\n' + PAPER_LINE)
    assert [len(trace) for trace in traces] == [steps, 2]


def test_a_pipe_can_be_read(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(gzip.compress(JSON_LINE)))
    writer.start()
    assert list(read_traces(pipe, progress=lambda fraction: None)) == [TRACE]
    writer.join()


def test_progress_grows_to_one(read):
    reported = []
    read((PAPER_LINE + b"\n") * 50_000, progress=reported.append)
    assert reported == sorted(reported)
    assert all(0 <= fraction <= 1 for fraction in reported)
    assert len(reported) > 1
    assert reported[-1] == 1.0


@pytest.mark.parametrize("ending", ENDINGS)
def test_writing_is_reproducible(tmp_path, ending):
    one, other = tmp_path / f"one.{ending}", tmp_path / f"other.{ending}"
    write_traces(TRACES, one)
    write_traces(TRACES, str(other))
    assert one.read_bytes() == other.read_bytes()
    assert read_traces(str(one)) == TRACES
    assert len(list(tmp_path.iterdir())) == 2


def test_large_files_are_compressed_in_blocks(tmp_path):
    traces = TraceSet([Trace(range(200_001), [None] * 200_001, ["go"] * 200_000, [0] * 200_000)])
    traces = traces.take([0, 0, 0, 0])
    write_traces(traces, tmp_path / "large.jsonl.zst")
    assert read_traces(tmp_path / "large.jsonl.zst") == traces


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "jsonl.zst", "parquet"])
@settings(max_examples=15, deadline=None)
@given(traces=trace_sets(any_columns=True))
def test_round_trip(tmp_path_factory, ending, traces):
    path = tmp_path_factory.mktemp("files") / f"traces.{ending}"
    write_traces(traces, path)
    assert read_traces(path) == traces


@pytest.mark.parametrize("ending", ["jsonl", "gz", "zst"])
@settings(max_examples=15, deadline=None)
@given(traces=paper_trace_sets())
def test_round_trip_in_the_paper_s_format(tmp_path_factory, ending, traces):
    path = tmp_path_factory.mktemp("files") / f"traces.{ending}"
    write_traces(traces, path, format="paper")
    assert read_traces(path) == traces


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "f.dat is empty"),
        (b"\n  \n\t\n", "f.dat holds no traces: it has only blank lines"),
        (gzip.compress(b"", mtime=0), "f.dat holds no traces"),
        (b"\nepisode,step\n", r"f.dat, line 2: not traces: .* Parquet, or JSON lines"),
        (b"5\n", "f.dat, line 1: not traces"),
        (JSON_LINE + b"\n\n" + JSON_LINE[:70], "line 3: the last line has no end .* truncated"),
        (JSON_LINE + b"\n" + JSON_LINE[:70] + b"\n\n", "line 2: not valid JSON"),
        (JSON_LINE + b"\n" + PAPER_LINE, "line 2: expected `object`, got `array`"),
        (PAPER_LINE + b"\n" + JSON_LINE, "line 2: expected `array`, got `object`"),
        (
            gzip.compress(JSON_LINE, mtime=0)[:-20],
            r"f.dat: cannot be read past line 0 .* truncated",
        ),
        (zstd(JSON_LINE)[:-5], r"f.dat: cannot be read past line 0 .* truncated"),
        (b"\x1f\x8b not really gzip", "f.dat: cannot be read past line 0"),
        (b"PAR1 not really Parquet", "f.dat: cannot be read as Parquet"),
    ],
)
def test_bad_files(read, content, message):
    with pytest.raises(TraceError, match=message) as caught:
        read(content)
    assert "\n" not in str(caught.value)


def test_a_format_may_be_forced(read):
    with pytest.raises(TraceError, match="expected `object`, got `array`"):
        read(PAPER_LINE, format="jsonl")
    with pytest.raises(TraceError, match="expected `array`, got `object`"):
        read(JSON_LINE, format="paper")
    with pytest.raises(TraceError, match="is not a Parquet file"):
        read(JSON_LINE, format="parquet")


def test_a_file_that_does_not_exist(tmp_path):
    with pytest.raises(TraceError, match=r"nothing\.jsonl does not exist$"):
        read_traces(tmp_path / "nothing.jsonl")


def test_a_file_below_a_file(tmp_path):
    (tmp_path / "f").write_bytes(JSON_LINE)
    with pytest.raises(TraceError, match="cannot be read: not a directory"):
        read_traces(tmp_path / "f" / "g")


@pytest.mark.parametrize("name", ["traces", "traces.csv", "traces.gz", "traces.jsonl.bz2"])
def test_a_name_that_does_not_tell_the_format(tmp_path, name):
    with pytest.raises(OptionError, match=r"end it in \.parquet, \.jsonl"):
        write_traces(TRACES, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_format(tmp_path):
    for attempt in (
        lambda: write_traces(TRACES, tmp_path / "f.jsonl", format="csv"),
        lambda: read_traces(tmp_path / "f.jsonl", format="csv"),
    ):
        with pytest.raises(OptionError, match="unknown format 'csv': use one of jsonl, paper, pa"):
            attempt()


def test_parquet_is_not_compressed_twice(tmp_path):
    with pytest.raises(OptionError, match=r"leave out \.gz"):
        write_traces(TRACES, tmp_path / "f.parquet.gz")


def test_no_traces_to_write(tmp_path):
    with pytest.raises(TraceError, match=r"no traces to write to .*f\.jsonl"):
        write_traces(TraceSet(), tmp_path / "f.jsonl")


def test_failing_to_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "f.jsonl"
    path.write_bytes(b"old")
    bad = TraceSet([Trace([0, 1], [["a", "b"], []], [0], [0])])
    with pytest.raises(TraceError, match="cannot be written in the paper"):
        write_traces(bad, path, format="paper")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_nowhere_to_write(tmp_path):
    with pytest.raises(ResolventError, match=r"cannot write .*: the folder .*nowhere does not"):
        write_traces(TRACES, tmp_path / "nowhere" / "f.jsonl")


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.zst", "parquet"])
def test_columns_are_named_whatever_the_format(tmp_path, ending):
    path = tmp_path / f"traces.{ending}"
    trace = Trace([0, 1], [None, None], ["go"], columns={"cost": [5], "fault": [True]})
    write_traces(TraceSet([trace]), path)
    assert list(read_traces(path)) == list(read_traces(path, columns=["cost"])) == [trace]
    with pytest.raises(TraceError, match="no column `cots`: there are cost, fault"):
        read_traces(path, columns=["cots"])
    with pytest.raises(TraceError, match=r"columns='cost' is a string: give a list"):
        read_traces(path, columns="cost")
    with pytest.raises(TraceError, match="a column cannot be called `reward`"):
        read_traces(path, columns=["reward"])


def test_a_file_of_machines_is_said_to_be_no_traces(tmp_path):
    path = tmp_path / "house.json"
    path.write_bytes(b'{\n"format": "resolvent-machines",\n"version": 2\n}\n')
    with pytest.raises(TraceError, match="as files of machines are; a file of traces is"):
        read_traces(path)
