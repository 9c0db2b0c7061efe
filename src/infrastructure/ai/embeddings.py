"""Embedding vectors for texts, in batches within the provider's limits."""

from collections.abc import Iterator, Mapping, Sequence

from infrastructure.ai.model_catalog import Model, ModelCatalog
from infrastructure.ai.providers.base import EmbeddingProvider, EmbeddingReply, ProviderError
from infrastructure.ai.routing.attempt import Judgement
from infrastructure.ai.routing.candidates import legs_of
from infrastructure.ai.routing.router import CompletionRouter, RouterDependencies
from infrastructure.ai.routing.usage import RequestUsage, UsageRecorder
from shared.llm import CostOwner, EmbeddedTexts, Usage

TASK = "embeddings"
TEXTS_MAX = 2_048  # per request
TOKENS_MAX = 300_000  # per request, all texts together
BYTES_A_TOKEN_MIN = 2  # conservative: some scripts need more tokens than English
BYTES_A_TOKEN = 4
NOTHING = "-"  # providers reject an empty text


class _EmbeddingCall:
    def __init__(self, provider: EmbeddingProvider, model: Model, texts: tuple[str, ...]) -> None:
        self._provider = provider
        self._model = model
        self._texts = texts
        self.complaint: str | None = None

    @property
    def tokens_estimated(self) -> int:
        # Rounded up per text, because every text has at least one token.
        return sum(-(-len(text.encode("utf-8", "replace")) // BYTES_A_TOKEN) for text in self._texts)

    async def ask(self, deadline_s: float) -> EmbeddingReply:
        model = self._model
        reply = await self._provider.embed(
            self._texts, model=model.name, dimensions=model.dimensions, deadline_s=deadline_s
        )
        if len(reply.vectors) != len(self._texts):
            raise ProviderError(
                "garbled", was_sent=True, is_simulated=reply.is_simulated, detail="not a vector a text"
            )
        return reply

    def judge(self, reply: EmbeddingReply) -> Judgement:  # noqa: ARG002  required by ProviderCall
        return "answered"


class Embedder:
    def __init__(
        self,
        table: ModelCatalog,
        providers: Mapping[str, EmbeddingProvider],
        means: RouterDependencies,
        books: UsageRecorder,
    ) -> None:
        self._table = table
        self._providers = providers
        self._means = means
        self._books = books

    async def embed(self, texts: Sequence[str], spender: CostOwner) -> EmbeddedTexts:
        task = self._table.task(TASK)
        legs = legs_of(self._table, task, self._means.clocks.now().date())
        replies: list[EmbeddingReply] = []
        costs: list[int | None] = []
        for batch in _batches(texts):
            tally = self._books.open(spender, TASK)
            replies.append(await self._embed(batch, tally))
            costs.append(tally.cost_nanodollars)
        known = [cost for cost in costs if cost is not None]
        return EmbeddedTexts(
            vectors=tuple(vector for reply in replies for vector in reply.vectors),
            model=legs[0].model.name,
            is_simulated=any(reply.is_simulated for reply in replies),
            usage=Usage(tokens_in=sum(reply.usage.tokens_in for reply in replies)),
            cost_nanodollars=sum(known) if len(known) == len(costs) else None,
        )

    async def _embed(self, texts: tuple[str, ...], tally: RequestUsage) -> EmbeddingReply:
        """Uses one model without a fallback, because vectors of different models are not comparable."""
        task = self._table.task(TASK)
        (leg,) = legs_of(self._table, task, self._means.clocks.now().date())
        provider = self._providers[leg.model.provider]
        inquiry = CompletionRouter(
            self._means, task, (leg,), lambda leg, _: _EmbeddingCall(provider, leg.model, texts), tally
        )
        return (await inquiry.run()).reply


def _batches(texts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    batch: list[str] = []
    tokens = 0
    for text in texts:
        sent = text if text.strip() else NOTHING
        size = len(sent.encode("utf-8", "replace")) // BYTES_A_TOKEN_MIN + 1
        if batch and (len(batch) == TEXTS_MAX or tokens + size > TOKENS_MAX):
            yield tuple(batch)
            batch, tokens = [], 0
        batch.append(sent)
        tokens += size
    if batch:
        yield tuple(batch)
