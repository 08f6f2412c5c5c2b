"""Handshakes of servers: TLS 1.2, TLS 1.3 and DTLS."""

from typing import NamedTuple

from protocols.rules import model


class Tls12(NamedTuple):
    """A TLS 1.2 server that takes a client's certificate and can do without."""

    phase: str = "hello"
    certificate: bool = False
    warnings: int = 0


_TLS12_OVER = Tls12("closed")


@model(
    "tls12-server",
    after="RFC 5246, handshake with optional client certificate",
    start=Tls12(),
    inputs="""ClientHello RSA, ClientHello DHE, ClientHello resume, Certificate, ClientKeyExchange
    CertificateVerify, ChangeCipherSpec, Finished, ApplicationData, ApplicationData empty
    Alert warning, Alert close, HeartbeatRequest""",
)
def tls12_server(at: Tls12, given: str) -> tuple[Tls12, str]:
    """Ciphers changed or a handshake finished out of order end it; much else is ignored."""
    if at.phase == "closed":
        return at, "connection closed"
    match at.phase, given:
        case _, "Alert close":
            return _TLS12_OVER, "close notify"
        case "data", "Alert warning":
            if at.warnings == 2:
                return _TLS12_OVER, "too many warnings"
            return at._replace(warnings=at.warnings + 1), "-"
        case "data", "HeartbeatRequest":
            return at, "heartbeat"
        case "data", "ClientHello RSA" | "ClientHello DHE" | "ClientHello resume":
            return at, "no renegotiation"
        case "hello", "ClientHello RSA":
            return Tls12("key"), "ServerHello, Certificate, ServerHelloDone"
        case "hello", "ClientHello DHE":
            return Tls12("key"), "ServerHello, Certificate, ServerKeyExchange, ServerHelloDone"
        case "hello", "ClientHello resume":
            return Tls12("resumed"), "ServerHello, ChangeCipherSpec, Finished"
        case "key", "Certificate" if not at.certificate:
            return at._replace(certificate=True), "-"
        case "key", "ClientKeyExchange":
            return Tls12("verify" if at.certificate else "cipher"), "-"
        case "verify", "CertificateVerify":
            return Tls12("cipher"), "-"
        case "cipher" | "resumed", "ChangeCipherSpec":
            return Tls12(f"{at.phase} changed"), "-"
        case "cipher changed", "Finished":
            return Tls12("data"), "ChangeCipherSpec, Finished"
        case "resumed changed", "Finished":
            return Tls12("data"), "-"
        case "data", "ApplicationData":
            return at._replace(warnings=0), "ApplicationData"
        case _, "ChangeCipherSpec" | "Finished":
            return _TLS12_OVER, "unexpected message"
        case "cipher changed" | "resumed changed", "ApplicationData":
            return _TLS12_OVER, "decrypt error"
    return at, "-"


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
    """Retry once, early data, one harmless change of ciphers, keys that are renewed twice."""
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
        case "verify", "CertificateVerify":
            return at._replace(phase="finished"), "-"
        case "finished", "Finished":
            return Tls13("data"), "NewSessionTicket"
        case "data", "ApplicationData":
            return at._replace(updates=0), "ApplicationData"
        case "data", "KeyUpdate" | "KeyUpdate requested" if at.updates < 2:
            told = "KeyUpdate" if given.endswith("requested") else "-"
            return at._replace(updates=at.updates + 1), told
        case "early", "EarlyData":
            return _TLS13_OVER, "too much early data"
        case "data", "KeyUpdate" | "KeyUpdate requested":
            return _TLS13_OVER, "too many updates"
        case "hello", "ClientHello other group":
            return _TLS13_OVER, "illegal parameter"
    if given.startswith(("ClientHello", "EarlyData", "ApplicationData", "KeyUpdate", "Change")):
        return at, "-"
    return _TLS13_OVER, "unexpected message"


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
