"""Streams and calls: an HTTP/2 stream, and a SIP call."""

from typing import NamedTuple

from protocols.rules import model


@model(
    "http2-stream",
    after="RFC 9113, stream states",
    start=("idle", ""),
    inputs="""send HEADERS, send HEADERS end, send DATA, send DATA end, send PUSH, send RST
    send WINDOW, receive HEADERS, receive HEADERS end, receive DATA, receive DATA end
    receive PUSH, receive RST, receive WINDOW, receive PRIORITY""",
)
def http2_stream(at: tuple[str, str], given: str) -> tuple[tuple[str, str], str]:
    """One stream, as an endpoint sees it; its own mistakes are refused, others' are errors."""
    state, why = at
    who, frame = given.split(maxsplit=1)
    mine = who == "send"
    if state == "broken":
        return at, "no connection"
    if frame == "PRIORITY":
        return at, "ok"
    ended = frame.endswith(" end")
    mistake = (at, "refused") if mine else (("broken", ""), "connection error")
    here, there = ("local", "remote") if mine else ("remote", "local")
    if state == "closed":
        if mine:
            return at, "refused"
        if why == "reset by us" or frame in ("WINDOW", "RST"):
            return at, "ignored"
        return at if why == "reset by peer" else ("broken", ""), "stream closed"
    if frame == "RST":
        if state == "idle":
            return mistake
        return ("closed", "reset by us" if mine else "reset by peer"), "ok"
    if frame == "WINDOW":
        return mistake if state == "idle" else (at, "ok")
    match state, frame.split()[0]:
        case "idle", "HEADERS":
            return ((f"half-closed {here}" if ended else "open"), ""), "ok"
        case "idle", "PUSH":
            return (f"reserved {here}", ""), "ok"
        case "open", "HEADERS" | "DATA":
            return ((f"half-closed {here}" if ended else "open"), ""), "ok"
        case "open", "PUSH":
            return at, "ok"
    if state == f"reserved {here}" and frame.startswith("HEADERS"):
        return (("closed", "ended") if ended else (f"half-closed {there}", "")), "ok"
    if state == f"half-closed {there}" and frame != "PUSH":
        return (("closed", "ended") if ended else at), "ok"
    if state == f"half-closed {here}" and not mine:
        return ("closed", "reset by us"), "stream error"
    return mistake


class Sip(NamedTuple):
    """A SIP telephone."""

    phase: str = "idle"
    held: bool = False
    again: bool = False
    resent: int = 0


@model(
    "sip-phone",
    after="RFC 3261, one dialog, called or calling",
    start=Sip(),
    inputs="""dial, answer, reject, hang up, hold, INVITE, ACK, CANCEL, BYE, OPTIONS
    180, 200, 401, 486, timer""",
)
def sip_phone(at: Sip, given: str) -> tuple[Sip, str]:
    """Calls are made and taken, put on hold, cancelled, and sent again when time passes."""
    match at.phase, given:
        case _, "OPTIONS":
            return at, "200 options" if at.phase == "idle" else "486 options"
        case "idle", "dial":
            return Sip("calling"), "INVITE"
        case "idle", "INVITE":
            return Sip("ringing"), "180"
        case "idle", "BYE" | "CANCEL":
            return at, "481"
        case "calling" | "proceeding", "180":
            return at._replace(phase="proceeding", resent=0), "rings"
        case "calling" | "proceeding", "200":
            return Sip("talking"), "ACK"
        case "calling", "401":
            if at.again:
                return Sip(), "ACK, failed"
            return Sip("calling", again=True), "ACK, INVITE authorized"
        case "calling" | "proceeding", "486":
            return Sip(), "ACK, busy"
        case "calling", "timer":
            if at.resent == 2:
                return Sip(), "failed"
            return at._replace(resent=at.resent + 1), "INVITE"
        case "calling", "hang up":
            return Sip("giving up"), "-"
        case "proceeding", "hang up":
            return Sip("cancelling"), "CANCEL"
        case "giving up", "180":
            return Sip("cancelling"), "CANCEL"
        case "giving up" | "cancelling", "200":
            return Sip("leaving"), "ACK, BYE"
        case "giving up" | "cancelling", "486":
            return Sip(), "ACK"
        case "giving up" | "cancelling" | "leaving", "timer":
            return Sip(), "-"
        case "leaving", "200":
            return Sip(), "-"
        case "leaving", "BYE":
            return at, "200"
        case "ringing", "INVITE":
            return at, "180"
        case "ringing", "answer":
            return Sip("answered"), "200"
        case "ringing", "reject":
            return Sip("refused"), "486"
        case "ringing", "CANCEL":
            return Sip("refused"), "200, 487"
        case "refused", "ACK":
            return Sip(), "-"
        case "answered" | "refused", "timer":
            if at.resent == 2:
                return Sip(), "-" if at.phase == "refused" else "BYE"
            return at._replace(resent=at.resent + 1), "again"
        case "answered", "ACK":
            return Sip("talking"), "connected"
        case "answered" | "talking" | "changing", "BYE":
            return Sip(), "200, over"
        case "talking", "hold":
            return at._replace(phase="changing"), "INVITE hold"
        case "changing", "200":
            return Sip("talking", held=not at.held), "ACK"
        case "changing", "486":
            return at._replace(phase="talking"), "ACK"
        case "talking", "INVITE":
            return at, "200 held" if at.held else "200"
        case "changing", "INVITE":
            return at, "491"
        case "talking" | "changing", "hang up":
            return Sip("leaving"), "BYE"
        case "ringing" | "answered" | "talking", "CANCEL":
            return at, "200"
    if given in ("dial", "answer", "reject", "hang up", "hold"):
        return at, "not now"
    return at, "-"
