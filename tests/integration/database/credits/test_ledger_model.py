"""Random histories in SQL and in the model, compared after every step."""

import asyncio
import uuid
from datetime import UTC, datetime, timedelta
from typing import ClassVar

import asyncpg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.integration.database.credits.ledger_model import Model

NOW = datetime.now(UTC)
credits_amounts = st.integers(1, 12)
REFERENCES = [f"r{number}" for number in range(6)]
references = st.sampled_from(REFERENCES)
DEBTS = [f"d{number}" for number in range(4)]
debts = st.sampled_from(DEBTS)
expiries = st.sampled_from([None, 1.0, 2.0, 3.0, 10.0])

LET_LAPSE = """
with lapsed as (
    update credit_lots set grace_until = $3 where account_id = $1 and id = $2 returning lapses_at
)
update credit_accounts set next_lapse_at = least(next_lapse_at, lapsed.lapses_at)
from lapsed where account_id = $1
"""


class Histories(RuleBasedStateMachine):
    owner_url: ClassVar[str]

    def __init__(self):
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.sql = self.run(asyncpg.connect(self.owner_url))
        user = uuid.uuid4()
        self.run(self.sql.execute("select private.sign_up_if_new($1, '', 'Model', 0)", user))
        self.account = self.run(self.sql.fetchval("select account_id from sign_ups where user_id = $1", user))
        self.model = Model()

    def run(self, work):
        return self.loop.run_until_complete(work)

    def call(self, function, *arguments, column="outcome"):
        places = ", ".join(f"${number}" for number in range(1, len(arguments) + 2))
        return self.run(
            self.sql.fetchval(f"select {column} from ledger.{function}({places})", self.account, *arguments)
        )

    @initialize()
    def begin_with_three_small_lots(self):
        """Small lots make most charges span several lots."""
        for number, days in enumerate((2.0, None, 1.0)):
            self.grant(3, f"lot{number}", days)

    @rule(amount=credits_amounts, reference=references, days=expiries)
    def grant(self, amount, reference, days):
        expires_at = None if days is None else NOW + timedelta(days=days)
        outcome = self.call("grant_credits", amount, reference, "admin_grant", expires_at)
        assert outcome == self.model.grant(amount, reference, days)

    @rule(amount=credits_amounts, reference=references)
    def hold(self, amount, reference):
        outcome = self.call("place_hold", amount, reference, "analysis")
        assert outcome == self.model.charge("hold", amount, reference)

    @rule(amount=credits_amounts, reference=references)
    def spend(self, amount, reference):
        outcome = self.call("spend", amount, reference, "analysis")
        assert outcome == self.model.charge("spend", amount, reference)

    @rule(amount=st.integers(0, 12), reference=references)
    def settle(self, amount, reference):
        assert self.call("settle_hold", reference, amount) == self.model.close(reference, "settled", amount)

    @rule(reference=references)
    def release(self, reference):
        assert self.call("release_hold", reference) == self.model.close(reference, "released", 0)

    @rule(amount=credits_amounts, of=st.sampled_from(REFERENCES + DEBTS), reference=references)
    def refund(self, amount, of, reference):
        assert self.call("refund_charge", of, amount, reference) == self.model.refund(of, amount, reference)

    @rule(amount=credits_amounts, of=st.sampled_from([*REFERENCES, "lot1"]), reference=debts)
    def reclaim(self, amount, of, reference):
        taken = self.call("reclaim", of, amount, reference, column="reclaim")
        assert taken == self.model.reclaim(of, amount, reference)

    @precondition(lambda self: any(hold.status == "held" for hold in self.model.holds.values()))
    @rule(amount=st.integers(6, 12), reference=debts, data=st.data())
    def reclaim_while_held(self, amount, reference, data):
        """Credits are held, the payment is reversed, and then the hold is released."""
        held = [reference for reference, hold in self.model.holds.items() if hold.status == "held"]
        self.reclaim(amount, "lot1", reference)
        self.release(data.draw(st.sampled_from(held), label="hold"))

    @precondition(lambda self: self.model.debts)
    @rule(reference=debts)
    def undo_reclaim(self, reference):
        undo = f"undo{reference}"
        came_back = self.call("undo_reclaim", reference, undo, column="undo_reclaim")
        assert came_back == self.model.undo_reclaim(reference, undo)

    @precondition(lambda self: any(lot.expires_in_days is not None for lot in self.model.lots))
    @rule(data=st.data())
    def let_lapse(self, data):
        mortal = [lot for lot in self.model.lots if lot.expires_in_days is not None]
        lot = data.draw(st.sampled_from(mortal), label="lot")
        self.model.let_lapse(lot)
        past = NOW + timedelta(days=lot.lapse)
        self.run(self.sql.execute(LET_LAPSE, self.account, lot.number, past))

    @rule()
    def sweep(self):
        self.run(self.sql.execute("select ledger.expire_lots(1000)"))
        self.model.expire()

    @invariant()
    def both_tell_the_same(self):
        account = self.run(
            self.sql.fetchrow("select * from credit_accounts where account_id = $1", self.account)
        )
        lots = self.run(
            self.sql.fetch("select * from credit_lots where account_id = $1 order by id", self.account)
        )
        model = self.model
        assert account["credits_held"] == model.held
        assert account["credits_available"] == sum(lot.available for lot in model.lots)
        assert account["entries_count"] == model.entries
        assert [(lot["id"], lot["credits_available"], lot["credits_held"]) for lot in lots] == [
            (lot.number, lot.available, lot.held) for lot in model.lots
        ]

    @invariant()
    def no_debt_is_open_while_lots_of_its_time_have_credits(self):
        rows = self.run(self.sql.fetch("select * from credit_debts where account_id = $1", self.account))
        debts = self.model.debts
        assert {row["reference"]: (row["credits_owed"], row["credits_paid"]) for row in rows} == {
            reference: (debt.owed, debt.paid) for reference, debt in debts.items()
        }
        unpaid = [debt for debt in debts.values() if debt.paid < debt.owed]
        assert not any(lot.available for debt in unpaid for lot in self.model.payers(debt))

    def teardown(self):
        findings = self.run(
            self.sql.fetch("select * from ledger.audit() where account_id = $1", self.account)
        )
        self.run(self.sql.close())
        self.loop.close()
        assert findings == []


def play(addresses, examples, steps):
    class HistoriesHere(Histories):
        owner_url = addresses.owner

    run_state_machine_as_test(
        HistoriesHere,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )
    return True


def test_the_ledger_agrees_with_its_model(addresses):
    assert play(addresses, examples=60, steps=30)


@pytest.mark.battery
def test_ledger_agrees_with_its_model_over_long_histories(addresses):
    assert play(addresses, examples=2_000, steps=50)
