"""Server address and credentials: the options of every command that uses the API."""

import logging
import os
import sys
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from functools import wraps
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import click
import msgspec

from core.cli.client.api_client import Api, open_api
from core.cli.client.runtime import load_runtime, run_async, signs_tokens
from core.settings.settings import Settings
from core.wiring.bootstrap import local_issuer

TOKEN_VARIABLE = "OSLIRA_TOKEN"  # noqa: S105
LOCAL_EMAIL = "you@example.com"
OPERATOR_EMAIL = "operator@example.com"
TOKEN_LIFETIME = timedelta(hours=12)
LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1", "0.0.0.0"})  # noqa: S104

OPTIONS = (
    click.option("--url", help="Address of the server (default: this machine, the configured port)."),
    click.option(
        "--token",
        help=f"Access token. The variable {TOKEN_VARIABLE} is safer: other users can see a command line.",
    ),
    click.option("--key", help=f"API key instead of a token. {TOKEN_VARIABLE} accepts one too."),
    click.option("--account", type=click.UUID, help="Account, if you are a member of several."),
    click.option(
        "--email",
        default=LOCAL_EMAIL,
        show_default=True,
        help="User to sign in as without token or key, in a local environment that signs its own tokens.",
    ),
)
AS_JSON = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON as the API sends it; lists as one object per line."
)


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """``operator_token`` is set only if this machine signed it, for a server on this machine."""

    url: str
    token: str
    account: UUID | None
    operator_token: str | None

    def open(self) -> AbstractAsyncContextManager[Api]:
        account = str(self.account) if self.account else None
        return open_api(self.url, self.token, account=account, operator_token=self.operator_token)


def uses_api(command: Callable[..., Coroutine[Any, Any, int | None]]) -> Callable[..., None]:
    """Adds the connection options and runs the command, which receives ``api`` and returns its exit code."""

    @wraps(command)
    def run_command(
        url: str | None,
        token: str | None,
        key: str | None,
        account: UUID | None,
        email: str,
        **options: Any,  # noqa: ANN401
    ) -> None:
        connection = create_connection(url, token, key, account, email)

        async def run() -> int | None:
            async with connection.open() as api:
                return await command(api, **options)

        sys.exit(run_async(run()))

    for option in reversed(OPTIONS):
        run_command = option(run_command)
    return run_command


def create_connection(
    url: str | None, token: str | None, key: str | None, account: UUID | None, email: str
) -> Connection:
    if token and key:
        raise click.UsageError("Use --token or --key, not both.")
    settings = load_runtime(logging.WARNING).settings
    url = (url or f"http://{settings.host}:{settings.port}").rstrip("/")
    credential = token or key or os.environ.get(TOKEN_VARIABLE, "")
    if credential:
        return Connection(url=url, token=_checked(credential), account=account, operator_token=None)
    if not (signs_tokens(settings) and _is_this_machine(url)):
        raise click.UsageError(
            f"Credentials are missing. Set {TOKEN_VARIABLE} to an access token or an API key, or use --token"
            " or --key."
        )
    return Connection(
        url=url,
        token=local_issuer(settings).token(email, lifetime=TOKEN_LIFETIME),
        account=account,
        operator_token=_local_operator_token(settings),
    )


def operator_token(settings: Settings, url: str) -> str | None:
    """Returns the token of the environment, or one signed here for a server on this machine, else None."""
    credential = os.environ.get(TOKEN_VARIABLE, "")
    if credential:
        return _checked(credential)
    return _local_operator_token(settings) if signs_tokens(settings) and _is_this_machine(url) else None


def _local_operator_token(settings: Settings) -> str:
    return local_issuer(settings).token(OPERATOR_EMAIL, lifetime=TOKEN_LIFETIME, is_operator=True)


def _checked(credential: str) -> str:
    credential = credential.strip()
    if not (credential.isascii() and credential.isprintable()) or " " in credential:
        raise click.UsageError(
            "This is not a token or a key: both consist of ASCII characters without spaces."
        )
    return credential


def _is_this_machine(url: str) -> bool:
    """Tokens that this machine signs must not be sent to other hosts."""
    try:
        return urlsplit(url).hostname in LOOPBACK_NAMES
    except ValueError:
        return False
