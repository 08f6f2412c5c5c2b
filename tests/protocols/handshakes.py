"""Handshakes of servers: TLS 1.2, TLS 1.3 and DTLS."""

from typing import NamedTuple

from protocols.rules import model


class Tls12(NamedTuple):
    """A TLS 1.2 server that asks for a certificate and can do without."""

    phase: str = "hello"
    exchange: str = ""
    certificate: str = ""
    warnings: int = 0


_TLS_OVER = Tls12("closed")


@model(
    "tls12-server",
    after="RFC 5246, handshake with optional client certificate",
    start=Tls12(),
    inputs="""ClientHello RSA, ClientHello DHE, ClientHello resume, Certificate, Certificate empty
    ClientKeyExchange, CertificateVerify, ChangeCipherSpec, Finished, ApplicationData
    ApplicationData empty, Alert warning, Alert close, HeartbeatRequest""",
)
def tls12_server(at: Tls12, given: str) -> tuple[Tls12, str]:
    """Any message out of order ends the connection, heartbeats and few warnings aside."""
    if at.phase == "closed":
        return at, "connection closed"
    match at.phase, given:
        case _, "Alert close":
            return _TLS_OVER, "close notify"
        case _, "Alert warning":
            if at.warnings == 2:
                return _TLS_OVER, "unexpected message"
            return at._replace(warnings=at.warnings + 1), "-"
        case _, "HeartbeatRequest":
            return at, "heartbeat" if at.phase == "data" else "-"
        case "hello" | "data", "ClientHello RSA" | "ClientHello DHE":
            if at.phase == "data" and at.exchange == "renegotiated":
                return _TLS_OVER, "no renegotiation"
            sent = "ServerHello, Certificate"
            kind = given.split()[1]
            exchange = f"{kind} again" if at.phase == "data" else kind
            more = ", ServerKeyExchange" if kind == "DHE" else ""
            return Tls12("certificate", exchange), f"{sent}{more}, ServerHelloDone"
        case "hello", "ClientHello resume":
            return Tls12("resumed"), "ServerHello, ChangeCipherSpec, Finished"
        case "certificate", "Certificate" | "Certificate empty":
            held = "" if given.endswith("empty") else "held"
            return at._replace(phase="key", certificate=held), "-"
        case "key", "ClientKeyExchange":
            following = "verify" if at.certificate else "cipher"
            return at._replace(phase=following, certificate=""), "-"
        case "verify", "CertificateVerify":
            return at._replace(phase="cipher"), "-"
        case "cipher", "ChangeCipherSpec":
            return at._replace(phase="finished"), "-"
        case "resumed", "ChangeCipherSpec":
            return at._replace(phase="resumed finished"), "-"
        case "finished", "Finished":
            again = "renegotiated" if at.exchange.endswith("again") else ""
            return Tls12("data", again), "ChangeCipherSpec, Finished"
        case "resumed finished", "Finished":
            return Tls12("data"), "-"
        case "data", "ApplicationData":
            return at._replace(warnings=0), "ApplicationData"
        case "data", "ApplicationData empty":
            return at, "-"
    return _TLS_OVER, "decrypt error" if at.phase.endswith("finished") else "unexpected message"


class Tls13(NamedTuple):
    """A TLS 1.3 server that may be asked for early data."""

    phase: str = "hello"
    retried: bool = False
    early: int = 0
    compatible: int = 0
    updates: int = 0


_TLS13_OVER = Tls13("closed")


@model(
    "tls13-server",
    after="RFC 8446, server state machine",
    start=Tls13(),
    inputs="""ClientHello, ClientHello other group, ClientHello early data, ChangeCipherSpec
    EarlyData, EndOfEarlyData, Certificate, Certificate empty, CertificateVerify, Finished
    ApplicationData, KeyUpdate, KeyUpdate requested, Alert close""",
)
def tls13_server(at: Tls13, given: str) -> tuple[Tls13, str]:
    """Retry once, early data, one harmless change of ciphers, keys that are renewed."""
    if at.phase == "closed":
        return at, "connection closed"
    flight = "ServerHello, EncryptedExtensions, CertificateRequest, Finished"
    match at.phase, given:
        case _, "Alert close":
            return _TLS13_OVER, "close notify"
        case "certificate" | "verify" | "early" | "finished", "ChangeCipherSpec":
            if at.compatible:
                return _TLS13_OVER, "unexpected message"
            return at._replace(compatible=1), "-"
        case "hello", "ClientHello":
            return Tls13("certificate", at.retried), flight
        case "hello", "ClientHello other group" if not at.retried:
            return Tls13("hello", True), "HelloRetryRequest"
        case "hello", "ClientHello early data":
            if at.retried:
                return Tls13("certificate", True), flight
            return Tls13("early"), f"{flight}, early data accepted"
        case "early", "EarlyData" if at.early < 2:
            return at._replace(early=at.early + 1), "early response"
        case "early", "EndOfEarlyData":
            return at._replace(phase="finished", early=0), "-"
        case "certificate", "Certificate":
            return at._replace(phase="verify"), "-"
        case "certificate", "Certificate empty":
            return at._replace(phase="finished"), "-"
        case "certificate", "EarlyData" if at.retried:
            return at, "-"
        case "verify", "CertificateVerify":
            return at._replace(phase="finished"), "-"
        case "finished", "Finished":
            return Tls13("data"), "NewSessionTicket"
        case "data", "ApplicationData":
            return at._replace(updates=0), "ApplicationData"
        case "data", "KeyUpdate" | "KeyUpdate requested" if at.updates < 3:
            told = "KeyUpdate" if given.endswith("requested") else "-"
            return at._replace(updates=at.updates + 1), told
    told = "too much early data" if given == "EarlyData" else "unexpected message"
    return _TLS13_OVER, told


class Dtls(NamedTuple):
    """A DTLS server: messages that came too early are kept, flights are sent again."""

    phase: str = "start"
    kept: frozenset[str] = frozenset()
    resent: int = 0


_FLIGHT = {
    "start": "-",
    "key": "ServerHello … ServerHelloDone",
    "data": "ChangeCipherSpec, Finished",
    "closed": "-",
}
_WAITED_FOR = ("ClientKeyExchange", "ChangeCipherSpec", "Finished")


@model(
    "dtls-server",
    after="RFC 6347, cookies, reordering and retransmission",
    start=Dtls(),
    inputs="""ClientHello, ClientHello cookie, Certificate, ClientKeyExchange, ChangeCipherSpec
    Finished, ApplicationData, Alert warning, Alert fatal, time passes, garbage""",
)
def dtls_server(at: Dtls, given: str) -> tuple[Dtls, str]:
    """What comes twice is ignored, what comes early is kept, what is garbage is dropped."""
    if at.phase == "closed" or given == "garbage":
        return at, "-"
    match at.phase, given:
        case _, "Alert fatal":
            return Dtls("closed"), "-"
        case _, "Alert warning":
            return at, "-"
        case _, "time passes":
            if at.phase in ("start", "settled"):
                return at, "-"
            if at.resent == 3:
                return Dtls("closed"), "-" if at.phase == "data" else "Alert"
            return at._replace(resent=at.resent + 1), _FLIGHT[at.phase]
        case "start", "ClientHello":
            return at, "HelloVerifyRequest"
        case "start", "ClientHello cookie":
            return Dtls("key"), _FLIGHT["key"]
        case "key", "ClientHello" | "ClientHello cookie":
            return at, _FLIGHT["key"]
        case "key", "Certificate":
            return Dtls("closed"), "Alert"
        case "key", "ClientKeyExchange" | "ChangeCipherSpec" | "Finished":
            kept = at.kept | {given}
            if len(kept) == len(_WAITED_FOR):
                return Dtls("data"), _FLIGHT["data"]
            return at._replace(kept=kept), "-"
        case "data", "Finished":
            return at, _FLIGHT["data"]
        case "data" | "settled", "ApplicationData":
            return Dtls("settled"), "ApplicationData"
        case "settled", "ClientHello":
            return at, "Alert no renegotiation"
    return at, "-"
