"""SSRF guard: checks of URLs and of the addresses to which their hosts resolve."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from ipaddress import ip_address

from infrastructure.egress.ip_policy import Address, IpPolicy
from infrastructure.egress.url import RequestUrl, UrlRejected, target_of
from shared.errors import Unavailable

Resolver = Callable[[str, int], Awaitable[list[str]]]
"""All addresses of a host as strings; raises OSError when there are none."""

# Names that have no public DNS entry and may resolve to internal hosts.
_INSIDE = ("localhost", "local", "internal", "intranet", "lan", "home.arpa", "onion")


class EgressFailed(Unavailable):
    """No request was sent, or no response was received. ``reason`` is one of address_forbidden, host_unknown,
    lookup_timed_out, connection_failed, tls_failed, timed_out and answer_malformed.
    """

    code = "egress_failed"
    text = "The request to the external server failed: {reason}."
    reason: str


@dataclass(frozen=True, slots=True)
class SsrfGuard:
    """Checks the URL as written and, for every connection, the addresses to which its host resolves."""

    policy: IpPolicy
    resolve: Resolver

    def objection(self, url: str) -> str | None:
        """The reason for users why this URL is never called, or None. Makes no DNS lookup."""
        try:
            target = target_of(url)
        except UrlRejected as error:
            return str(error)
        return self._objection(target)

    def host(self, url: str) -> str:
        return target_of(url).origin

    def check(self, url: str) -> RequestUrl:
        """Raises EgressFailed for a forbidden URL."""
        try:
            target = target_of(url)
        except UrlRejected:
            raise EgressFailed(reason="address_forbidden") from None
        if self._objection(target) is not None:
            raise EgressFailed(reason="address_forbidden")
        return target

    async def addresses(self, host: str, port: int) -> list[Address]:
        """Resolves the host. One forbidden address rejects the host, because the choice among its addresses
        is arbitrary. Raises EgressFailed.
        """
        try:
            found = [ip_address(text) for text in await self.resolve(host, port)]
        except TimeoutError:
            raise EgressFailed(reason="lookup_timed_out") from None
        except (OSError, UnicodeError):
            raise EgressFailed(reason="host_unknown") from None
        if not found:
            raise EgressFailed(reason="host_unknown")
        if not all(self.policy.permits(address) for address in found):
            raise EgressFailed(reason="address_forbidden")
        return found

    def _objection(self, target: RequestUrl) -> str | None:
        policy = self.policy
        if policy.https_only and target.scheme != "https":
            return "Use https://, so that the request is encrypted."
        if policy.ports is not None and target.port not in policy.ports:
            return f"Use one of the ports {', '.join(map(str, sorted(policy.ports)))}."
        if target.address is not None:
            return None if policy.permits(target.address) else "This is not a public internet address."
        if not policy.allowed and _is_inside(target.host):
            return "This is not a public host name."
        return None


def _is_inside(name: str) -> bool:
    return "." not in name or name.endswith(tuple(f".{suffix}" for suffix in _INSIDE))
