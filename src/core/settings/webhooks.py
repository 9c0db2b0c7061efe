"""Settings of outgoing webhooks: signing key and allowed networks."""

from collections.abc import Callable
from ipaddress import ip_network

import msgspec

Lookup = Callable[[str], str | None]

OUTGOING_WEBHOOK_SECRETS = ("OSLIRA_WEBHOOK_SIGNING_KEY",)
KEY_BYTES_MIN = 32
LOOPBACK = ("127.0.0.0/8", "::1/128")


class WebhookSettings(msgspec.Struct, frozen=True, kw_only=True):
    """An empty ``signing_key`` means a key generated on this machine. ``egress_allow`` lists networks that
    may be reached although they are not public; only in a local environment.
    """

    signing_key: str = ""
    egress_allow: tuple[str, ...] = LOOPBACK

    def __repr__(self) -> str:
        return f"WebhookSettings(egress_allow={self.egress_allow})"


def read_webhook_settings(lookup: Lookup, errors: list[str], *, is_local: bool) -> WebhookSettings:
    key = lookup("OSLIRA_WEBHOOK_SIGNING_KEY") or ""
    if key and len(key.encode()) < KEY_BYTES_MIN:
        errors.append(f"OSLIRA_WEBHOOK_SIGNING_KEY: a random text of at least {KEY_BYTES_MIN} bytes.")
    networks = tuple((lookup("OSLIRA_EGRESS_ALLOW") or "").replace(",", " ").split())
    errors += [
        f"OSLIRA_EGRESS_ALLOW: {network!r} is not a network like 10.1.0.0/16."
        for network in networks
        if not _is_network(network)
    ]
    if networks and not is_local:
        errors.append(
            "OSLIRA_EGRESS_ALLOW: every tenant could reach those networks; it is for a local environment"
            " only."
        )
    return WebhookSettings(signing_key=key, egress_allow=(networks or LOOPBACK) if is_local else ())


def unsafe_webhook_settings(webhooks: WebhookSettings) -> list[str]:
    if webhooks.signing_key:
        return []
    return ["OSLIRA_WEBHOOK_SIGNING_KEY: set the key that signs outgoing webhooks; 32 random bytes or more."]


def _is_network(text: str) -> bool:
    try:
        ip_network(text)
    except ValueError:
        return False
    return True
