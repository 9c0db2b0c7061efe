"""Commands that send a request to any route of the API."""

import re
from typing import cast

import click
import httpx
import msgspec

from core.cli.client.api_client import Api, Json
from core.cli.client.connection import AS_JSON, uses_api
from core.cli.output.renderer import show_items, show_object
from shared.text import plain

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
PAIR = re.compile(r"([^=]+)=(.*)", re.DOTALL)


class ApiGroup(click.Group):
    """Serves without a subcommand; the subcommands are HTTP methods in either case."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, cmd_name.upper())

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(METHODS)


def request_command(method: str) -> click.Command:
    @click.argument("path")
    @click.argument("fields", nargs=-1, metavar="[FIELD=VALUE]...")
    @click.option("-q", "--query", multiple=True, metavar="NAME=VALUE", help="Query parameter; repeatable.")
    @click.option(
        "-H", "--header", "headers", multiple=True, metavar="NAME=VALUE", help="Header; repeatable."
    )
    @AS_JSON
    @uses_api
    async def command(
        api: Api,
        path: str,
        fields: tuple[str, ...],
        query: tuple[str, ...],
        headers: tuple[str, ...],
        as_json: bool,
    ) -> None:
        if not path.startswith("/"):
            raise click.BadParameter("A path starts with /, for example /v1/runs.", param_hint="PATH")
        body = _read_body(fields)
        if body is not None and method in ("GET", "DELETE"):
            raise click.UsageError(f"{method} has no body. Use -q NAME=VALUE for query parameters.")
        response = await api.send(
            method, path, body=body, query=dict(map(_pair, query)), headers=dict(map(_pair, headers))
        )
        _show_response(api, response, as_json=as_json)

    command.__doc__ = f"Send a {method} request to PATH and show the response."
    return click.command(method)(command)


def _read_body(fields: tuple[str, ...]) -> object:
    """Fields become an object; ``@-`` is a JSON document from standard input, ``@FILE`` from a file."""
    if len(fields) == 1 and fields[0].startswith("@"):
        with click.open_file(fields[0][1:], "rb") as file:
            try:
                return msgspec.json.decode(file.read())
            except msgspec.DecodeError as error:
                raise click.UsageError(f"The body is not JSON: {error}.") from None
    return {name: _json_or_text(value) for name, value in map(_pair, fields)} or None


def _pair(text: str) -> tuple[str, str]:
    match = PAIR.fullmatch(text)
    if match is None:
        raise click.UsageError(f"{text!r} is not NAME=VALUE.")
    return match[1], match[2]


def _json_or_text(value: str) -> object:
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError:
        return value


def _show_response(api: Api, response: httpx.Response, *, as_json: bool) -> None:
    if not response.content:
        click.echo(f"{response.status_code} {response.reason_phrase}", err=True)
        return
    if "json" not in response.headers.get("content-type", ""):
        click.echo(response.content, nl=False)
        return
    if as_json:
        click.echo(msgspec.json.format(response.content, indent=2))
        return
    document = api.decode(response, object)
    if isinstance(document, list):
        show_items(cast("list[Json]", document))
        return
    fields = cast("Json", document)
    if not isinstance(fields.get("items"), list):
        show_object(fields)
        return
    others = {name: value for name, value in fields.items() if name not in ("items", "next_cursor")}
    if others:
        show_object(others)
    show_items(fields["items"])
    if fields.get("next_cursor"):
        click.echo(f"Next page: add -q cursor={plain(fields['next_cursor'])}", err=True)
