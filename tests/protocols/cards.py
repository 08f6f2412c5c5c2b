"""Chips: a bank card, and an electronic passport."""

from typing import NamedTuple

from protocols.rules import model


class Card(NamedTuple):
    """A bank card's application."""

    selected: bool = False
    started: bool = False
    verified: bool = False
    tries: int = 3
    cryptogram: str = ""
    issuer: str = ""
    challenge: bool = False


@model(
    "bank-card",
    after="EMV books 1 to 3, one application with an offline PIN",
    start=Card(),
    inputs="""SELECT, SELECT unknown, GET PROCESSING OPTIONS, READ RECORD, GET DATA tries
    GET DATA counter, GET CHALLENGE, VERIFY, VERIFY wrong, INTERNAL AUTHENTICATE
    EXTERNAL AUTHENTICATE, EXTERNAL AUTHENTICATE wrong
    GENERATE AC offline, GENERATE AC online, GENERATE AC declined""",
)
def bank_card(at: Card, given: str) -> tuple[Card, str]:
    """A payment: options, PIN, first and second cryptogram; wrong PINs block it."""
    match given:
        case "SELECT":
            return Card(True, tries=at.tries), "9000"
        case "SELECT unknown":
            return at, "6A82"
        case "GET CHALLENGE":
            return at._replace(challenge=True), "9000 random"
        case _ if not at.selected:
            return at, "6985"
        case "GET DATA tries":
            return at, f"9000 {at.tries}"
        case "GET DATA counter":
            return at, "9000 counter"
        case "GET PROCESSING OPTIONS":
            return (at, "6985") if at.started else (at._replace(started=True), "9000 options")
        case "READ RECORD":
            return at, "9000 record" if at.started else "6985"
        case _ if not at.started:
            return at, "6985"
        case "VERIFY" | "VERIFY wrong" if at.tries == 0:
            return at, "6983"
        case "VERIFY":
            return at._replace(verified=True, tries=3), "9000"
        case "VERIFY wrong":
            return at._replace(verified=False, tries=at.tries - 1), f"63C{at.tries - 1}"
        case "INTERNAL AUTHENTICATE":
            return at, "9000 signature" if not at.cryptogram else "6985"
        case "EXTERNAL AUTHENTICATE" | "EXTERNAL AUTHENTICATE wrong":
            if at.cryptogram != "online" or at.issuer:
                return at, "6985"
            good = given == "EXTERNAL AUTHENTICATE"
            return at._replace(issuer="good" if good else "bad"), "9000" if good else "6300"
    return _cryptogram(at, given.split()[-1])


def _cryptogram(at: Card, asked: str) -> tuple[Card, str]:
    if at.cryptogram in ("offline", "declined"):
        return at, "6985"
    if at.cryptogram == "online":
        granted = asked == "offline" and at.issuer != "bad"
        done = at._replace(cryptogram="offline" if granted else "declined")
        return done, "9000 TC" if granted else "9000 AAC"
    if asked == "offline" and not at.verified:
        asked = "online"  # the card wants the bank to decide
    told = {"offline": "9000 TC", "online": "9000 ARQC", "declined": "9000 AAC"}[asked]
    return at._replace(cryptogram=asked), told


class Passport(NamedTuple):
    """A passport's chip."""

    selected: bool = False
    challenge: bool = False
    secure: bool = False
    chip: bool = False
    terminal: int = 0
    file: str = ""


@model(
    "passport",
    after="ICAO 9303, part 11: basic access, chip and terminal authentication",
    start=Passport(),
    inputs="""reset, SELECT application, GET CHALLENGE, MUTUAL AUTHENTICATE
    MUTUAL AUTHENTICATE wrong, SELECT data, SELECT photo, SELECT fingers, READ, READ plain
    CHIP AUTHENTICATION, VERIFY CERTIFICATE, TERMINAL AUTHENTICATE, ACTIVE AUTHENTICATE""",
)
def passport(at: Passport, given: str) -> tuple[Passport, str]:
    """Nothing is read without a secured channel, fingers only by terminals that are trusted."""
    outside = Passport(at.selected)
    match given:
        case "reset":
            return Passport(), "ok"
        case "SELECT application" if at.secure:
            return at._replace(file=""), "9000 secured"
        case "SELECT application":
            return Passport(True), "9000"
        case "GET CHALLENGE" if not at.secure:
            return at._replace(challenge=at.selected), "9000" if at.selected else "6985"
        case "MUTUAL AUTHENTICATE" if at.challenge:
            return Passport(True, secure=True), "9000 secured"
        case "MUTUAL AUTHENTICATE wrong" if at.challenge:
            return outside, "6300"
        case "READ plain" | "GET CHALLENGE" if at.secure:
            return outside, "6988"  # a plain command ends the secured channel
        case _ if not at.secure:
            return at, "6982" if at.selected else "6985"
        case "SELECT fingers" if at.terminal < 2:
            return at, "6982 secured"
        case "SELECT data" | "SELECT photo" | "SELECT fingers":
            return at._replace(file=given.split()[1]), "9000 secured"
        case "READ":
            return at, f"9000 {at.file}" if at.file else "6986 secured"
        case "CHIP AUTHENTICATION" if not at.chip:
            return at._replace(chip=True, file=""), "9000 secured"
        case "VERIFY CERTIFICATE" if at.chip and at.terminal == 0:
            return at._replace(terminal=1), "9000 secured"
        case "TERMINAL AUTHENTICATE" if at.terminal == 1:
            return at._replace(terminal=2), "9000 secured"
        case "ACTIVE AUTHENTICATE":
            return at, "9000 signature"
    return at, "6985 secured"
