"""granian's embedded server on a socket that this process has bound."""

import socket
import sys
from typing import Any

from granian._granian import SocketHolder
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server
from litestar.types import ASGIApp


class HttpServer(Server):
    """By itself granian binds with SO_REUSEPORT: a second server on the port would share its requests.

    The server closes the socket when it has stopped accepting.
    """

    def __init__(
        self,
        app: ASGIApp,
        bound: socket.socket,
        *,
        backlog: int,
        backpressure: int | None = None,
        http1_settings: HTTP1Settings | None = None,
    ) -> None:
        self._bound = bound
        super().__init__(
            app,
            interface=Interfaces.ASGINL,
            http=HTTPModes.http1,
            websockets=False,
            backlog=backlog,
            log_enabled=False,
            backpressure=backpressure,
            http1_settings=http1_settings,
        )

    def _init_shared_socket(self) -> None:
        make: Any = SocketHolder  # its stub names no arguments
        backlog = (self.backlog,) if sys.platform == "linux" else ()
        self._shd = make(self._bound.detach(), False, *backlog)
