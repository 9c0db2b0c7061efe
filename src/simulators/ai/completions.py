"""Simulated completions, computed from the text of the prompt.

No model is involved, and no text in a prompt can change the procedure: scores are measurements, facts are
read from the prompt, and sentences quote it.
"""

import hashlib
from collections.abc import Iterable

from simulators.ai.prompt_facts import PromptFacts, plain, read_facts
from simulators.ai.schema_values import SchemaValues
from simulators.faults.json_access import Document, Value


class Completions:
    """The completion of one prompt."""

    def __init__(self, stable: Iterable[str], question: str) -> None:
        self._facts: PromptFacts = read_facts(stable, question)
        self._seed = hashlib.blake2b(question.encode("utf-8", "replace"), digest_size=8).digest()

    def text(self) -> str:
        """Returns the text of a completion without a schema."""
        return " ".join(self.sentence("", number) for number in range(3))

    def value(self, schema: Document) -> Value:
        return SchemaValues(self, schema).value(schema, "", 0, 0)

    def measure(self, name: str) -> float:
        """Returns 0..1, higher the more words the question shares with the stable part of the prompt. Each
        name shifts the value by its own small constant, so the order of two questions never changes.
        """
        lean = (self.number(name, 100) - 50) / 1_000  # depends on the name only, not on the prompt
        return min(1.0, max(0.0, 0.1 + 0.85 * self._facts.agreement + lean))

    @staticmethod
    def number(name: str, below: int) -> int:
        return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big") % below

    def choice(self, name: str, below: int) -> int:
        seeded = hashlib.blake2b(name.encode(), key=self._seed, digest_size=8).digest()
        return int.from_bytes(seeded, "big") % below

    def found(self, name: str) -> float | None:
        return self._facts.number(name)

    def said(self, name: str) -> str | None:
        return self._facts.lines.get(plain(name))

    def ids(self) -> tuple[str, ...]:
        return self._facts.ids

    def sentence(self, name: str, number: int) -> str:
        facts = self._facts
        lean = self.number(name, 7) + number  # each name and each list item quotes another part
        shared = f"{round(100 * facts.agreement)} % agreement with what is sought"
        numbers = {key: value for key, value in facts.lines.items() if value[:1].isdigit()}
        known = [f"{key.replace('_', ' ')} {value}" for key, value in numbers.items()]
        known += [f"writes about #{tag}" for tag in facts.tags]
        quoted = known[lean % len(known)] if known else shared
        about = name.replace("_", " ") or "answer"
        return f"Simulated {about}: {facts.subject}, {quoted}."
