"""Settings of the paid providers: models, scrapers, Stripe, and the gateway in front of the models."""

from collections.abc import Callable
from urllib.parse import urlsplit

import msgspec

Lookup = Callable[[str], str | None]

# The variable with a provider's key. Without the key the provider is simulated or absent.
PROVIDERS = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "apify": "APIFY_TOKEN",
    "scraperapi": "SCRAPER_API_KEY",
    "stripe": "STRIPE_SECRET_KEY",
}
MODELS = frozenset({"openai", "anthropic"})
SCRAPERS = frozenset({"apify", "scraperapi"})
PAYMENTS = frozenset({"stripe"})
PROVIDER_SECRETS = (*PROVIDERS.values(), "CLOUDFLARE_AI_GATEWAY_TOKEN")
ADDRESSES = {
    "openai": "OPENAI_BASE_URL",
    "anthropic": "ANTHROPIC_BASE_URL",
    "apify": "APIFY_API_URL",
    "scraperapi": "SCRAPER_API_URL",
    "stripe": "STRIPE_API_URL",
}
# Payments with test keys move no money.
TEST_KEYS = ("sk_test_", "rk_test_")
SCALE_MAX = 10.0
CENTS_MAX = 100_000
HOURS_MAX = 720


class ProviderSettings(msgspec.Struct, frozen=True, kw_only=True):
    keys: dict[str, str] = {}
    addresses: dict[str, str] = {}  # only those that differ from the provider's default
    cloudflare_account: str = ""
    cloudflare_gateway: str = ""
    cloudflare_token: str = ""
    models: dict[str, str] = {}  # task: model, overrides the model table
    model_calls_max: int = 64
    completion_cache_h: int = 24
    scrapes_max: int = 10
    scrape_cents_max: int = 50
    simulated_latency: float = 0.1

    def __repr__(self) -> str:
        return f"ProviderSettings(real={sorted(self.real)})"

    @property
    def real(self) -> frozenset[str]:
        return frozenset(self.keys)

    @property
    def simulated(self) -> frozenset[str]:
        """Models are all real or all simulated, and so are scrapers: simulated data must never be the
        fallback for a real provider.
        """
        kinds = (MODELS, SCRAPERS, PAYMENTS)
        return frozenset(name for kind in kinds if not kind & self.real for name in kind)


def read_providers(
    lookup: Lookup, number: Callable[[str, int, int, int], int], errors: list[str]
) -> ProviderSettings:
    """``number(name, default, least, most)`` reads a whole number."""
    defaults = ProviderSettings()
    providers = ProviderSettings(
        keys={name: key for name, variable in PROVIDERS.items() if (key := lookup(variable))},
        addresses=_addresses(lookup, errors),
        cloudflare_account=lookup("CLOUDFLARE_ACCOUNT_ID") or "",
        cloudflare_gateway=lookup("CLOUDFLARE_AI_GATEWAY") or "",
        cloudflare_token=lookup("CLOUDFLARE_AI_GATEWAY_TOKEN") or "",
        models=_models(lookup, errors),
        model_calls_max=number("OSLIRA_MODEL_CALLS_MAX", defaults.model_calls_max, 1, 10_000),
        completion_cache_h=number("OSLIRA_COMPLETION_CACHE_HOURS", defaults.completion_cache_h, 0, HOURS_MAX),
        scrapes_max=number("OSLIRA_SCRAPES_MAX", defaults.scrapes_max, 1, 1_000),
        scrape_cents_max=number("OSLIRA_SCRAPE_CENTS_MAX", defaults.scrape_cents_max, 50, CENTS_MAX),
        simulated_latency=_scale(lookup, defaults.simulated_latency, errors),
    )
    if bool(providers.cloudflare_account) != bool(providers.cloudflare_gateway):
        errors.append(
            "CLOUDFLARE_ACCOUNT_ID and CLOUDFLARE_AI_GATEWAY go together: the account and its gateway."
        )
    return providers


def unsafe_providers(providers: ProviderSettings) -> list[str]:
    """Settings with which production would sell simulated results."""
    errors: list[str] = []
    if not MODELS & providers.real:
        errors.append(
            "OPENAI_API_KEY, ANTHROPIC_API_KEY: without either, simulated completions would be sold."
        )
    if not SCRAPERS & providers.real:
        errors.append("APIFY_TOKEN: without it, simulated profiles would be sold.")
    if providers.keys.get("stripe", "").startswith(TEST_KEYS):
        errors.append("STRIPE_SECRET_KEY: a test key moves no money; use the live one.")
    errors += [
        f"{ADDRESSES[name]}: keys and personal data must be encrypted; use https://"
        for name, address in providers.addresses.items()
        if address.startswith("http://")
    ]
    return errors


def _addresses(lookup: Lookup, errors: list[str]) -> dict[str, str]:
    configured = {name: address for name, variable in ADDRESSES.items() if (address := lookup(variable))}
    errors += [
        # The message must not repeat the address, because it may contain a password.
        f"{ADDRESSES[name]} is not an address like https://provider.example/v1"
        for name, address in configured.items()
        if not _is_address(address)
    ]
    return {name: address.rstrip("/") for name, address in configured.items()}


def _is_address(address: str) -> bool:
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        return False
    plain = parts.username is None and not parts.query and not parts.fragment
    return parts.scheme in ("http", "https") and bool(parts.hostname) and plain and address.isprintable()


def _models(lookup: Lookup, errors: list[str]) -> dict[str, str]:
    models: dict[str, str] = {}
    for entry in (lookup("OSLIRA_MODELS") or "").replace(",", " ").split():
        task, _, model = entry.partition("=")
        if not task or not model:
            errors.append(f"OSLIRA_MODELS: {entry!r} is not task=model, as analysis.light=gpt-5-mini")
        models[task] = model
    return models


def _scale(lookup: Lookup, default: float, errors: list[str]) -> float:
    value = lookup("OSLIRA_SIMULATED_LATENCY")
    try:
        scale = float(value) if value else default
    except ValueError:
        scale = -1.0
    if not 0 <= scale <= SCALE_MAX:  # also true for NaN
        errors.append(f"OSLIRA_SIMULATED_LATENCY is {value!r}; use a number from 0 to {SCALE_MAX:.0f}.")
        return default
    return scale
