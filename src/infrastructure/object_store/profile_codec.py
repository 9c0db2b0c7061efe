"""Codec of cached scrapes: compressed JSON with a version and a checksum."""

import sys

import msgspec

from features.analysis.domain.profile.freshness import depth_of
from features.analysis.domain.profile.profile import Scrape

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

SCHEMA = 1  # of Scrape: increase it when an older version could be misread
MAGIC = b"oslira scrape\x00" + bytes([SCHEMA])
JSON_BYTES_MAX = 4 * 1024 * 1024  # fifty posts with the longest captions need a quarter of it
WINDOW_BITS_MAX = 23  # 8 MB: limit of the decompressor's memory

_CHECKED: dict[int, int] = {zstd.CompressionParameter.checksum_flag: 1}
_BOUNDED: dict[int, int] = {zstd.DecompressionParameter.window_log_max: WINDOW_BITS_MAX}
_decoder = msgspec.json.Decoder(Scrape)


class CacheEntryCorrupt(Exception):
    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def packed(username: str, depth: int, scrape: Scrape) -> bytes:
    """Raises CacheEntryCorrupt for a scrape that ``unpacked`` would reject."""
    _check(username, depth, scrape)
    text = msgspec.json.encode(scrape)
    if len(text) >= JSON_BYTES_MAX:
        raise CacheEntryCorrupt("too long")
    return MAGIC + zstd.compress(text, options=_CHECKED)


def unpacked(username: str, depth: int, data: bytes) -> Scrape:
    if not data.startswith(MAGIC):
        raise CacheEntryCorrupt("of another kind or version")
    try:
        scrape = _decoder.decode(_inflated(data[len(MAGIC) :]))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise CacheEntryCorrupt("not a scrape") from None
    _check(username, depth, scrape)
    return scrape


def _inflated(data: bytes) -> bytes:
    decompressor = zstd.ZstdDecompressor(options=_BOUNDED)
    try:
        text = decompressor.decompress(data, max_length=JSON_BYTES_MAX)
    except zstd.ZstdError:
        raise CacheEntryCorrupt("not compressed by us") from None
    if not decompressor.eof or decompressor.unused_data:
        raise CacheEntryCorrupt("cut off, too long, or with something behind")
    return text


def _check(username: str, depth: int, scrape: Scrape) -> None:
    if scrape.scraped_at.tzinfo is None:
        raise CacheEntryCorrupt("without an offset from UTC")
    if depth_of(scrape.posts_asked) != depth:
        raise CacheEntryCorrupt("of another depth")
    if scrape.outcome == "ok" and scrape.profile is None:
        raise CacheEntryCorrupt("without a profile")
    if scrape.profile is not None and scrape.profile.username.lower() != username:
        raise CacheEntryCorrupt("of another username")
