from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from ipaddress import ip_address

from infrastructure.egress.ip_policy import Address, IpPolicy
from infrastructure.egress.url import RequestUrl, UrlRejected, target_of
from shared.errors import Unavailable

Resolver = Callable[[str, int], Awaitable[list[str]]]
"""Every address of a host, as texts; raises OSError when there is none."""

# Names that lead nowhere on the internet, and somewhere inside.
_INSIDE = ("localhost", "local", "internal", "intranet", "lan", "home.arpa", "onion")


class EgressFailed(Unavailable):
    """Nothing was sent, or no answer came. ``reason`` is one of address_forbidden, host_unknown,
    lookup_timed_out, connection_failed, tls_failed, timed_out and answer_malformed.
    """

    code = "egress_failed"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"Somebody else's server could not be asked: {self.reason}."


@dataclass(frozen=True, slots=True)
class SsrfGuard:
    """Decides twice: about an address as it is written, and about where its host leads just now."""

    policy: IpPolicy
    resolve: Resolver

    def objection(self, url: str) -> str | None:
        """Why nothing is ever sent there, for people; None when it may be. Asks nobody."""
        try:
            target = target_of(url)
        except UrlRejected as refusal:
            return str(refusal)
        return self._objection(target)

    def host(self, url: str) -> str:
        return target_of(url).origin

    def check(self, url: str) -> RequestUrl:
        """Raises EgressFailed."""
        try:
            target = target_of(url)
        except UrlRejected:
            raise EgressFailed("address_forbidden") from None
        if self._objection(target) is not None:
            raise EgressFailed("address_forbidden")
        return target

    async def addresses(self, host: str, port: int) -> list[Address]:
        """Where the host leads now. One address that is not allowed is enough to refuse it: which one is
        taken would be chance. Raises EgressFailed.
        """
        try:
            found = [ip_address(text) for text in await self.resolve(host, port)]
        except TimeoutError:
            raise EgressFailed("lookup_timed_out") from None
        except (OSError, UnicodeError):
            raise EgressFailed("host_unknown") from None
        if not found:
            raise EgressFailed("host_unknown")
        if not all(self.policy.permits(address) for address in found):
            raise EgressFailed("address_forbidden")
        return found

    def _objection(self, target: RequestUrl) -> str | None:
        policy = self.policy
        if policy.https_only and target.scheme != "https":
            return "Use https://, so that nobody reads along."
        if policy.ports is not None and target.port not in policy.ports:
            return f"Use one of the ports {', '.join(map(str, sorted(policy.ports)))}."
        if target.address is not None:
            return None if policy.permits(target.address) else "This address is not one of the internet."
        if not policy.allowed and _is_inside(target.host):
            return "This name is not one of the internet."
        return None


def _is_inside(name: str) -> bool:
    return "." not in name or name.endswith(tuple(f".{suffix}" for suffix in _INSIDE))
