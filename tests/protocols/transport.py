"""Transport: TCP from its diagram, a TCP server as its peers see it, stop-and-wait, QUIC."""

from typing import NamedTuple

from protocols.rules import model

_TCP: dict[tuple[str, str], tuple[str, str]] = {
    ("closed", "connect"): ("syn-sent", "SYN"),
    ("closed", "listen"): ("listen", "ok"),
    ("listen", "send"): ("syn-sent", "SYN"),
    ("listen", "close"): ("closed", "ok"),
    ("listen", "syn"): ("syn-received", "SYN+ACK"),
    ("syn-sent", "close"): ("closed", "ok"),
    ("syn-sent", "syn"): ("syn-received", "SYN+ACK"),
    ("syn-sent", "syn+ack"): ("established", "ACK"),
    ("syn-sent", "rst"): ("closed", "refused"),
    ("syn-sent", "timeout"): ("syn-sent", "SYN"),
    ("syn-received", "ack"): ("established", "-"),
    ("syn-received", "close"): ("fin-wait-1", "FIN"),
    ("syn-received", "fin"): ("close-wait", "ACK"),
    ("syn-received", "timeout"): ("syn-received", "SYN+ACK"),
    ("established", "send"): ("established", "DATA"),
    ("established", "data"): ("established", "ACK"),
    ("established", "close"): ("fin-wait-1", "FIN"),
    ("established", "fin"): ("close-wait", "ACK"),
    ("close-wait", "send"): ("close-wait", "DATA"),
    ("close-wait", "close"): ("last-ack", "FIN"),
    ("last-ack", "ack"): ("closed", "-"),
    ("last-ack", "timeout"): ("last-ack", "FIN"),
    ("fin-wait-1", "ack"): ("fin-wait-2", "-"),
    ("fin-wait-1", "fin"): ("closing", "ACK"),
    ("fin-wait-1", "fin+ack"): ("time-wait", "ACK"),
    ("fin-wait-1", "data"): ("fin-wait-1", "ACK"),
    ("fin-wait-1", "timeout"): ("fin-wait-1", "FIN"),
    ("fin-wait-2", "fin"): ("time-wait", "ACK"),
    ("fin-wait-2", "fin+ack"): ("time-wait", "ACK"),
    ("fin-wait-2", "data"): ("fin-wait-2", "ACK"),
    ("closing", "ack"): ("time-wait", "-"),
    ("closing", "timeout"): ("closing", "FIN"),
    ("time-wait", "fin"): ("time-wait", "ACK"),
    ("time-wait", "fin+ack"): ("time-wait", "ACK"),
    ("time-wait", "timeout"): ("closed", "-"),
}


@model(
    "tcp",
    after="RFC 9293, state diagram",
    start="closed",
    inputs="""connect, listen, send, close, abort
    syn, syn+ack, ack, data, fin, fin+ack, rst, timeout""",
)
def tcp(state: str, given: str) -> tuple[str, str]:
    """Either side of a connection."""
    if (state, given) in _TCP:
        return _TCP[state, given]
    if given in ("connect", "listen", "send", "close"):
        return state, "error"
    if given == "abort":
        return "closed", "-" if state in ("closed", "listen", "syn-sent") else "RST"
    if given == "timeout":
        return state, "-"
    if given == "rst":
        return ("listen" if state == "listen" else "closed"), "-"
    if state in ("closed", "listen", "syn-sent"):
        return state, "RST"
    return (state, "ACK") if given in ("syn", "syn+ack") else (state, "-")


class Server(NamedTuple):
    """A TCP server: its listening socket, one connection, and the application's calls."""

    socket: str = "new"
    waiting: bool = False
    connection: str = "none"
    accepted: bool = False
    unread: bool = False
    reading: bool = False


_TALKING = ("established", "close-wait")


@model(
    "tcp-server",
    after="RFC 9293, segment arrives",
    start=Server(),
    inputs="""listen, accept, receive, send, close connection, close socket
    SYN, SYN+ACK, ACK, ACK old, DATA, DATA beyond window, FIN+ACK, RST, RST old""",
)
def tcp_server(at: Server, given: str) -> tuple[Server, str]:
    """A stack and the application on it: calls and segments in any order."""
    match given:
        case "listen":
            return (at._replace(socket="listening"), "ok") if at.socket == "new" else (at, "error")
        case "accept":
            return _accept(at)
        case "receive" | "send" | "close connection" if not at.accepted:
            return at, "error"
        case "receive" | "send" if at.connection == "reset":
            return at._replace(connection="none"), "connection reset"
        case "receive" if at.unread:
            return at._replace(unread=False), "data"
        case "receive":
            if at.connection == "established":
                return at._replace(reading=True), "blocks"
            return at, "end"
        case "send":
            return at, "PSH+ACK" if at.connection in _TALKING else "error"
        case "close connection":
            return _close(at)
        case "close socket":
            if at.socket != "listening":
                return at._replace(socket="closed"), "-"
            left = at if at.accepted else at._replace(connection="none", unread=False)
            told = "-" if at.accepted or at.connection not in _TALKING else "RST+ACK"
            return left._replace(socket="closed", waiting=False), told
    return _segment(at, given)


def _accept(at: Server) -> tuple[Server, str]:
    if at.socket != "listening" or at.waiting or at.accepted:
        return at, "error"
    if at.connection in (*_TALKING, "reset"):
        return at._replace(accepted=True), "accepted"
    return at._replace(waiting=True), "blocks"


def _close(at: Server) -> tuple[Server, str]:
    closed = at._replace(accepted=False, unread=False, reading=False)
    if at.unread and at.connection in _TALKING:
        return closed._replace(connection="none"), "RST+ACK"
    if at.connection == "established":
        return closed._replace(connection="fin-wait-1"), "FIN+ACK"
    if at.connection == "close-wait":
        return closed._replace(connection="last-ack"), "FIN+ACK"
    return closed, "-"


def _segment(at: Server, given: str) -> tuple[Server, str]:
    match at.connection, given:
        case "none", "SYN" if at.socket == "listening" and not at.accepted:
            return at._replace(connection="syn-received"), "SYN+ACK"
        case "none" | "reset", "RST" | "RST old":
            return at, "-"
        case "none" | "reset", _:
            return at, "RST"
        case _, "RST" if at.connection in _TALKING and not at.reading:
            return at._replace(connection="reset", unread=False), "-"
        case _, "RST":
            told = "connection reset" if at.reading else "-"
            return at._replace(connection="none", reading=False, unread=False), told
        case _, "RST old" | "SYN" | "DATA beyond window":
            return at, "ACK"
        case "syn-received", "ACK" | "DATA" | "FIN+ACK":
            taken = at._replace(connection="established", accepted=at.waiting, waiting=False)
            following, told = (taken, "-") if given == "ACK" else _segment(taken, given)
            return following, f"accepted, {told}" if at.waiting else told
        case "syn-received", "ACK old" | "SYN+ACK":
            return at, "RST"
        case "established", "DATA":
            if at.reading:
                return at._replace(reading=False), "ACK, data"
            return at._replace(unread=True), "ACK"
        case "established", "FIN+ACK":
            return at._replace(connection="close-wait", reading=False), "ACK"
        case "fin-wait-1", "ACK":
            return at._replace(connection="fin-wait-2"), "-"
        case "fin-wait-1", "FIN+ACK":
            return at._replace(connection="time-wait"), "ACK"
        case "fin-wait-1" | "fin-wait-2", "DATA":
            return at._replace(connection="none"), "RST"
        case "fin-wait-2", "FIN+ACK":
            return at._replace(connection="time-wait"), "ACK"
        case "last-ack", "ACK":
            return at._replace(connection="none"), "-"
        case "time-wait", "FIN+ACK":
            return at, "ACK"
        case _, "SYN+ACK":
            return at, "ACK"
    return at, "-"


@model(
    "stop-and-wait",
    after="the alternating bit protocol, receiving side",
    start=("wants 0", False),
    inputs="frame 0, frame 1, broken frame, hang up, status",
)
def stop_and_wait(at: tuple[str, bool], given: str) -> tuple[tuple[str, bool], str]:
    """A receiver: frames with one bit, some of them broken, until the line is hung up."""
    wants, _ = at
    if wants == "gone":
        return at, "no line"
    if given == "hang up":
        return ("gone", False), "bye"
    last = "1" if wants == "wants 0" else "0"
    if given == f"frame {wants[-1]}":
        return (f"wants {last}", False), f"delivered, ack {wants[-1]}"
    return at, "up" if given == "status" else f"ack {last}"


class Quic(NamedTuple):
    """A QUIC server's connection."""

    phase: str = "idle"
    validated: bool = False
    acknowledged: bool = False
    streams: int = 0
    updated: bool = False


@model(
    "quic-server",
    after="RFC 9000 and 9001, handshake with retry",
    start=Quic(),
    inputs="""initial hello, initial hello with token, initial hello bad, initial ack, initial close
    handshake finished, handshake finished bad, handshake ack, handshake close
    short ping, short stream, short stream end, short key update, short path challenge, short close
    unknown version, no connection""",
)
def quic_server(at: Quic, given: str) -> tuple[Quic, str]:
    """A server that asks for a token before it believes an address."""
    kind, _, what = given.partition(" ")
    if given == "unknown version":
        return at, "version negotiation" if at.phase == "idle" else "-"
    if given == "no connection":
        return at, "stateless reset"
    match at.phase, kind:
        case "idle", "initial":
            if what == "hello":
                return at._replace(validated=True), "retry"
            if what == "hello with token" and at.validated:
                return at._replace(phase="handshake"), "server hello, finished"
            if what in ("hello bad", "hello with token"):
                return Quic("closed"), "initial close"
        case "handshake", "initial":
            if what == "ack":
                return at._replace(acknowledged=True), "-"
            if what == "close":
                return Quic("draining"), "-"
            if what.startswith("hello"):
                return at, "-" if at.acknowledged else "server hello, finished"
        case "handshake", "handshake":
            match what:
                case "finished":
                    return Quic("connected"), "handshake done"
                case "finished bad":
                    return Quic("closed"), "handshake close"
                case "close":
                    return Quic("draining"), "-"
            return at._replace(acknowledged=True), "-"
        case "connected", "short":
            return _quic_connected(at, what)
        case "closed", "short" | "handshake":
            return at, "close again"
    return at, "-"


def _quic_connected(at: Quic, what: str) -> tuple[Quic, str]:
    match what:
        case "stream" if at.streams == 2:
            return Quic("closed"), "stream limit error"
        case "stream":
            return at._replace(streams=at.streams + 1), "ack"
        case "stream end" if at.streams:
            return at._replace(streams=at.streams - 1), "ack, response"
        case "stream end":
            return Quic("closed"), "stream state error"
        case "key update":
            return at._replace(updated=not at.updated), "ack, new keys"
        case "path challenge":
            return at, "path response"
        case "close":
            return Quic("draining"), "-"
    return at, "ack, old keys" if at.updated else "ack"
