import ssl
from functools import cache

import httpx


@cache
def default_ssl_context() -> ssl.SSLContext:
    """Whose certificates are believed. Reading them takes longer than a call, so it is done once."""
    return httpx.create_ssl_context()
