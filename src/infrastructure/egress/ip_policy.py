"""To which addresses of the internet anything is sent on a tenant's behalf: those that are everybody's."""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# IANA's registries of special addresses; the standard library's own idea of them changes between releases.
_NOT_PUBLIC = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carriers' own, and a cloud's metadata
        "127.0.0.0/8",  # this machine
        "168.63.129.16/32",  # Azure's host, by a public number
        "169.254.0.0/16",  # link-local, and most clouds' metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocols, and a cloud's metadata
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # relays from 6to4
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # measurements
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
        "2001::/23",  # protocols; Teredo, which holds an IPv4 address
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, which holds an IPv4 address
        "3fff::/20",  # documentation
    )
)
# What is not in here is unassigned, local, multicast, or an IPv4 address in disguise (mapped, NAT64).
_GLOBAL_IPV6 = IPv6Network("2000::/3")
PORTS = frozenset({80, 443, 8080, 8443})


@dataclass(frozen=True, slots=True)
class IpPolicy:
    """``ports``: None is any. ``allowed``: networks that are reached although they are not public."""

    https_only: bool = True
    ports: frozenset[int] | None = PORTS
    allowed: tuple[Network, ...] = ()

    def permits(self, address: Address) -> bool:
        if any(address in network for network in self.allowed):
            return True
        if isinstance(address, IPv6Address) and (address.scope_id or address not in _GLOBAL_IPV6):
            return False
        return not any(address in network for network in _NOT_PUBLIC)
