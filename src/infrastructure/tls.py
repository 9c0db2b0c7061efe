import ssl
from functools import cache

import httpx


@cache
def default_ssl_context() -> ssl.SSLContext:
    """The default CA bundle. Cached, because reading it takes longer than a request."""
    return httpx.create_ssl_context()
