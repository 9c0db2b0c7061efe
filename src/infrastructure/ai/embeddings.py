"""Embedding vectors for texts, in batches within the provider's limits."""

from collections.abc import Iterator, Mapping, Sequence

from infrastructure.ai.model_catalog import Candidate, ModelCatalog
from infrastructure.ai.providers.base import EmbeddingProvider, EmbeddingReply, ProviderError
from infrastructure.ai.routing.attempts import Attempt, Validation
from infrastructure.ai.routing.router import Router, RouterDependencies
from infrastructure.monitoring.cost_tracker import RequestUsage
from shared.llm import CostOwner, EmbeddedTexts, Usage

TASK = "embeddings"
TEXTS_MAX = 2_048  # per request
TOKENS_MAX = 300_000  # per request, all texts together
BYTES_PER_TOKEN_MIN = 2  # conservative: some scripts need more tokens than English
BYTES_PER_TOKEN = 4
EMPTY = "-"  # providers reject an empty text


class Embedder:
    def __init__(
        self, catalog: ModelCatalog, providers: Mapping[str, EmbeddingProvider], shared: RouterDependencies
    ) -> None:
        self._catalog = catalog
        self._providers = providers
        self._shared = shared

    async def embed(self, texts: Sequence[str], owner: CostOwner) -> EmbeddedTexts:
        """Uses one model without a fallback, because vectors of different models are not comparable."""
        (candidate,) = self._catalog.candidates(TASK, self._shared.clocks.now().date())
        replies: list[EmbeddingReply] = []
        costs: list[int | None] = []
        for batch in _batches(texts):
            usage = RequestUsage(owner, TASK)
            replies.append(await self._embed(candidate, batch, usage))
            costs.append(usage.cost_nanodollars)
        priced = [cost for cost in costs if cost is not None]
        return EmbeddedTexts(
            vectors=tuple(vector for reply in replies for vector in reply.vectors),
            model=candidate.model.name,
            is_simulated=any(reply.is_simulated for reply in replies),
            usage=Usage(tokens_in=sum(reply.usage.tokens_in for reply in replies)),
            cost_nanodollars=sum(priced) if len(priced) == len(costs) else None,
        )

    async def _embed(
        self, candidate: Candidate, texts: tuple[str, ...], usage: RequestUsage
    ) -> EmbeddingReply:
        attempt = self._attempt(candidate, texts)
        task = self._catalog.task(TASK)
        router = Router(self._shared, task, (candidate,), lambda _candidate, _repair: attempt, usage)
        reply = (await router.run()).reply
        assert isinstance(reply, EmbeddingReply)
        return reply

    def _attempt(self, candidate: Candidate, texts: tuple[str, ...]) -> Attempt:
        model = candidate.model
        provider = self._providers[model.provider]

        async def send(deadline_s: float) -> EmbeddingReply:
            reply = await provider.embed(
                texts, model=model.name, dimensions=model.dimensions, deadline_s=deadline_s
            )
            if len(reply.vectors) != len(texts):
                detail = "not one vector per text"
                raise ProviderError(
                    "malformed_response", was_sent=True, is_simulated=reply.is_simulated, detail=detail
                )
            return reply

        # Rounded up per text, because every text has at least one token.
        tokens = sum(-(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN) for text in texts)
        return Attempt(model, tokens, send, lambda _: Validation("answered"))


def _batches(texts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    batch: list[str] = []
    tokens = 0
    for text in texts:
        sent = text if text.strip() else EMPTY
        size = len(sent.encode("utf-8", "replace")) // BYTES_PER_TOKEN_MIN + 1
        if batch and (len(batch) == TEXTS_MAX or tokens + size > TOKENS_MAX):
            yield tuple(batch)
            batch, tokens = [], 0
        batch.append(sent)
        tokens += size
    if batch:
        yield tuple(batch)
