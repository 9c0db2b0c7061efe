"""Embeddings without a model: words and their character n-grams, hashed into signed features.

Texts that share words lie near each other, texts that share parts of words a little less, others at about
a right angle. The vectors do not represent meaning: synonyms are unrelated.
"""

import hashlib
import math
import re
import unicodedata
from collections import Counter
from functools import lru_cache
from itertools import pairwise

_COMMON = (
    "a an and are as at be but by for from has have i in is it its my of on or our so that the their they"
    " this to was we were what when which who will with you your"
)
COMMON = frozenset(_COMMON.split())
WORD_WEIGHT, PAIR_WEIGHT, GRAM_WEIGHT = 1.0, 0.7, 0.25
GRAM_LENGTHS = (3, 4)
_WORD = re.compile(r"\w+")


@lru_cache(maxsize=65_536)
def _position(feature: str) -> tuple[int, float]:
    """Returns the same position in every process, unlike ``hash``."""
    number = int.from_bytes(
        hashlib.blake2b(feature.encode("utf-8", "replace"), digest_size=8).digest(), "big"
    )
    return number >> 1, 1.0 if number & 1 else -1.0


def words_of(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).lower())


@lru_cache(maxsize=16_384)
def _grams(word: str) -> tuple[str, ...]:
    fenced = f"<{word}>"
    return tuple(
        f"g:{fenced[start : start + length]}"
        for length in GRAM_LENGTHS
        for start in range(len(fenced) - length + 1)
    )


def _features(text: str) -> dict[str, float]:
    words = [word for word in words_of(text) if word not in COMMON] or words_of(text)
    counts = Counter(words)
    weights = {f"w:{word}": WORD_WEIGHT * (1 + math.log(count)) for word, count in counts.items()}
    for first, second in pairwise(words):
        weights[f"p:{first} {second}"] = PAIR_WEIGHT
    grams = Counter(gram for word in counts for gram in _grams(word))
    weights |= {gram: GRAM_WEIGHT * (1 + math.log(count)) for gram, count in grams.items()}
    return weights


def embed(text: str, dimensions: int) -> list[float]:
    """Returns a vector of length 1, also for a text without words."""
    vector = [0.0] * dimensions
    for feature, weight in (_features(text) or {f"t:{text}": 1.0}).items():
        position, sign = _position(feature)
        vector[position % dimensions] += sign * weight
    length = math.sqrt(sum(value * value for value in vector)) or 1.0
    return [value / length for value in vector]
