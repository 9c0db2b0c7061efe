"""Secrets that verify Stripe's webhook signatures. Stripe's API key is in ``settings.providers``."""

from collections.abc import Callable

Lookup = Callable[[str], str | None]

SECRETS_VARIABLE = "STRIPE_WEBHOOK_SECRETS"
PREFIX = "whsec_"
LENGTH_MIN = 24  # without the prefix; Stripe's secrets have at least 32 characters
# The simulator's secret is public, so it is accepted in a local environment only.
LOCAL_SECRET = "whsec_local_simulator"  # noqa: S105


def read_webhook_secrets(lookup: Lookup, errors: list[str]) -> tuple[str, ...]:
    """Returns several secrets while one is being rotated."""
    secrets = tuple((lookup(SECRETS_VARIABLE) or "").replace(",", " ").split())
    if not all(secret.startswith(PREFIX) and secret != PREFIX for secret in secrets):
        # The message must not repeat the value, because it is a secret.
        errors.append(f"{SECRETS_VARIABLE}: use {PREFIX}..., as Stripe shows it beside the endpoint.")
    return secrets


def unsafe_webhook_secrets(secrets: tuple[str, ...], *, is_stripe_real: bool) -> list[str]:
    errors: list[str] = []
    if is_stripe_real and not secrets:
        errors.append(
            f"{SECRETS_VARIABLE}: without it Stripe's events cannot be distinguished from forged ones."
        )
    if LOCAL_SECRET in secrets:
        errors.append(f"{SECRETS_VARIABLE}: the simulator's secret is public.")
    if any(_is_weak(secret.removeprefix(PREFIX)) for secret in secrets if secret != LOCAL_SECRET):
        errors.append(
            f"{SECRETS_VARIABLE}: too short or too simple to be Stripe's. Copy what it shows beside the"
            " endpoint."
        )
    return errors


def _is_weak(secret: str) -> bool:
    return len(secret) < LENGTH_MIN or len(set(secret)) == 1
