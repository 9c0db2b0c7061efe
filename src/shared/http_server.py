"""granian's embedded server on a socket that this process has already bound."""

import socket
import sys
from typing import Any

from granian._granian import SocketHolder
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server
from litestar.types import ASGIApp


class HttpServer(Server):
    """Server on a bound socket. It closes the socket when it stops accepting.

    granian itself binds with SO_REUSEPORT, so a second server on the same port would take a share of the
    requests.
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
        make: Any = SocketHolder  # its type stub declares no parameters
        backlog = (self.backlog,) if sys.platform == "linux" else ()
        self._shd = make(self._bound.detach(), False, *backlog)
