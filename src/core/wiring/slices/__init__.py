"""All slices. A slice is listed after the slices whose tables its own tables reference."""

from core.wiring.slice import Slice
from core.wiring.slices.analysis import ANALYSIS
from core.wiring.slices.auth import AUTH
from core.wiring.slices.billing import BILLING
from core.wiring.slices.business import BUSINESS
from core.wiring.slices.costs import COSTS
from core.wiring.slices.credits import CREDITS
from core.wiring.slices.leads import LEADS
from core.wiring.slices.operations import OPERATIONS
from core.wiring.slices.runs import RUNS
from core.wiring.slices.webhooks import WEBHOOKS

SLICES: tuple[Slice, ...] = (
    AUTH,
    CREDITS,
    RUNS,
    BUSINESS,
    COSTS,
    LEADS,
    ANALYSIS,
    BILLING,
    WEBHOOKS,
    OPERATIONS,
)
