"""Logins: SSH, and a login with lock-out."""

from typing import NamedTuple

from protocols.rules import model


class Ssh(NamedTuple):
    """An SSH server: keys, user, channel."""

    keys: str = "none"
    exchange: int = 0
    user: str = "nobody"
    failed: int = 0
    channel: str = "none"


_GONE = Ssh("gone")


@model(
    "ssh-session",
    after="RFC 4253 and 4254, channels of a user who is known",
    start=Ssh("set", user="known"),
    inputs="DISCONNECT, KEXINIT, KEX30, NEWKEYS, OPEN, CLOSE, EOF, DATA, WINDOW, PTY, SHELL",
)
@model(
    "ssh-server",
    after="RFC 4252 to 4254, with renewed keys",
    start=Ssh(),
    inputs="""DISCONNECT, IGNORE, UNIMPLEMENTED, DEBUG, KEXINIT, KEX30, NEWKEYS
    SERVICE auth, SERVICE connection, AUTH none, AUTH key, AUTH key wrong, AUTH password
    AUTH password wrong, OPEN, CLOSE, EOF, DATA, WINDOW, PTY, SHELL""",
)
def ssh_server(at: Ssh, given: str) -> tuple[Ssh, str]:
    """Transport, then user, then channels; keys are renewed at any time."""
    if at.keys == "gone":
        return at, "no connection"
    match given:
        case "DISCONNECT":
            return _GONE, "disconnected"
        case "IGNORE" | "DEBUG":
            return at, "-"
        case "UNIMPLEMENTED":
            return at, "-" if at.keys == "set" else "UNIMPLEMENTED"
        case "KEXINIT" | "KEX30" | "NEWKEYS":
            return _exchange(at, given)
    if at.keys == "none" or at.exchange:
        return at, "UNIMPLEMENTED"  # nothing else may come while keys are exchanged
    if given.startswith(("SERVICE", "AUTH")):
        return _user(at, given)
    return _channel(at, given)


def _exchange(at: Ssh, given: str) -> tuple[Ssh, str]:
    match at.exchange, given:
        case 0, "KEXINIT":
            return at._replace(exchange=1), "KEXINIT"
        case 1, "KEX30":
            return at._replace(exchange=2), "KEX31, NEWKEYS"
        case 2, "NEWKEYS":
            return at._replace(keys="set", exchange=0), "-"
        case _, "NEWKEYS":
            return _GONE, "disconnected"
    return at, "UNIMPLEMENTED"


def _user(at: Ssh, given: str) -> tuple[Ssh, str]:
    if at.user == "known":
        return at, "-" if given.startswith("AUTH") else "UNIMPLEMENTED"
    if given == "SERVICE auth":
        return at._replace(user="asked"), "SERVICE ACCEPT"
    if given == "SERVICE connection":
        return _GONE, "disconnected"
    if at.user == "nobody":
        return at, "UNIMPLEMENTED"
    match given:
        case "AUTH key" | "AUTH password":
            return at._replace(user="known", failed=0), "AUTH SUCCESS"
        case "AUTH none":
            return at, "AUTH FAILURE"
    if at.failed == 2:
        return _GONE, "too many failures"
    return at._replace(failed=at.failed + 1), "AUTH FAILURE"


def _channel(at: Ssh, given: str) -> tuple[Ssh, str]:
    if at.user != "known":
        return at, "UNIMPLEMENTED"
    match at.channel, given:
        case "none", "OPEN":
            return at._replace(channel="open"), "OPEN CONFIRMATION"
        case _, "OPEN":
            return at, "OPEN FAILURE"
        case "none", _:
            return at, "-"
        case _, "CLOSE":
            return at._replace(channel="none"), "CLOSE"
        case _, "WINDOW":
            return at, "-"
        case "open" | "pty" | "shell" | "pty shell", "EOF":
            return at._replace(channel="ended"), "EOF, CLOSE" if "shell" in at.channel else "-"
        case "open" | "shell", "PTY":
            named = "pty" if at.channel == "open" else "pty shell"
            return at._replace(channel=named), "CHANNEL SUCCESS"
        case "open" | "pty", "SHELL":
            named = "shell" if at.channel == "open" else "pty shell"
            return at._replace(channel=named), "CHANNEL SUCCESS"
        case _, "PTY" | "SHELL":
            return at, "CHANNEL FAILURE"
        case "pty shell", "DATA":
            return at, "DATA echo"
        case "shell", "DATA":
            return at, "DATA"
    return at, "-"


class Login(NamedTuple):
    """A login: who is in, wrong passwords in a row, and time left until unlocked."""

    name: str = ""
    inside: bool = False
    wrong: int = 0
    locked: int = 0
    changing: bool = False


@model(
    "login",
    after="a login with lock-out",
    start=Login(),
    inputs="user, admin, right password, wrong password, new password, logout, wait, help, reset",
)
def login(at: Login, given: str) -> tuple[Login, str]:
    """Three wrong passwords lock it for a while; only an administrator resets it."""
    match given:
        case "help":
            return at, "locked" if at.locked else "welcome"
        case "wait":
            return at._replace(locked=max(0, at.locked - 1)), "-"
        case "reset" if at.inside and at.name == "admin":
            return Login(), "reset"
        case "reset":
            return at, "denied"
    if at.locked:
        return at, "locked"
    match given:
        case "user" | "admin" if not at.inside:
            return at._replace(name=given), "password?"
        case "right password" if at.name and not at.inside:
            return Login(at.name, True), f"hello {at.name}"
        case "right password" if at.inside:
            return at._replace(changing=True), "new password?"
        case "wrong password" if at.name and not at.inside:
            if at.wrong == 2:
                return Login(locked=3), "locked"
            return at._replace(wrong=at.wrong + 1), "wrong"
        case "new password" if at.changing:
            return Login(wrong=at.wrong), "changed, log in again"
        case "logout" if at.inside:
            return Login(), "bye"
    return at, "not now"
