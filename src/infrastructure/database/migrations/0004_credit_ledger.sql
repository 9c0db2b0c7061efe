-- The ledger of credits. Its rules hold whatever a client does: every change goes through a function of schema
-- ledger, locks the account's row first, and carries a reference that makes a repetition harmless. The service role
-- may execute these functions but not write the tables.
-- Functions set enable_seqscan = off where a session could otherwise keep a plan that was made for an empty table and
-- reads all of it: a queue is empty now and full a minute later. Every lookup in them has an index.

-- Tables ------------------------------------------------------------------------------------------

-- The purposes of entries. sign: 1 adds credits, -1 takes them. lot_source: the source of the lot that a grant
-- creates.
create table ledger.transaction_types (
    name text primary key check (name ~ '^[a-z][a-z_]{0,39}$'),
    sign smallint not null check (sign in (-1, 1)),
    lot_source text check (lot_source in ('plan', 'purchase', 'promotion'))
);

insert into ledger.transaction_types (name, sign, lot_source) values
    ('signup_bonus', 1, 'promotion'),
    ('admin_grant', 1, 'promotion'),
    ('subscription_renewal', 1, 'plan'),
    ('purchase', 1, 'purchase'),
    ('refund', 1, null),
    ('analysis', -1, null),
    ('chargeback', -1, null),
    ('admin_charge', -1, null),
    ('expiry', -1, null);

create table public.credit_accounts (
    account_id uuid primary key references public.accounts (id) on delete cascade,
    credits_available bigint not null default 0 check (credits_available >= 0),
    credits_held bigint not null default 0 check (credits_held >= 0),
    entries_count bigint not null default 0 check (entries_count >= 0),
    -- Not later than the first lapse of a lot with available credits; if it is earlier, one check finds nothing
    -- to do.
    next_lapse_at timestamptz,
    -- Whether the account has a webhook endpoint: accounts without one pay one comparison when credits change.
    has_endpoints boolean not null default false
) with (fillfactor = 50);

create index credit_accounts_by_lapse on public.credit_accounts (next_lapse_at)
    where next_lapse_at is not null;

create table public.credit_lots (
    account_id uuid not null references public.credit_accounts (account_id) on delete cascade,
    id bigint not null,  -- the position of the entry that granted it
    source text not null check (source in ('plan', 'purchase', 'promotion')),
    credits_granted bigint not null check (credits_granted between 1 and 1000000000000),
    credits_available bigint not null check (credits_available >= 0),
    credits_held bigint not null default 0 check (credits_held >= 0),
    granted_at timestamptz not null,
    expires_at timestamptz,
    -- Credits that return after their lot has expired can be spent until this time.
    grace_until timestamptz,
    lapses_at timestamptz generated always as (coalesce(grace_until, expires_at)) stored,
    primary key (account_id, id),
    check (credits_available + credits_held <= credits_granted)
) with (fillfactor = 70);

create index credit_lots_spending_order on public.credit_lots (account_id, lapses_at, id)
    where credits_available > 0;

create table public.credit_holds (
    account_id uuid not null references public.credit_accounts (account_id) on delete cascade,
    reference text not null check (length(reference) between 1 and 200),
    transaction_type text not null references ledger.transaction_types (name),
    status text not null check (status in ('held', 'settled', 'released')),
    credits_placed bigint not null check (credits_placed > 0),
    credits_spent bigint not null default 0,
    credits_refunded bigint not null default 0,
    placed_at timestamptz not null,
    closed_at timestamptz,
    api_key_id uuid,  -- the key whose monthly limit the hold counts against
    primary key (account_id, reference),
    foreign key (account_id, api_key_id)
        references public.api_keys (account_id, id) on delete set null (api_key_id),
    check (credits_spent between 0 and credits_placed),
    check (credits_refunded between 0 and credits_spent),
    check ((status = 'held') = (closed_at is null)),
    check (status = 'settled' or credits_spent = 0)
) with (fillfactor = 70);

create index credit_holds_open on public.credit_holds (placed_at) where status = 'held';
create index credit_holds_by_key on public.credit_holds (account_id, api_key_id, placed_at)
    where api_key_id is not null;

-- The lots that a hold took from, so that returned credits go back to the same lots.
create table public.credit_hold_lots (
    account_id uuid not null,
    hold_reference text not null,
    lot_id bigint not null,
    credits_placed bigint not null check (credits_placed > 0),
    credits_spent bigint not null default 0,
    credits_refunded bigint not null default 0,
    primary key (account_id, hold_reference, lot_id),
    foreign key (account_id, hold_reference)
        references public.credit_holds (account_id, reference) on delete cascade,
    foreign key (account_id, lot_id) references public.credit_lots (account_id, id) on delete cascade,
    check (credits_spent between 0 and credits_placed),
    check (credits_refunded between 0 and credits_spent)
) with (fillfactor = 70);

create index credit_hold_lots_by_lot on public.credit_hold_lots (account_id, lot_id);

-- Credits that a refund or dispute takes back. Those that were held or spent at that moment are owed: credits
-- that return to a lot of that time pay the debt first. Lots that are granted later never pay it.
create table public.credit_debts (
    account_id uuid not null references public.credit_accounts (account_id) on delete cascade,
    reference text not null check (length(reference) between 1 and 200),  -- of the charge that pays it
    lot_id bigint,  -- the lot that the returned money bought; null: unknown
    position bigint not null,  -- the account's last entry when the debt began
    credits_owed bigint not null check (credits_owed >= 0),
    credits_paid bigint not null default 0,
    primary key (account_id, reference),
    foreign key (account_id, lot_id) references public.credit_lots (account_id, id) on delete cascade,
    check (credits_paid between 0 and credits_owed)
);

create index credit_debts_unpaid on public.credit_debts (account_id, position)
    where credits_paid < credits_owed;
create index credit_debts_by_lot on public.credit_debts (account_id, lot_id);

create table public.credit_entries (
    account_id uuid not null references public.credit_accounts (account_id) on delete cascade,
    position bigint not null check (position > 0),
    kind text not null
        check (kind in ('grant', 'hold', 'settle', 'release', 'spend', 'refund', 'expire')),
    reference text not null check (length(reference) between 1 and 200),
    transaction_type text not null references ledger.transaction_types (name),
    credits_delta bigint not null,
    held_delta bigint not null default 0,
    balance_after bigint not null check (balance_after >= 0),
    held_after bigint not null check (held_after >= 0),
    lot_id bigint,
    hold_reference text,
    description text check (length(description) <= 500),
    created_at timestamptz not null,
    primary key (account_id, position),
    unique (account_id, kind, reference)
);

create index credit_entries_by_time on public.credit_entries (account_id, created_at, position);
create index credit_entries_by_kind on public.credit_entries (account_id, kind, position);

create function ledger.reject_entry_change() returns trigger language plpgsql set search_path = '' as $$
begin
    -- Entries are deleted only together with their account.
    if tg_op = 'DELETE'
        and not exists (select from public.credit_accounts where account_id = old.account_id) then
        return old;
    end if;
    raise exception 'credit entries are never changed or removed'
        using errcode = 'restrict_violation';
end;
$$;

create trigger reject_entry_change before update or delete on public.credit_entries
    for each row execute function ledger.reject_entry_change();

alter table ledger.transaction_types enable row level security;
alter table ledger.transaction_types force row level security;

call private.protect_table('public.credit_accounts', 'select', 'select');
call private.protect_table('public.credit_lots', 'select', 'select');
call private.protect_table('public.credit_holds', 'select', 'select');
call private.protect_table('public.credit_hold_lots', 'select', 'select');
call private.protect_table('public.credit_debts', 'select', 'select');
call private.protect_table('public.credit_entries', 'select', 'select');

-- Entries and lots --------------------------------------------------------------------------------

-- outcome: done | repeated | conflicting | insufficient | unknown_account | unknown_hold | closed_hold
--          | exceeds_hold | exceeds_charge | unknown_type | wrong_sign | unknown_key | key_capped | test_key
-- An outcome instead of an exception: the caller's transaction stays usable, and the result has the facts.
create type ledger.outcome as (
    outcome text,
    credits_available bigint,
    credits_held bigint,
    credits_moved bigint,
    position bigint
);

create function ledger.rejection(
    outcome text, account public.credit_accounts, credits_moved bigint default 0
) returns ledger.outcome language sql immutable set search_path = '' as $$
    select row(
        outcome, account.credits_available, account.credits_held, credits_moved, null
    )::ledger.outcome
$$;

-- The only function that changes the balance; it writes the entry in the same call, so that the two always
-- agree.
create function ledger.append(
    account uuid, kind text, reference text, transaction_type text, credits_delta bigint,
    held_delta bigint, credits_moved bigint, lot_id bigint, hold_reference text, description text
) returns ledger.outcome language plpgsql set search_path = '' as $$
declare
    after public.credit_accounts;
begin
    update public.credit_accounts as a
    set credits_available = a.credits_available + append.credits_delta,
        credits_held = a.credits_held + append.held_delta,
        entries_count = a.entries_count + 1
    where a.account_id = append.account
    returning * into after;
    -- The clock is read under the row's lock, so that an account's entries are also in order of time.
    insert into public.credit_entries (
        account_id, position, kind, reference, transaction_type, credits_delta, held_delta,
        balance_after, held_after, lot_id, hold_reference, description, created_at
    ) values (
        account, after.entries_count, kind, reference, transaction_type, credits_delta, held_delta,
        after.credits_available, after.credits_held, lot_id, hold_reference, description,
        clock_timestamp()
    );
    return row(
        'done', after.credits_available, after.credits_held, credits_moved, after.entries_count
    )::ledger.outcome;
end;
$$;

-- Expires the credits that are left in lapsed lots. The account's row must be locked.
create function ledger.expire_due(account uuid) returns bigint
language plpgsql set search_path = '' as $$
declare
    lot public.credit_lots;
    credits_expired bigint := 0;
begin
    for lot in
        select * from public.credit_lots
        where account_id = account and credits_available > 0 and lapses_at <= clock_timestamp()
        order by lapses_at, id
    loop
        update public.credit_lots set credits_available = 0
        where account_id = account and id = lot.id;
        perform ledger.append(
            account, 'expire', format('lot:%s:%s', lot.id, extract(epoch from lot.lapses_at)),
            'expiry', -lot.credits_available, 0, lot.credits_available, lot.id, null, null);
        credits_expired := credits_expired + lot.credits_available;
    end loop;
    update public.credit_accounts
    set next_lapse_at = (
        select min(lapses_at) from public.credit_lots
        where account_id = account and credits_available > 0
    )
    where account_id = account;
    return credits_expired;
end;
$$;

-- Locks the account and expires its lapsed lots. References are looked up only after this: before it, two
-- concurrent calls could both find none.
create function ledger.lock_account(account uuid) returns public.credit_accounts
language plpgsql set search_path = '' as $$
declare
    locked public.credit_accounts;
begin
    select * into locked from public.credit_accounts where account_id = account for no key update;
    if locked.next_lapse_at <= clock_timestamp() then
        perform ledger.expire_due(account);
        select * into locked from public.credit_accounts where account_id = account;
    end if;
    return locked;
end;
$$;

-- Takes credits from the lots that lapse first and records these lots.
create function ledger.take_from_lots(account uuid, hold_reference text, credits bigint, as_spent boolean)
returns void language plpgsql set search_path = '' as $$
declare
    lot public.credit_lots;
    credits_left bigint := credits;
    credits_taken bigint;
begin
    for lot in
        select * from public.credit_lots
        where account_id = account and credits_available > 0
        order by lapses_at, id
    loop
        credits_taken := least(lot.credits_available, credits_left);
        update public.credit_lots as l
        set credits_available = l.credits_available - credits_taken,
            credits_held = l.credits_held + case when as_spent then 0 else credits_taken end
        where l.account_id = account and l.id = lot.id;
        insert into public.credit_hold_lots (
            account_id, hold_reference, lot_id, credits_placed, credits_spent
        ) values (
            account, hold_reference, lot.id, credits_taken,
            case when as_spent then credits_taken else 0 end
        );
        credits_left := credits_left - credits_taken;
        exit when credits_left = 0;
    end loop;
    assert credits_left = 0, 'the lots hold less than the account';
end;
$$;

-- Returns credits to the lot they came from. If it has expired meanwhile, they can be spent for another week: a
-- customer loses no credits because our work took long or failed.
create function ledger.return_to_lot(account uuid, lot_id bigint, credits bigint, from_held bigint)
returns void language plpgsql set search_path = '' as $$
declare
    lapses_at timestamptz;
begin
    update public.credit_lots as l
    set credits_available = l.credits_available + credits,
        credits_held = l.credits_held - from_held,
        grace_until = case
            when credits > 0 and l.lapses_at <= clock_timestamp()
                then clock_timestamp() + interval '7 days'
            else l.grace_until
        end
    where l.account_id = account and l.id = lot_id
    returning l.lapses_at into lapses_at;
    if credits > 0 and lapses_at is not null then
        update public.credit_accounts as a
        set next_lapse_at = least(a.next_lapse_at, lapses_at)
        where a.account_id = account;
    end if;
end;
$$;

-- Debts -------------------------------------------------------------------------------------------

-- Pays as much of a debt as the lots of its time have: from the bought lot first, then from those that lapse
-- first. Every payment adds to one charge. Returns the credits paid. The account's row must be locked.
create function ledger.pay_debt(debt public.credit_debts) returns bigint
language plpgsql set search_path = '' as $$
declare
    lot public.credit_lots;
    payment bigint;
    credits_left bigint;
    credits_taken bigint;
begin
    select least(debt.credits_owed - debt.credits_paid, coalesce(sum(l.credits_available), 0))
    into payment
    from public.credit_lots as l
    where l.account_id = debt.account_id and l.id <= debt.position and l.credits_available > 0;
    if payment = 0 then
        return 0;
    end if;
    insert into public.credit_holds as h (
        account_id, reference, transaction_type, status, credits_placed, credits_spent, placed_at, closed_at
    ) values (
        debt.account_id, debt.reference, 'chargeback', 'settled', payment, payment,
        clock_timestamp(), clock_timestamp()
    )
    on conflict on constraint credit_holds_pkey do update
    set credits_placed = h.credits_placed + excluded.credits_placed,
        credits_spent = h.credits_spent + excluded.credits_spent;
    credits_left := payment;
    for lot in
        select * from public.credit_lots as l
        where l.account_id = debt.account_id and l.id <= debt.position and l.credits_available > 0
        order by l.id = debt.lot_id desc, l.lapses_at, l.id
    loop
        credits_taken := least(lot.credits_available, credits_left);
        update public.credit_lots as l set credits_available = l.credits_available - credits_taken
        where l.account_id = debt.account_id and l.id = lot.id;
        insert into public.credit_hold_lots as p (
            account_id, hold_reference, lot_id, credits_placed, credits_spent
        ) values (debt.account_id, debt.reference, lot.id, credits_taken, credits_taken)
        on conflict on constraint credit_hold_lots_pkey do update
        set credits_placed = p.credits_placed + excluded.credits_placed,
            credits_spent = p.credits_spent + excluded.credits_spent;
        credits_left := credits_left - credits_taken;
        exit when credits_left = 0;
    end loop;
    update public.credit_debts as d set credits_paid = d.credits_paid + payment
    where d.account_id = debt.account_id and d.reference = debt.reference;
    -- An entry's reference is unique: later payments carry the number of credits paid before them.
    perform ledger.append(
        debt.account_id, 'spend',
        debt.reference || case when debt.credits_paid > 0 then ':' || debt.credits_paid else '' end,
        'chargeback', -payment, 0, payment, null, debt.reference, null);
    return payment;
end;
$$;

-- Pays the account's debts from credits that have just returned, the oldest first. Returns the credits paid.
-- The account's row must be locked.
create function ledger.pay_debts(account uuid) returns bigint
language plpgsql set search_path = '' as $$
declare
    debt public.credit_debts;
    credits_paid bigint := 0;
begin
    for debt in
        select * from public.credit_debts as d
        where d.account_id = account and d.credits_paid < d.credits_owed
        order by d.position, d.reference
    loop
        credits_paid := credits_paid + ledger.pay_debt(debt);
    end loop;
    return credits_paid;
end;
$$;

-- Grants ------------------------------------------------------------------------------------------

create function ledger.sign_of(transaction_type text) returns smallint
language sql stable set search_path = '' as $$
    select sign from ledger.transaction_types where name = transaction_type
$$;

create function ledger.grant_credits(
    account uuid, credits bigint, reference text, transaction_type text,
    expires_at timestamptz default null, description text default null
) returns ledger.outcome
language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
declare
    locked public.credit_accounts := ledger.lock_account(account);
    prior public.credit_entries;
    lot_source text;
    granted ledger.outcome;
begin
    if locked.account_id is null then
        return ledger.rejection('unknown_account', locked);
    end if;
    select t.lot_source into lot_source from ledger.transaction_types as t
    where t.name = transaction_type;
    if not found then
        return ledger.rejection('unknown_type', locked);
    elsif lot_source is null then
        return ledger.rejection('wrong_sign', locked);
    end if;
    select * into prior from public.credit_entries as e
    where e.account_id = account and e.kind = 'grant' and e.reference = grant_credits.reference;
    if found then
        return ledger.rejection(
            case
                when prior.credits_delta = credits
                    and prior.transaction_type = grant_credits.transaction_type
                    and (
                        select l.expires_at is not distinct from grant_credits.expires_at
                        from public.credit_lots as l
                        where l.account_id = account and l.id = prior.lot_id
                    )
                    then 'repeated'
                else 'conflicting'
            end, locked, prior.credits_delta);
    end if;
    insert into public.credit_lots (
        account_id, id, source, credits_granted, credits_available, granted_at, expires_at
    ) values (
        account, locked.entries_count + 1, lot_source, credits, credits, clock_timestamp(), expires_at
    );
    update public.credit_accounts as a
    set next_lapse_at = least(a.next_lapse_at, grant_credits.expires_at)
    where a.account_id = account and grant_credits.expires_at is not null;
    return ledger.append(
        account, 'grant', reference, transaction_type, credits, 0, credits,
        locked.entries_count + 1, null, description);
end;
$$;

grant execute on function ledger.grant_credits(uuid, bigint, text, text, timestamptz, text) to service_role;
