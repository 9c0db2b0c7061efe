"""What tells that a message is Stripe's. Whether there is a Stripe at all is in ``provider_settings``."""

from collections.abc import Callable

Lookup = Callable[[str], str | None]

SECRETS_VARIABLE = "STRIPE_WEBHOOK_SECRETS"
PREFIX = "whsec_"
LENGTH_MIN = 24  # behind the prefix; Stripe's have 32 characters and more
# Of the simulator, which everybody may know: it is taken on a machine of one's own only.
LOCAL_SECRET = "whsec_local_simulator"  # noqa: S105


def read_webhook_secrets(lookup: Lookup, wrongs: list[str]) -> tuple[str, ...]:
    """Several while one is exchanged for another."""
    secrets = tuple((lookup(SECRETS_VARIABLE) or "").replace(",", " ").split())
    if not all(secret.startswith(PREFIX) and secret != PREFIX for secret in secrets):
        # Not repeated: it is a secret.
        wrongs.append(f"{SECRETS_VARIABLE}: use {PREFIX}..., as Stripe shows it beside the endpoint.")
    return secrets


def unsafe_webhook_secrets(secrets: tuple[str, ...], *, is_stripe_real: bool) -> list[str]:
    wrongs: list[str] = []
    if is_stripe_real and not secrets:
        wrongs.append(f"{SECRETS_VARIABLE}: without it nobody could tell Stripe's messages from forged ones.")
    if LOCAL_SECRET in secrets:
        wrongs.append(f"{SECRETS_VARIABLE}: the simulator's is known to everybody.")
    if any(_is_weak(secret.removeprefix(PREFIX)) for secret in secrets if secret != LOCAL_SECRET):
        wrongs.append(
            f"{SECRETS_VARIABLE}: too short or too simple to be Stripe's. Copy what it shows beside the"
            " endpoint."
        )
    return wrongs


def _is_weak(secret: str) -> bool:
    return len(secret) < LENGTH_MIN or len(set(secret)) == 1
