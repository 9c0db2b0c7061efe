"""Server address and credentials: the options of every command that uses the API."""

import logging
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from functools import wraps
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import click
import msgspec

from core.cli.client.api_client import Api, open_api
from core.cli.client.runtime import read_surroundings, signs_tokens
from core.settings.settings import Settings
from core.wiring.bootstrap import local_issuer

TOKEN_VARIABLE = "OSLIRA_TOKEN"  # noqa: S105
LOCAL_EMAIL = "you@example.com"
OPERATOR_EMAIL = "operator@example.com"
TOKEN_LIFETIME = timedelta(hours=12)
LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1", "0.0.0.0"})  # noqa: S104

OPTIONS = (
    click.option("--url", help="Where the server is (default: this machine, the configured port)."),
    click.option(
        "--token",
        help=f"An access token. Better in the variable {TOKEN_VARIABLE}: a command line is seen by others.",
    ),
    click.option("--key", help=f"An API key instead of a token; {TOKEN_VARIABLE} takes one as well."),
    click.option("--account", type=click.UUID, help="Which account, if you belong to several."),
    click.option(
        "--email",
        default=LOCAL_EMAIL,
        show_default=True,
        help="Without token or key, in a local environment that signs its own tokens: who you are.",
    ),
)


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """``operator_token`` is set only if this machine signed it, for a server on this machine."""

    url: str
    token: str
    account: UUID | None
    operator_token: str | None

    @property
    def is_local(self) -> bool:
        return self.operator_token is not None

    def open(self) -> AbstractAsyncContextManager[Api]:
        return open_api(self.url, self.token, str(self.account) if self.account else None)

    def open_for_operators(self) -> AbstractAsyncContextManager[Api]:
        """Uses the given token or key; without one, signs in as an operator of the local server."""
        return self.open_as_operator() if self.operator_token else self.open()

    def open_as_operator(self) -> AbstractAsyncContextManager[Api]:
        assert self.operator_token is not None, "nobody is an operator by asking"
        return open_api(self.url, self.operator_token)


def connects(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the connection options; the command receives the resulting ``connection``."""

    @wraps(command)
    def connected(
        url: str | None,
        token: str | None,
        key: str | None,
        account: UUID | None,
        email: str,
        **options: Any,  # noqa: ANN401
    ) -> None:
        command(connection=connection_of(url, token, key, account, email), **options)

    for option in reversed(OPTIONS):
        connected = option(connected)
    return connected


def connection_of(
    url: str | None, token: str | None, key: str | None, account: UUID | None, email: str
) -> Connection:
    if token and key:
        raise click.UsageError("Give --token or --key, not both.")
    settings = read_surroundings(logging.WARNING).settings
    url = (url or f"http://{settings.host}:{settings.port}").rstrip("/")
    given = token or key or os.environ.get(TOKEN_VARIABLE, "")
    if given:
        return Connection(url=url, token=_checked(given), account=account, operator_token=None)
    if not (signs_tokens(settings) and _is_this_machine(url)):
        raise click.UsageError(
            f"Who are you? Set {TOKEN_VARIABLE} to an access token or an API key, or give --token or --key."
        )
    issuer = local_issuer(settings)
    return Connection(
        url=url,
        token=issuer.token(email, lifetime=TOKEN_LIFETIME),
        account=account,
        operator_token=issuer.token(OPERATOR_EMAIL, lifetime=TOKEN_LIFETIME, is_operator=True),
    )


def operator_token(settings: Settings, url: str) -> str | None:
    """Returns the token of the environment, or one signed here for a server on this machine, else None."""
    given = os.environ.get(TOKEN_VARIABLE, "")
    if given:
        return _checked(given)
    if not (signs_tokens(settings) and _is_this_machine(url)):
        return None
    return local_issuer(settings).token(OPERATOR_EMAIL, lifetime=TOKEN_LIFETIME, is_operator=True)


def _checked(token: str) -> str:
    token = token.strip()
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise click.UsageError("That is neither a token nor a key: both are one word of plain letters.")
    return token


def _is_this_machine(url: str) -> bool:
    """Tokens that this machine signs must not be sent to other hosts."""
    try:
        return urlsplit(url).hostname in LOOPBACK_NAMES
    except ValueError:
        return False
