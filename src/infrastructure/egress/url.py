"""Strict URL parser, because differences between parsers are how SSRF guards are bypassed."""

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import NamedTuple

from infrastructure.egress.ip_policy import Address

URL_LENGTH_MAX = 2_000
NAME_LENGTH_MAX = 253
_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:(?P<port>[0-9]{1,5}))?"
    r"(?P<rest>[/?][!-~]*)?",
    re.ASCII,
)
_NOT_SENT = re.compile(r'[^!-~]|[\\#"<>^`{|}]')
_LABEL = re.compile("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
# Some parsers read a host with such a last label as a numeric IPv4 address.
_NUMBER = re.compile("[0-9]+|0x[0-9a-f]*", re.ASCII)
DEFAULT_PORTS = {"http": 80, "https": 443}
PORT_MAX = 65_535


class UrlRejected(ValueError):
    """Its text is shown to users."""


class RequestUrl(NamedTuple):
    scheme: str
    host: str  # name in lower case, or IP address without brackets
    port: int
    address: Address | None  # set when the host is an IP address

    @property
    def origin(self) -> str:
        """Host and port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def target_of(url: str) -> RequestUrl:
    """Raises UrlRejected."""
    if len(url) > URL_LENGTH_MAX:
        raise UrlRejected(f"Send {URL_LENGTH_MAX} characters at the most.")
    if _NOT_SENT.search(url):
        raise UrlRejected(
            "Leave out spaces, fragments, backslashes and other characters that an address has not; write a"
            " name with other letters in its xn-- form."
        )
    match = _URL.fullmatch(url)
    if match is None:
        raise UrlRejected(
            "Send an address that begins with https:// or http://, names a host and has no user or password."
        )
    host = match["host"].lower()
    port = int(match["port"]) if match["port"] else DEFAULT_PORTS[match["scheme"]]
    if not 0 < port <= PORT_MAX:
        raise UrlRejected("There is no such port.")
    address = _address(host)
    if address is None:
        _check_name(host)
    return RequestUrl(match["scheme"], host.strip("[]"), port, address)


def _address(host: str) -> Address | None:
    try:
        if host.startswith("["):
            return IPv6Address(host[1:-1])
        if _NUMBER.fullmatch(host.rpartition(".")[2]):
            return IPv4Address(host)
    except AddressValueError:
        raise UrlRejected("Write an IP address in its usual form, as 192.0.2.1 or [2001:db8::1].") from None
    return None


def _check_name(name: str) -> None:
    if len(name) > NAME_LENGTH_MAX or not all(_LABEL.fullmatch(label) for label in name.split(".")):
        raise UrlRejected("The host is not a name that the internet knows.")
