"""Conversion of a structured prompt into a provider's request."""

from typing import Any

from infrastructure.ai.providers.base import ModelProvider, ModelReply, ModelRequest
from infrastructure.ai.routing.attempt import Judgement
from infrastructure.ai.routing.candidates import Candidate
from infrastructure.ai.routing.fallback_policy import Repair
from infrastructure.ai.structured.cache_keys import answer_key, cache_key
from infrastructure.ai.structured.response_format import Malformed, ResponseFormat
from shared.llm import StructuredPrompt

BYTES_A_TOKEN = 4


class CompletionCall:
    def __init__(
        self, provider: ModelProvider, request: ModelRequest, form: ResponseFormat[Any], tokens_estimated: int
    ) -> None:
        self._provider = provider
        self._request = request
        self._form = form
        self.tokens_estimated = tokens_estimated
        self.complaint: str | None = None

    async def ask(self, deadline_s: float) -> ModelReply:
        return await self._provider.ask(self._request, deadline_s=deadline_s)

    def judge(self, reply: ModelReply) -> Judgement:
        if reply.end == "refused":
            return "refused"
        try:
            self._form.decode(reply.text)
        except Malformed as malformed:
            self.complaint = str(malformed)
            return "truncated" if reply.end == "truncated" else "malformed"
        return "answered"


class Prompt:
    def __init__(self, question: StructuredPrompt[Any], form: ResponseFormat[Any]) -> None:
        self._question = question
        self._form = form
        self._cache_key = cache_key(question)
        texts = (*question.stable, question.question)
        self._bytes = len(form.schema_bytes) + sum(len(text.encode("utf-8", "replace")) for text in texts)

    def trial(self, provider: ModelProvider, leg: Candidate, repair: Repair | None) -> CompletionCall:
        malformed_answer = "" if repair is None else (repair.malformed_answer or "")
        tokens_estimated = (self._bytes + len(malformed_answer.encode("utf-8", "replace"))) // BYTES_A_TOKEN
        return CompletionCall(provider, self._request(leg, repair), self._form, tokens_estimated)

    def _request(self, leg: Candidate, repair: Repair | None) -> ModelRequest:
        question = self._question
        # A repair needs its own key; otherwise a cache would return the malformed completion again.
        more = () if repair is None else (repr(repair).encode("utf-8", "replace"),)
        return ModelRequest(
            model=leg.model.name,
            capabilities=leg.model.capabilities,
            stable=question.stable,
            question=question.question,
            schema_name=self._form.name,
            schema=self._form.schema,
            effort=leg.effort,
            temperature=leg.temperature,
            output_tokens_max=leg.output_tokens_max if repair is None else repair.output_tokens_max,
            cache_key=self._cache_key,
            answer_key=answer_key(question, leg, self._form.schema_bytes, *more).hex(),
            spender=question.spender,
            task=question.task,
            is_fresh=question.is_fresh or repair is not None,
            malformed_answer=None if repair is None else repair.malformed_answer,
            complaint=None if repair is None else repair.complaint,
        )
