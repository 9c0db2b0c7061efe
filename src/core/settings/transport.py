"""Encryption of connections that leave the machine, and the hosts that are exempt from it."""

import re
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from urllib.parse import SplitResult, parse_qs, urlsplit

Lookup = Callable[[str], str | None]

PLAINTEXT_HOSTS = "OSLIRA_PLAINTEXT_HOSTS"
# With any other mode, or none, PostgreSQL's clients fall back to an unencrypted connection.
ENCRYPTED_MODES = frozenset({"require", "verify-ca", "verify-full"})
_HOST_NAME = re.compile(r"[a-z0-9]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9_-]*[a-z0-9])?)*")


def read_plaintext_hosts(lookup: Lookup, errors: list[str]) -> tuple[str, ...]:
    hosts = tuple((lookup(PLAINTEXT_HOSTS) or "").lower().replace(",", " ").split())
    errors += [
        f"{PLAINTEXT_HOSTS}: {host!r} is not a host like db or 10.0.0.5, without scheme and port."
        for host in hosts
        if not (_HOST_NAME.fullmatch(host) or _is_ip(host))
    ]
    return hosts


def unsafe_transports(databases: Mapping[str, str], plaintext_hosts: tuple[str, ...]) -> list[str]:
    """``databases`` maps variable names to addresses; an empty address is not set."""
    return [
        f"{name}: passwords and tenants' data would travel unencrypted. Add sslmode=require (or verify-full),"
        f" or name the host in {PLAINTEXT_HOSTS} if the network is private."
        for name, url in databases.items()
        if not _is_encrypted(url) and _has_remote(_database_hosts(url), plaintext_hosts)
    ]


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _has_remote(hosts: list[str], plaintext_hosts: tuple[str, ...]) -> bool:
    """A path is a Unix socket on this machine, and so is the default, an empty host."""
    return any(
        host and not host.startswith("/") and not is_loopback(host) and host.lower() not in plaintext_hosts
        for host in hosts
    )


def _database_hosts(url: str) -> list[str]:
    """PostgreSQL's clients accept several hosts, separated by commas, also in the parameter ``host``."""
    parts = _parts(url)
    named = parse_qs(parts.query).get("host", [])
    places = [place for text in (parts.netloc.rpartition("@")[2], *named) for place in text.split(",")]
    return [_host(place) for place in places]


def _host(place: str) -> str:
    """Removes the port; an IPv6 address with a port is in brackets."""
    if place.startswith("["):
        return place[1:].partition("]")[0]
    return place if _is_ip(place) else place.partition(":")[0]


def _is_encrypted(url: str) -> bool:
    modes = parse_qs(_parts(url).query).get("sslmode", [])
    return bool(modes) and ENCRYPTED_MODES.issuperset(modes)


def _is_ip(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _parts(url: str) -> SplitResult:
    """Returns empty parts for an invalid address, which is reported elsewhere."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")
