"""In-memory runs, quotas, anonymous results and stored analyses of the analysis slice."""

from datetime import timedelta
from types import SimpleNamespace

from msgspec.structs import replace

from features.analysis.application import ports
from features.analysis.application.ports import AnalysisQuotas, AnonymousAnalysis, AnonymousRun, StartedRun
from features.analysis.domain.scoring.ideal_customer import IdealCustomer
from shared.pagination import Cursor
from tests.support import NOON

PRICES = {"light": 1, "deep": 5, "xray": 6}


class FakeAccountState(ports.Prices, ports.AnalysisQuotaReader, ports.FetchReader, ports.Durations):
    """One account's prices, quotas, own fetches and usual durations."""

    def __init__(self):
        self.quotas = AnalysisQuotas(
            plan="pro",
            runs_at_once=5,
            runs_at_work=0,
            light_per_hour=150,
            bulk_max=4,
            credits_available=25,
            customer=IdealCustomer(),
            duplicate_run_id=None,
        )
        self.own_fetches = []
        self.steps_s = ()
        self.dedup_keys = []

    async def credits(self, analysis_type):
        return PRICES[analysis_type]

    async def terms(self, _caller, _business_profile_id, *, dedup_key=None):
        self.dedup_keys.append(dedup_key)
        return self.quotas

    async def fetches(self, _caller, _order):
        return self.own_fetches

    async def of(self, _kind):
        return SimpleNamespace(steps_s=self.steps_s)


class FakeRuns(ports.AnalysisRuns):
    """Idempotent by run id. ``started`` holds the arguments of each run."""

    def __init__(self):
        self.started = {}

    async def start(self, run_id, payer, order, *, credits_held):
        _, _, credits_held = self.started.setdefault(run_id, (payer, order, credits_held))
        return StartedRun(run_id=run_id, status="queued", credits_held=credits_held)

    async def start_bulk(self, run_id, payer, order, rows, *, credits_each):
        self.started.setdefault(run_id, (payer, order, rows, credits_each))
        return StartedRun(run_id=run_id, status="queued", credits_held=0)


class FakeBulkReader(ports.BulkReader):
    def __init__(self):
        self.pages = {}  # run id -> page with all items

    async def page(self, _caller, run_id, *, after_position, items_max):
        page = self.pages.get(run_id)
        items = [item for item in page.items if item.position > after_position] if page else []
        return page and replace(page, items=items[:items_max])


class FakeAnonymousResults(ports.AnonymousResults):
    def __init__(self):
        self.started = {}  # token hash -> (run id, order)

    async def start(self, run_id, order, *, token_hash):
        self.started[token_hash] = (run_id, order)
        return AnonymousRun(run_id=run_id, status="queued", expires_at=NOON + timedelta(days=1))

    async def find(self, token_hash):
        if token_hash not in self.started:
            return None
        return AnonymousAnalysis(
            status="queued",
            progress=0,
            current_step=None,
            outcome=None,
            result=None,
            expires_at=NOON + timedelta(days=1),
        )


class FakeAnalysisStore(ports.AnalysisStore):
    def __init__(self):
        self.entries = []
        self.by_id = {}
        self.filters = []

    async def list(self, _caller, only, *, after, analyses_max):
        self.filters.append(only)
        newest = sorted(self.entries, key=lambda one: one.created_at, reverse=True)
        return [one for one in newest if after is None or Cursor(one.created_at, one.id) < after][
            :analyses_max
        ]

    async def get(self, _caller, analysis_id):
        return self.by_id.get(analysis_id)
