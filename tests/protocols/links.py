"""Links and addresses: PPP's link control, and a DHCP client."""

from typing import NamedTuple

from protocols.rules import model


class Lcp(NamedTuple):
    """The option negotiation of PPP: a phase, and how often a request may be sent again."""

    phase: str = "initial"
    left: int = 0


_RESENDS = 2


def _moved(phase: str, told: str) -> tuple[Lcp, str]:
    """Go to a phase; where a request was sent it may be sent again."""
    counts = phase in ("closing", "stopping", "req-sent", "ack-rcvd", "ack-sent")
    return Lcp(phase, _RESENDS if counts else 0), told


@model(
    "lcp",
    after="RFC 1661, option negotiation automaton",
    start=Lcp(),
    inputs="""up, down, open, close, timeout, configure request good, configure request bad
    configure ack, configure nak, terminate request, terminate ack, unknown code
    reject harmless, reject fatal, echo request""",
)
def lcp(at: Lcp, given: str) -> tuple[Lcp, str]:
    """The ten states of the specification, with the restart counter."""
    phase = at.phase
    match given:
        case "up":
            match phase:
                case "initial":
                    return _moved("closed", "-")
                case "starting":
                    return _moved("req-sent", "request")
            return at, "error"
        case "down":
            match phase:
                case "initial" | "starting":
                    return at, "error"
                case "closed" | "closing":
                    return _moved("initial", "-")
                case "stopped":
                    return _moved("starting", "layer started")
                case "opened":
                    return _moved("starting", "layer down")
            return _moved("starting", "-")
        case "open":
            match phase:
                case "initial":
                    return _moved("starting", "layer started")
                case "closed":
                    return _moved("req-sent", "request")
                case "closing":
                    return Lcp("stopping", at.left), "-"
            return at, "-"
        case "close":
            match phase:
                case "starting":
                    return _moved("initial", "layer finished")
                case "stopped":
                    return _moved("closed", "-")
                case "stopping":
                    return Lcp("closing", at.left), "-"
                case "opened":
                    return _moved("closing", "layer down, terminate")
                case "req-sent" | "ack-rcvd" | "ack-sent":
                    return _moved("closing", "terminate")
            return at, "-"
    if phase in ("initial", "starting"):
        return at, "error"
    if given == "timeout":
        return _lcp_timeout(at)
    return _lcp_packet(at, given)


def _lcp_timeout(at: Lcp) -> tuple[Lcp, str]:
    match at.phase:
        case "closing" | "stopping":
            if at.left:
                return Lcp(at.phase, at.left - 1), "terminate"
            return _moved("closed" if at.phase == "closing" else "stopped", "layer finished")
        case "req-sent" | "ack-rcvd" | "ack-sent":
            if at.left:
                phase = "ack-sent" if at.phase == "ack-sent" else "req-sent"
                return Lcp(phase, at.left - 1), "request"
            return _moved("stopped", "layer finished")
    return at, "error"


def _lcp_packet(at: Lcp, given: str) -> tuple[Lcp, str]:
    phase = at.phase
    talking = phase in ("req-sent", "ack-rcvd", "ack-sent", "opened")
    match given:
        case "terminate request":
            if phase == "opened":
                return Lcp("stopping"), "layer down, terminated"
            return (Lcp("req-sent", at.left) if talking else at), "terminated"
        case "terminate ack":
            match phase:
                case "closing":
                    return _moved("closed", "layer finished")
                case "stopping":
                    return _moved("stopped", "layer finished")
                case "ack-rcvd":
                    return Lcp("req-sent", at.left), "-"
                case "opened":
                    return _moved("req-sent", "layer down, request")
            return at, "-"
        case "unknown code":
            return at, "code reject"
        case "echo request":
            return at, "echo" if phase == "opened" else "-"
        case "reject harmless":
            return (Lcp("req-sent", at.left) if phase == "ack-rcvd" else at), "-"
        case "reject fatal":
            if phase == "opened":
                return _moved("stopping", "layer down, terminate")
            ended = "closed" if phase in ("closed", "closing") else "stopped"
            return _moved(ended, "layer finished")
    if phase in ("closing", "stopping"):
        return at, "-"
    if phase == "closed":
        return at, "terminated"
    good = given.endswith("good")
    if given.startswith("configure request"):
        answer = "ack" if good else "nak"
        match phase:
            case "stopped":
                return _moved("ack-sent" if good else "req-sent", f"request, {answer}")
            case "ack-rcvd":
                return _moved("opened", "ack, layer up") if good else (at, "nak")
            case "opened":
                return _moved("ack-sent" if good else "req-sent", f"layer down, request, {answer}")
        return Lcp("ack-sent" if good else "req-sent", at.left), answer
    acked = given == "configure ack"
    match phase:
        case "stopped":
            return at, "terminated"
        case "req-sent":
            return _moved("ack-rcvd", "-") if acked else _moved("req-sent", "request")
        case "ack-rcvd":
            return _moved("req-sent", "request")
        case "ack-sent":
            return _moved("opened", "layer up") if acked else _moved("ack-sent", "request")
    return _moved("req-sent", "layer down, request")


class Dhcp(NamedTuple):
    """A DHCP client."""

    phase: str = "init"
    tries: int = 0
    remembered: bool = False


@model(
    "dhcp-client",
    after="RFC 2131, client state diagram",
    start=Dhcp(),
    inputs="start, offer, ack, nak, conflict, timeout, T1, T2, lease over, release, link down",
)
def dhcp_client(at: Dhcp, given: str) -> tuple[Dhcp, str]:
    """A lease is asked for, kept, renewed, and asked for again after the link was down."""
    match at.phase, given:
        case "init", "start":
            if at.remembered:
                return Dhcp("rebooting", 0, True), "REQUEST old"
            return Dhcp("selecting"), "DISCOVER"
        case _, "link down":
            return Dhcp(remembered=at.remembered), "-"
        case "selecting", "offer":
            return Dhcp("requesting"), "REQUEST"
        case "requesting" | "rebooting" | "renewing" | "rebinding", "ack":
            return Dhcp("bound", remembered=True), "lease"
        case "requesting" | "rebooting" | "renewing" | "rebinding", "nak":
            return Dhcp(), "no lease"
        case "bound", "conflict":
            return Dhcp(), "DECLINE"
        case "bound", "T1":
            return at._replace(phase="renewing"), "REQUEST server"
        case "renewing", "T2":
            return at._replace(phase="rebinding", tries=0), "REQUEST all"
        case "renewing" | "rebinding" | "bound", "lease over":
            return Dhcp("selecting"), "no lease, DISCOVER"
        case "bound" | "renewing" | "rebinding", "release":
            return Dhcp(), "RELEASE"
        case "selecting" | "requesting" | "rebooting", "timeout":
            if at.tries == 2:
                return Dhcp("selecting"), "DISCOVER"
            sent = {"selecting": "DISCOVER", "requesting": "REQUEST", "rebooting": "REQUEST old"}
            return at._replace(tries=at.tries + 1), sent[at.phase]
    return at, "-"
