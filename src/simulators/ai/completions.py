"""Simulated completions, computed from the text of the prompt.

No model is involved, and no text in a prompt can change the procedure: scores are computed from its
facts, and texts are composed from its facts and from words that are safe to quote.
"""

import hashlib
from collections.abc import Iterable

from simulators.ai.analysis_texts import judgement
from simulators.ai.outreach_texts import outreach
from simulators.ai.persona_texts import personality, psychographic
from simulators.ai.profile_prompt import read_profile
from simulators.ai.prompt_facts import PromptFacts, plain, read_facts
from simulators.ai.schema_values import SchemaValues
from simulators.faults.provider_requests import Document, Value

QUOTE_LENGTH_MAX = 120
# Each occurs in one of the schemas of an analysis.
ANALYSIS_PROPERTIES = frozenset({"niche_fit", "messages", "communication_style", "core_values"})


class Completions:
    """The completion of one prompt."""

    def __init__(self, cached_prefix: Iterable[str], user_message: str) -> None:
        self._cached_prefix = tuple(cached_prefix)
        self._user_message = user_message
        self._facts: PromptFacts = read_facts(self._cached_prefix, user_message)
        self._seed = hashlib.blake2b(user_message.encode("utf-8", "replace"), digest_size=8).digest()

    def text(self) -> str:
        """Returns the text of a completion without a schema."""
        return " ".join(self.sentence("", number) for number in range(3))

    def value(self, schema: Document) -> Value:
        return SchemaValues(self, schema).value(schema, "", 0, 0, self.draft(schema))

    def draft(self, schema: Document) -> Document:
        """Returns values by property for the schema of an analysis, and {} for any other schema."""
        names = frozenset[str](_root(schema).get("properties", {}))
        if not names & ANALYSIS_PROPERTIES:
            return {}
        profile = read_profile(self._cached_prefix, self._user_message, self._facts)
        if "niche_fit" in names:
            return judgement(profile, names)
        if "messages" in names:
            return outreach(profile)
        if "communication_style" in names:
            return personality(profile)
        return psychographic(profile)

    def score_of(self, name: str) -> float:
        """Returns 0..1, higher the more words the question shares with the stable part of the prompt. Each
        name shifts the value by its own small constant, so the order of two questions never changes.
        """
        offset = (self.stable_number(name, 100) - 50) / 1_000  # depends on the name only, not on the prompt
        return min(1.0, max(0.0, 0.1 + 0.85 * self._facts.agreement + offset))

    @staticmethod
    def stable_number(name: str, below: int) -> int:
        return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big") % below

    def choice(self, name: str, below: int) -> int:
        seeded = hashlib.blake2b(name.encode(), key=self._seed, digest_size=8).digest()
        return int.from_bytes(seeded, "big") % below

    def number_of(self, name: str) -> float | None:
        return self._facts.number(name)

    def text_of(self, name: str) -> str | None:
        return self._facts.lines.get(plain(name), "")[:QUOTE_LENGTH_MAX] or None

    def ids(self) -> tuple[str, ...]:
        return self._facts.ids

    def sentence(self, name: str, number: int) -> str:
        facts = self._facts
        offset = self.stable_number(name, 7) + number  # each name and each list item names another fact
        numbers = {key: value for key, value in facts.lines.items() if value[:1].isdigit()}
        texts = [f"{key.replace('_', ' ')}: {value}" for key, value in numbers.items()]
        texts += [f"writes about #{tag}" for tag in facts.tags]
        shared = f"{round(100 * facts.agreement)} % of the words are those of the business"
        return f"{facts.subject}, {texts[offset % len(texts)] if texts else shared}."


def _root(schema: Document) -> Document:
    reference = str(schema.get("$ref", ""))
    return schema.get("$defs", {}).get(reference.rpartition("/")[2], schema)
