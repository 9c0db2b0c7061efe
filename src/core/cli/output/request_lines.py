"""One line per request in the terminal: method, path, status and duration."""

import time

from litestar.types import ASGIApp, Message, Receive, Scope, Send
from rich.console import Console
from rich.text import Text

from shared.text import plain

CLIENT_GONE = 499
STATUS_COLOURS = {2: "green", 3: "green", 4: "yellow", 5: "red"}


class RequestLines:
    """ASGI wrapper that prints while ``is_active`` is set. The query is left out: it may contain secrets."""

    def __init__(self, console: Console, *, is_active: bool) -> None:
        self.is_active = is_active
        self._console = console

    def wrap(self, app: ASGIApp) -> ASGIApp:
        async def app_with_lines(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http" or not self.is_active:
                await app(scope, receive, send)
                return
            started_s, status = time.perf_counter(), CLIENT_GONE

            async def send_and_read_status(message: Message) -> None:
                nonlocal status
                if message["type"] == "http.response.start":
                    status = message["status"]
                await send(message)

            # Read before the call, because the application changes the method of a HEAD request.
            request = f"{scope['method']:<6} {plain(scope['path'])}"
            try:
                await app(scope, receive, send_and_read_status)
            finally:
                self._print(request, status, (time.perf_counter() - started_s) * 1_000)

        return app_with_lines

    def _print(self, request: str, status: int, duration_ms: float) -> None:
        colour = STATUS_COLOURS.get(status // 100, "")
        self._console.print(
            Text.assemble(f"{request}  ", (str(status), colour), f"  {duration_ms:,.1f} ms"), soft_wrap=True
        )
