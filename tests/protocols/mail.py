"""Mail and messages: SMTP, POP3, IMAP and MQTT."""

from typing import NamedTuple

from protocols.rules import model


class Smtp(NamedTuple):
    """An SMTP server's session."""

    greeted: str = ""
    encrypted: bool = False
    user: bool = False
    envelope: str = ""


@model(
    "smtp",
    after="RFC 5321, with STARTTLS and AUTH",
    start=Smtp(),
    inputs="""HELO, EHLO, STARTTLS, AUTH, MAIL, RCPT, RCPT unknown, DATA, text, dot
    RSET, NOOP, VRFY, QUIT""",
)
def smtp(at: Smtp, given: str) -> tuple[Smtp, str]:
    """Mail is taken from those who said who they are; strangers get errors."""
    if at.greeted == "gone":
        return at, "closed"
    if at.envelope == "data":
        return (at._replace(envelope=""), "250 queued") if given == "dot" else (at, "-")
    match given:
        case "QUIT":
            return Smtp("gone"), "221"
        case "HELO" | "EHLO":
            told = "250 extensions" if given == "EHLO" else "250"
            return at._replace(greeted=given, envelope=""), told
        case "NOOP":
            return at, "250"
        case "VRFY":
            return at, "252"
        case "RSET":
            return at._replace(envelope=""), "250"
        case "STARTTLS" if at.greeted == "EHLO" and not at.encrypted:
            return Smtp(encrypted=True), "220"
        case "AUTH" if at.greeted == "EHLO" and at.encrypted and not at.user and not at.envelope:
            return at._replace(user=True), "235"
        case "MAIL" if at.greeted and not at.envelope:
            return at._replace(envelope="mail"), "250"
        case "RCPT" if at.envelope:
            return at._replace(envelope="recipients"), "250"
        case "RCPT unknown" if at.envelope:
            if at.user:
                return at._replace(envelope="recipients"), "251 relayed"
            return at, "550"
        case "DATA" if at.envelope == "recipients":
            return at._replace(envelope="data"), "354"
        case "text" | "dot":
            return at, "500"
    return at, "503"


class Pop3(NamedTuple):
    """A POP3 session with a drop of two messages."""

    phase: str = "authorization"
    named: bool = False
    failed: int = 0
    deleted: frozenset[int] = frozenset()


@model(
    "pop3",
    after="RFC 1939",
    start=Pop3(),
    inputs="USER, PASS, PASS wrong, STAT, LIST, RETR 1, DELE 1, DELE 2, RSET, NOOP, TOP 2, QUIT",
)
def pop3(at: Pop3, given: str) -> tuple[Pop3, str]:
    """Messages are marked first and deleted when the session ends."""
    if at.phase == "gone":
        return at, "closed"
    if given == "QUIT":
        return Pop3("gone"), f"+OK {len(at.deleted)} deleted" if at.deleted else "+OK"
    if at.phase == "authorization":
        match given:
            case "USER":
                return at._replace(named=True), "+OK"
            case "PASS" if at.named:
                return Pop3("transaction"), "+OK"
            case "PASS wrong" if at.named:
                if at.failed == 2:
                    return Pop3("gone"), "-ERR bye"
                return at._replace(named=False, failed=at.failed + 1), "-ERR"
        return at, "-ERR"
    verb, _, number = given.partition(" ")
    match verb:
        case "STAT" | "LIST":
            return at, f"+OK {2 - len(at.deleted)}"
        case "RSET":
            return at._replace(deleted=frozenset()), "+OK"
        case "NOOP":
            return at, "+OK"
        case "RETR" | "TOP" if int(number) not in at.deleted:
            return at, "+OK message"
        case "DELE" if int(number) not in at.deleted:
            return at._replace(deleted=at.deleted | {int(number)}), "+OK"
    return at, "-ERR"


class Imap(NamedTuple):
    """An IMAP session with one mailbox."""

    phase: str = "greeted"
    encrypted: bool = False
    messages: int = 1
    marked: bool = False


@model(
    "imap",
    after="RFC 9051, one mailbox of up to two messages",
    start=Imap(),
    inputs="""CAPABILITY, NOOP, STARTTLS, LOGIN, LOGIN wrong, SELECT, EXAMINE, APPEND, FETCH
    STORE deleted, STORE undeleted, EXPUNGE, CLOSE, UNSELECT, IDLE, DONE, LOGOUT""",
)
def imap(at: Imap, given: str) -> tuple[Imap, str]:
    """Messages are read in a selected mailbox, and none of it without encryption."""
    if at.phase == "gone":
        return at, "closed"
    if at.phase.startswith("idle"):
        if given == "DONE":
            return at._replace(phase=at.phase.split()[1]), "OK"
        return at, "-"
    match given:
        case "LOGOUT":
            return Imap("gone"), "BYE, OK"
        case "NOOP":
            return at, "OK"
        case "CAPABILITY":
            return at, "OK" if at.encrypted else "OK, STARTTLS"
        case "DONE":
            return at, "BAD"
    if at.phase == "greeted":
        match given:
            case "STARTTLS" if not at.encrypted:
                return at._replace(encrypted=True), "OK"
            case "LOGIN" | "LOGIN wrong" if not at.encrypted:
                return at, "NO, privacy required"
            case "LOGIN":
                return at._replace(phase="known"), "OK"
            case "LOGIN wrong":
                return at, "NO"
        return at, "BAD"
    match given:
        case "STARTTLS" | "LOGIN" | "LOGIN wrong":
            return at, "BAD"
        case "SELECT" | "EXAMINE":
            return at._replace(phase=given.lower()), f"OK, {at.messages} exist"
        case "APPEND" if at.messages < 2:
            shown = "" if at.phase == "known" else ", exists"
            return at._replace(messages=at.messages + 1), f"OK{shown}"
        case "APPEND":
            return at, "NO, quota"
        case "IDLE":
            return at._replace(phase=f"idle {at.phase}"), "+"
    return _selected(at, given) if at.phase in ("select", "examine") else (at, "BAD")


def _selected(at: Imap, given: str) -> tuple[Imap, str]:
    writable = at.phase == "select"
    match given:
        case "FETCH":
            return at, f"{at.messages} of them{', one deleted' if at.marked else ''}"
        case "STORE deleted" | "STORE undeleted" | "EXPUNGE" if not writable:
            return at, "NO, read-only"
        case "STORE deleted" | "STORE undeleted" if not at.messages:
            return at, "BAD"
        case "STORE deleted" | "STORE undeleted":
            return at._replace(marked=given == "STORE deleted"), "OK"
        case "UNSELECT":
            return at._replace(phase="known"), "OK"
    left = at.messages - 1 if at.marked and writable else at.messages
    after = at._replace(messages=left, marked=at.marked and not writable)
    if given == "EXPUNGE":
        return after, "OK, expunged" if at.marked else "OK"
    return after._replace(phase="known"), "OK"


class Mqtt(NamedTuple):
    """What an MQTT broker knows of a client."""

    connected: str = ""
    subscribed: bool = False
    stored: bool = False
    retained: bool = False
    receiving: bool = False
    will: bool = False


@model(
    "mqtt-broker",
    after="MQTT 3.1.1, one client and one topic",
    start=Mqtt(),
    inputs="""CONNECT clean, CONNECT, CONNECT will, DISCONNECT, connection lost, SUBSCRIBE
    UNSUBSCRIBE, PUBLISH 0, PUBLISH 1, PUBLISH 2, PUBREL, PUBLISH retained, PUBLISH empty
    PINGREQ""",
)
def mqtt_broker(at: Mqtt, given: str) -> tuple[Mqtt, str]:
    """Sessions that are kept, a message that is retained, a will, and delivery just once."""
    if given.startswith("CONNECT"):
        if at.connected:
            return _mqtt_lost(at), "closed"
        clean = given == "CONNECT clean"
        kept = Mqtt() if clean else at
        fresh = kept._replace(
            connected="clean" if clean else "kept",
            retained=at.retained,
            will=given.endswith("will"),
        )
        present = not clean and at.stored
        return fresh._replace(stored=not clean), "CONNACK present" if present else "CONNACK"
    if not at.connected:
        return at, "no connection"
    match given:
        case "DISCONNECT":
            return _mqtt_lost(at._replace(will=False)), "closed"
        case "connection lost":
            return _mqtt_lost(at), "closed"
        case "SUBSCRIBE":
            told = "SUBACK, PUBLISH retained" if at.retained else "SUBACK"
            return at._replace(subscribed=True), told
        case "UNSUBSCRIBE":
            return at._replace(subscribed=False), "UNSUBACK"
        case "PINGREQ":
            return at, "PINGRESP"
        case "PUBREL":
            return at._replace(receiving=False), "PUBCOMP, PUBLISH" if (
                at.receiving and at.subscribed
            ) else "PUBCOMP"
        case "PUBLISH 2":
            return at._replace(receiving=True), "PUBREC"
    told = {"0": [], "1": ["PUBACK"], "retained": [], "empty": []}[given.split()[1]]
    told = [*told, "PUBLISH"] if at.subscribed else told
    retained = {"retained": True, "empty": False}.get(given.split()[1], at.retained)
    return at._replace(retained=retained), ", ".join(told) or "-"


def _mqtt_lost(at: Mqtt) -> Mqtt:
    """The will is published to whoever is there, and is retained."""
    retained = at.retained or at.will
    if at.connected == "clean":
        return Mqtt(retained=retained)
    return at._replace(connected="", will=False, retained=retained)
