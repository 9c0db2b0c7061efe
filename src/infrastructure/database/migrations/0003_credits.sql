-- The ledger of credits. Money rules hold here whatever a client does: every change goes through a
-- function of schema ledger, locks the account's row first, and carries a reference that makes a
-- repetition harmless. The service role may execute these functions but not write the tables.

-- What a movement is for. sign: +1 gives credits, -1 takes them. lot_source: what a gift is kept as.
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
    -- Never later than the first lapse of a lot with credits in it; it may be earlier, which costs a look.
    next_lapse_at timestamptz
) with (fillfactor = 50);

create table public.credit_lots (
    account_id uuid not null references public.credit_accounts (account_id) on delete cascade,
    id bigint not null,  -- the position of the entry that granted it
    source text not null check (source in ('plan', 'purchase', 'promotion')),
    credits_granted bigint not null check (credits_granted between 1 and 1000000000000),
    credits_available bigint not null check (credits_available >= 0),
    credits_held bigint not null default 0 check (credits_held >= 0),
    granted_at timestamptz not null,
    expires_at timestamptz,
    -- Credits that come back after their lot has expired can be spent until this time.
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
    primary key (account_id, reference),
    check (credits_spent between 0 and credits_placed),
    check (credits_refunded between 0 and credits_spent),
    check ((status = 'held') = (closed_at is null)),
    check (status = 'settled' or credits_spent = 0)
) with (fillfactor = 70);

create index credit_holds_open on public.credit_holds (placed_at) where status = 'held';

-- Which lots a hold took from, so that what is given back goes where it came from.
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

-- Credits that a refund or dispute takes back. What was held or spent at that moment is owed: credits that
-- return to a lot of that time pay the debt first. Lots that are granted later never pay it.
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

create function ledger.keep_entries() returns trigger language plpgsql set search_path = '' as $$
begin
    -- Entries leave only together with their account.
    if tg_op = 'DELETE'
        and not exists (select from public.credit_accounts where account_id = old.account_id) then
        return old;
    end if;
    raise exception 'credit entries are never changed or removed'
        using errcode = 'restrict_violation';
end;
$$;

create trigger keep_entries before update or delete on public.credit_entries
    for each row execute function ledger.keep_entries();

-- Tenancy -----------------------------------------------------------------------------------------

alter table ledger.transaction_types enable row level security;
alter table ledger.transaction_types force row level security;

do $$
declare
    table_name text;
begin
    foreach table_name in array array[
        'credit_accounts', 'credit_lots', 'credit_holds', 'credit_hold_lots', 'credit_debts',
        'credit_entries'
    ] loop
        execute format('alter table public.%I enable row level security', table_name);
        execute format('alter table public.%I force row level security', table_name);
        execute format(
            'create policy members_read on public.%I for select to app_user
             using (account_id = any (array(select private.member_account_ids())))', table_name);
        execute format(
            'revoke all on public.%I from public, anon, authenticated, service_role', table_name);
        execute format('grant select on public.%I to app_user, service_role', table_name);
    end loop;
end;
$$;

-- The functions -----------------------------------------------------------------------------------

-- outcome: done | repeated | conflicting | insufficient | unknown_account | unknown_hold | closed_hold
--          | exceeds_hold | exceeds_charge | unknown_type | wrong_sign | unknown_key | key_capped | test_key
-- An outcome rather than an error: the caller's transaction stays usable, and the answer carries facts.
create type ledger.outcome as (
    outcome text,
    credits_available bigint,
    credits_held bigint,
    credits_moved bigint,
    position bigint
);

create function ledger.refusal(
    outcome text, account public.credit_accounts, credits_moved bigint default 0
) returns ledger.outcome language sql immutable set search_path = '' as $$
    select row(
        outcome, account.credits_available, account.credits_held, credits_moved, null
    )::ledger.outcome
$$;

-- Moves the balance and records why, in one place, so that the two cannot part.
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
    -- The clock is read under the row's lock: an account's entries are in order of time as well.
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

-- Writes off what is left in lots whose time is over. The account's row must be locked.
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

-- Locks the account and brings it up to date. A reference is looked for only after this: the other
-- order lets two rivals both find nothing.
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

-- Takes credits out of the lots that lapse first and notes which they were.
create function ledger.take(account uuid, hold_reference text, credits bigint, as_spent boolean)
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

-- Puts credits back into the lot they came from. If that has expired meanwhile, they live on for a week:
-- nobody loses credits because work of ours took long or failed.
create function ledger.put_back(account uuid, lot_id bigint, credits bigint, from_held bigint)
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

create function ledger.sign_of(transaction_type text) returns smallint
language sql stable set search_path = '' as $$
    select sign from ledger.transaction_types where name = transaction_type
$$;

create function ledger.grant_credits(
    account uuid, credits bigint, reference text, transaction_type text,
    expires_at timestamptz default null, description text default null
) returns ledger.outcome
language plpgsql security definer set search_path = '' as $$
declare
    locked public.credit_accounts := ledger.lock_account(account);
    prior public.credit_entries;
    lot_source text;
    granted ledger.outcome;
begin
    if locked.account_id is null then
        return ledger.refusal('unknown_account', locked);
    end if;
    select t.lot_source into lot_source from ledger.transaction_types as t
    where t.name = transaction_type;
    if not found then
        return ledger.refusal('unknown_type', locked);
    elsif lot_source is null then
        return ledger.refusal('wrong_sign', locked);
    end if;
    select * into prior from public.credit_entries as e
    where e.account_id = account and e.kind = 'grant' and e.reference = grant_credits.reference;
    if found then
        return ledger.refusal(
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

-- A hold sets credits aside; a spend is a hold settled in the same breath.
create function ledger.charge(
    kind text, account uuid, credits bigint, reference text, transaction_type text, description text
) returns ledger.outcome language plpgsql set search_path = '' as $$
declare
    locked public.credit_accounts := ledger.lock_account(account);
    is_spend boolean := kind = 'spend';
    prior public.credit_holds;
    type_sign smallint := ledger.sign_of(transaction_type);
begin
    if locked.account_id is null then
        return ledger.refusal('unknown_account', locked);
    elsif type_sign is null then
        return ledger.refusal('unknown_type', locked);
    elsif type_sign > 0 then
        return ledger.refusal('wrong_sign', locked);
    end if;
    select * into prior from public.credit_holds as h
    where h.account_id = account and h.reference = charge.reference;
    if found then
        return ledger.refusal(
            case
                when prior.credits_placed = credits
                    and prior.transaction_type = charge.transaction_type
                    and exists (
                        select from public.credit_entries as e
                        where e.account_id = account and e.kind = charge.kind
                            and e.reference = charge.reference
                    )
                    then 'repeated'
                else 'conflicting'
            end, locked, prior.credits_placed);
    elsif locked.credits_available < credits then
        return ledger.refusal('insufficient', locked);
    end if;
    insert into public.credit_holds (
        account_id, reference, transaction_type, status, credits_placed, credits_spent, placed_at,
        closed_at
    ) values (
        account, reference, transaction_type, case when is_spend then 'settled' else 'held' end,
        credits, case when is_spend then credits else 0 end, clock_timestamp(),
        case when is_spend then clock_timestamp() end
    );
    perform ledger.take(account, reference, credits, is_spend);
    return ledger.append(
        account, kind, reference, transaction_type, -credits,
        case when is_spend then 0 else credits end, credits, null, reference, description);
end;
$$;

create function ledger.place_hold(
    account uuid, credits bigint, reference text, transaction_type text, description text default null
) returns ledger.outcome language sql security definer set search_path = '' as $$
    select ledger.charge('hold', account, credits, reference, transaction_type, description)
$$;

create function ledger.spend(
    account uuid, credits bigint, reference text, transaction_type text, description text default null
) returns ledger.outcome language sql security definer set search_path = '' as $$
    select ledger.charge('spend', account, credits, reference, transaction_type, description)
$$;

-- Closes a hold. What was spent stays spent, the rest returns to its lots: the ones that lapse first
-- are spent first.
create function ledger.close_hold(account uuid, reference text, new_status text, credits_spent bigint)
returns ledger.outcome language plpgsql set search_path = '' as $$
declare
    locked public.credit_accounts := ledger.lock_account(account);
    hold public.credit_holds;
    part record;
    credits_left bigint := credits_spent;
    part_spent bigint;
    kind text := case new_status when 'settled' then 'settle' else 'release' end;
    closed ledger.outcome;
begin
    if locked.account_id is null then
        return ledger.refusal('unknown_account', locked);
    end if;
    select * into hold from public.credit_holds as h
    where h.account_id = account and h.reference = close_hold.reference;
    if not found then
        return ledger.refusal('unknown_hold', locked);
    elsif hold.status <> 'held' then
        return ledger.refusal(
            case
                when hold.status <> new_status then 'closed_hold'
                when hold.credits_spent <> close_hold.credits_spent then 'conflicting'
                else 'repeated'
            end, locked, hold.credits_spent);
    elsif credits_spent > hold.credits_placed then
        return ledger.refusal('exceeds_hold', locked, hold.credits_placed);
    end if;
    for part in
        select p.lot_id, p.credits_placed
        from public.credit_hold_lots as p
        join public.credit_lots as l on l.account_id = p.account_id and l.id = p.lot_id
        where p.account_id = account and p.hold_reference = close_hold.reference
        order by l.lapses_at, l.id
    loop
        part_spent := least(part.credits_placed, credits_left);
        credits_left := credits_left - part_spent;
        update public.credit_hold_lots as p set credits_spent = part_spent
        where p.account_id = account and p.hold_reference = close_hold.reference
            and p.lot_id = part.lot_id and part_spent > 0;
        perform ledger.put_back(
            account, part.lot_id, part.credits_placed - part_spent, part.credits_placed);
    end loop;
    update public.credit_holds as h
    set status = new_status, credits_spent = close_hold.credits_spent, closed_at = clock_timestamp()
    where h.account_id = account and h.reference = close_hold.reference;
    closed := ledger.append(
        account, kind, reference, hold.transaction_type, hold.credits_placed - credits_spent,
        -hold.credits_placed, credits_spent, null, reference, null);
    if credits_spent < hold.credits_placed then
        closed.credits_available := closed.credits_available - ledger.pay_debts(account);
    end if;
    return closed;
end;
$$;

create function ledger.settle_hold(account uuid, reference text, credits_spent bigint)
returns ledger.outcome language sql security definer set search_path = '' as $$
    select ledger.close_hold(account, reference, 'settled', credits_spent)
$$;

create function ledger.release_hold(account uuid, reference text)
returns ledger.outcome language sql security definer set search_path = '' as $$
    select ledger.close_hold(account, reference, 'released', 0)
$$;

-- Gives back credits of a settled hold, to the same lots, the longest-lived first.
create function ledger.refund_charge(
    account uuid, hold_reference text, credits bigint, reference text, description text default null
) returns ledger.outcome
language plpgsql security definer set search_path = '' as $$
declare
    locked public.credit_accounts := ledger.lock_account(account);
    hold public.credit_holds;
    prior public.credit_entries;
    part record;
    credits_left bigint := credits;
    part_refunded bigint;
    refunded ledger.outcome;
begin
    if locked.account_id is null then
        return ledger.refusal('unknown_account', locked);
    elsif (credits > 0) is not true then
        raise exception 'a refund is of one credit at least' using errcode = 'check_violation';
    end if;
    select * into prior from public.credit_entries as e
    where e.account_id = account and e.kind = 'refund' and e.reference = refund_charge.reference;
    if found then
        return ledger.refusal(
            case
                when prior.credits_delta = credits
                    and prior.hold_reference = refund_charge.hold_reference then 'repeated'
                else 'conflicting'
            end, locked, prior.credits_delta);
    end if;
    select * into hold from public.credit_holds as h
    where h.account_id = account and h.reference = refund_charge.hold_reference;
    if not found then
        return ledger.refusal('unknown_hold', locked);
    elsif credits > hold.credits_spent - hold.credits_refunded then
        return ledger.refusal(
            'exceeds_charge', locked, hold.credits_spent - hold.credits_refunded);
    end if;
    for part in
        select p.lot_id, p.credits_spent - p.credits_refunded as credits_refundable
        from public.credit_hold_lots as p
        join public.credit_lots as l on l.account_id = p.account_id and l.id = p.lot_id
        where p.account_id = account and p.hold_reference = refund_charge.hold_reference
            and p.credits_spent > p.credits_refunded
        order by l.lapses_at desc, l.id desc
    loop
        part_refunded := least(part.credits_refundable, credits_left);
        update public.credit_hold_lots as p
        set credits_refunded = p.credits_refunded + part_refunded
        where p.account_id = account and p.hold_reference = refund_charge.hold_reference
            and p.lot_id = part.lot_id;
        perform ledger.put_back(account, part.lot_id, part_refunded, 0);
        credits_left := credits_left - part_refunded;
        exit when credits_left = 0;
    end loop;
    update public.credit_holds as h set credits_refunded = h.credits_refunded + credits
    where h.account_id = account and h.reference = refund_charge.hold_reference;
    refunded := ledger.append(
        account, 'refund', reference, 'refund', credits, 0, credits, null, hold_reference, description);
    refunded.credits_available := refunded.credits_available - ledger.pay_debts(account);
    return refunded;
end;
$$;

-- Sweeps accounts that have a lapsed lot. Accounts in use are left to their users, who do the same.
create function ledger.expire_lots(accounts_max integer)
returns table (accounts_swept bigint, credits_expired bigint)
language plpgsql security definer set search_path = '' as $$
declare
    account uuid;
begin
    accounts_swept := 0;
    credits_expired := 0;
    for account in
        select a.account_id from public.credit_accounts as a
        where a.next_lapse_at <= clock_timestamp()
        order by a.next_lapse_at
        limit accounts_max
        for no key update skip locked
    loop
        credits_expired := credits_expired + ledger.expire_due(account);
        accounts_swept := accounts_swept + 1;
    end loop;
    return next;
end;
$$;

create index credit_accounts_by_lapse on public.credit_accounts (next_lapse_at)
    where next_lapse_at is not null;

-- The documents' own function: a positive amount grants, a negative one spends. A positive amount of
-- type refund returns the charge with that reference to the lots it came from.
create function public.deduct_credits(
    account_id uuid, amount bigint, transaction_type text, reference text,
    description text default null
) returns ledger.outcome
language plpgsql security definer set search_path = '' as $$
declare
    type_sign smallint := ledger.sign_of(transaction_type);
    nobody public.credit_accounts;
begin
    if type_sign is null then
        return ledger.refusal('unknown_type', nobody);
    elsif sign(amount) <> type_sign then
        return ledger.refusal('wrong_sign', nobody);
    elsif transaction_type = 'refund' then
        return ledger.refund_charge(account_id, reference, amount, 'refund:' || reference, description);
    elsif amount > 0 then
        return ledger.grant_credits(
            account_id, amount, reference, transaction_type, null, description);
    else
        return ledger.charge('spend', account_id, -amount, reference, transaction_type, description);
    end if;
end;
$$;

-- Every way in which the books could disagree with themselves; no row means that they do not.
create function ledger.audit() returns table (
    account_id uuid, finding text, expected bigint, found bigint
) language sql stable security definer set search_path = '' as $$
    with entries as (
        select e.account_id, sum(e.credits_delta)::bigint as available, sum(e.held_delta)::bigint as held,
            count(*) as entries, max(e.position) as last_position
        from public.credit_entries as e group by e.account_id
    ), lots as (
        select l.account_id, sum(l.credits_available)::bigint as available,
            sum(l.credits_held)::bigint as held
        from public.credit_lots as l group by l.account_id
    ), holds as (
        select h.account_id, sum(h.credits_placed)::bigint as held
        from public.credit_holds as h where h.status = 'held' group by h.account_id
    ), parts as (
        select p.account_id, p.hold_reference, sum(p.credits_placed)::bigint as placed,
            sum(p.credits_spent)::bigint as spent, sum(p.credits_refunded)::bigint as refunded
        from public.credit_hold_lots as p group by p.account_id, p.hold_reference
    ), chain as (
        select e.account_id, e.position, e.balance_after, e.held_after, e.created_at,
            e.credits_delta + coalesce(lag(e.balance_after) over w, 0) as balance_expected,
            e.held_delta + coalesce(lag(e.held_after) over w, 0) as held_expected,
            lag(e.created_at) over w as previous_at
        from public.credit_entries as e
        window w as (partition by e.account_id order by e.position)
    ), lot_uses as (
        select p.account_id, p.lot_id,
            sum(p.credits_spent - p.credits_refunded)::bigint as spent,
            sum(case when h.status = 'held' then p.credits_placed else 0 end)::bigint as held
        from public.credit_hold_lots as p
        join public.credit_holds as h
            on h.account_id = p.account_id and h.reference = p.hold_reference
        group by p.account_id, p.lot_id
    ), lot_expiries as (
        select e.account_id, e.lot_id, sum(-e.credits_delta)::bigint as expired
        from public.credit_entries as e where e.kind = 'expire' group by e.account_id, e.lot_id
    ), findings as (
        select a.account_id, 'available is not the sum of the entries' as finding,
            coalesce(e.available, 0) as expected, a.credits_available as found
        from public.credit_accounts as a left join entries as e using (account_id)
        union all
        select a.account_id, 'held is not the sum of the entries', coalesce(e.held, 0), a.credits_held
        from public.credit_accounts as a left join entries as e using (account_id)
        union all
        select a.account_id, 'an entry is missing', a.entries_count, coalesce(e.entries, 0)
        from public.credit_accounts as a left join entries as e using (account_id)
        union all
        select a.account_id, 'positions have a gap', coalesce(e.entries, 0), coalesce(e.last_position, 0)
        from public.credit_accounts as a left join entries as e using (account_id)
        union all
        select a.account_id, 'available is not the sum of the lots', coalesce(l.available, 0),
            a.credits_available
        from public.credit_accounts as a left join lots as l using (account_id)
        union all
        select a.account_id, 'held is not the sum of the lots', coalesce(l.held, 0), a.credits_held
        from public.credit_accounts as a left join lots as l using (account_id)
        union all
        select a.account_id, 'held is not the sum of the open holds', coalesce(h.held, 0), a.credits_held
        from public.credit_accounts as a left join holds as h using (account_id)
        union all
        select c.account_id, 'a balance_after does not follow from the one before',
            c.balance_expected, c.balance_after
        from chain as c
        union all
        select c.account_id, 'a held_after does not follow from the one before',
            c.held_expected, c.held_after
        from chain as c
        union all
        select c.account_id, 'an entry is older than the one before', c.position - 1, c.position
        from chain as c where c.created_at < c.previous_at
        union all
        select h.account_id, 'the lots of a hold do not add up to it', h.credits_placed,
            coalesce(p.placed, 0)
        from public.credit_holds as h
        left join parts as p on p.account_id = h.account_id and p.hold_reference = h.reference
        union all
        select h.account_id, 'the lots of a charge do not add up to it',
            h.credits_spent - h.credits_refunded, coalesce(p.spent - p.refunded, 0)
        from public.credit_holds as h
        left join parts as p on p.account_id = h.account_id and p.hold_reference = h.reference
        union all
        select l.account_id, 'a lot does not account for what it granted', l.credits_granted,
            l.credits_available + l.credits_held + coalesce(u.spent, 0) + coalesce(x.expired, 0)
        from public.credit_lots as l
        left join lot_uses as u on u.account_id = l.account_id and u.lot_id = l.id
        left join lot_expiries as x on x.account_id = l.account_id and x.lot_id = l.id
        union all
        select l.account_id, 'a lot holds other than its holds say', coalesce(u.held, 0), l.credits_held
        from public.credit_lots as l
        left join lot_uses as u on u.account_id = l.account_id and u.lot_id = l.id
        union all
        select d.account_id, 'a debt was not paid from credits that were there', 0::bigint,
            sum(l.credits_available)::bigint
        from public.credit_debts as d
        join public.credit_lots as l on l.account_id = d.account_id and l.id <= d.position
        where d.credits_paid < d.credits_owed
        group by d.account_id, d.reference
        union all
        select d.account_id, 'the charge of a debt is not what was paid', d.credits_paid,
            coalesce(h.credits_spent, 0)
        from public.credit_debts as d
        left join public.credit_holds as h on h.account_id = d.account_id and h.reference = d.reference
    )
    select f.account_id, f.finding, f.expected, f.found from findings as f
    where f.expected is distinct from f.found
    order by f.account_id, f.finding
$$;

-- A user's first sight: account, membership and bonus, once, however many requests race.
create function private.first_sight(user_id uuid, account_name text, bonus_credits bigint)
returns uuid language plpgsql security definer set search_path = '' as $$
declare
    home uuid;
begin
    select s.account_id into home from public.sign_ups as s where s.user_id = first_sight.user_id;
    if found then
        return home;
    end if;
    insert into public.sign_ups (user_id, account_id) values (first_sight.user_id, gen_random_uuid())
    on conflict on constraint sign_ups_pkey do nothing
    returning account_id into home;
    if home is null then
        select s.account_id into home from public.sign_ups as s where s.user_id = first_sight.user_id;
        return home;
    end if;
    insert into public.accounts (id, name) values (home, account_name);
    insert into public.memberships (account_id, user_id, role) values (home, first_sight.user_id, 'owner');
    insert into public.credit_accounts (account_id) values (home);
    if bonus_credits > 0 then
        perform ledger.grant_credits(home, bonus_credits, 'signup:' || first_sight.user_id, 'signup_bonus');
    end if;
    return home;
end;
$$;

-- Reads for callers: one round trip sets the claims and answers under row level security ------------

-- Sets the claims for this transaction (by an assignment, which costs less than a query) and tells which account is meant: the chosen one, or the
-- caller's only one. Whether the caller may see it is for the policies to say.
create function caller.enter(claims text, chosen uuid) returns uuid
language plpgsql set search_path = '' as $$
declare
    mine uuid[];
begin
    claims := set_config('request.jwt.claims', claims, true);
    if chosen is not null then
        return chosen;
    end if;
    mine := array(select private.member_account_ids());
    return case when cardinality(mine) = 1 then mine[1] end;
end;
$$;

-- The one read that everybody makes all the time, so it is lean: one row instead of a set (a set costs
-- half as much again), one look at the memberships, and plans that need not be made anew. Without a
-- choice it takes what the policy lets through; accounts_count then tells whether a choice was needed.
create function caller.credit_balance(
    claims text, chosen uuid, out account_id uuid, out credits_available bigint,
    out credits_held bigint, out next_lapse_at timestamptz, out accounts_count bigint
) language plpgsql set search_path = '' as $$
begin
    claims := set_config('request.jwt.claims', claims, true);
    if chosen is null then
        select a.account_id, a.credits_available, a.credits_held, a.next_lapse_at, count(*) over ()
        into account_id, credits_available, credits_held, next_lapse_at, accounts_count
        from public.credit_accounts as a;
    else
        select a.account_id, a.credits_available, a.credits_held, a.next_lapse_at, 1
        into account_id, credits_available, credits_held, next_lapse_at, accounts_count
        from public.credit_accounts as a where a.account_id = chosen;
    end if;
    -- Credits are gone the moment they lapse, whenever the sweep writes them off.
    if next_lapse_at <= clock_timestamp() then
        select coalesce(sum(l.credits_available), 0), min(l.lapses_at)
        into credits_available, next_lapse_at
        from public.credit_lots as l
        where l.account_id = credit_balance.account_id and l.credits_available > 0
            and (l.lapses_at is null or l.lapses_at > clock_timestamp());
    end if;
end;
$$;

-- The same for many callers in one round trip, in the order asked: each has its own claims set before
-- its own look, and the policies answer each as if it were alone.
create function caller.credit_balances(claims text[], chosen uuid[])
returns table (
    account_id uuid, credits_available bigint, credits_held bigint, next_lapse_at timestamptz,
    accounts_count bigint
) language plpgsql set search_path = '' as $$
declare
    balance record;
begin
    for number in 1 .. cardinality(claims) loop
        -- Assigned rather than selected: an expression costs a fraction of a query.
        balance := caller.credit_balance(claims[number], chosen[number]);
        account_id := balance.account_id;
        credits_available := balance.credits_available;
        credits_held := balance.credits_held;
        next_lapse_at := balance.next_lapse_at;
        accounts_count := balance.accounts_count;
        return next;
    end loop;
end;
$$;

create function caller.credit_balance_at(
    claims text, chosen uuid, at timestamptz, out account_id uuid, out credits_available bigint,
    out credits_held bigint
) language plpgsql set search_path = '' as $$
declare
    account uuid := caller.enter(claims, chosen);
begin
    select a.account_id, coalesce(e.balance_after, 0), coalesce(e.held_after, 0)
    into account_id, credits_available, credits_held
    from public.credit_accounts as a
    left join lateral (
        select l.balance_after, l.held_after from public.credit_entries as l
        where l.account_id = account and l.created_at <= credit_balance_at.at
        order by l.created_at desc, l.position desc
        limit 1
    ) as e on true
    where a.account_id = account;
end;
$$;

-- Newest first; null means no bound. The first row is a header that exists when the account is visible,
-- so that an empty statement and a foreign account are told apart in the same round trip.
create function caller.credit_entries(
    claims text, chosen uuid, only_kind text, since timestamptz, until timestamptz,
    before_position bigint, entries_max integer
) returns setof public.credit_entries language plpgsql set search_path = '' as $$
declare
    account uuid := caller.enter(claims, chosen);
    first_position bigint := 1;
    last_position bigint := before_position - 1;
begin
    if not exists (select from public.credit_accounts as a where a.account_id = account) then
        return;
    end if;
    return next row(account, 0, '', '', '', 0, 0, 0, 0, null, null, null, null)::public.credit_entries;
    -- An account's entries are in order of time, so times become positions: any page costs the same.
    if since is not null then
        select e.position into first_position from public.credit_entries as e
        where e.account_id = account and e.created_at >= since
        order by e.created_at, e.position limit 1;
    end if;
    if until is not null then
        select least(e.position, last_position) into last_position from public.credit_entries as e
        where e.account_id = account and e.created_at < until
        order by e.created_at desc, e.position desc limit 1;
        last_position := coalesce(last_position, 0);
    end if;
    if only_kind is null then
        return query
        select * from public.credit_entries as e
        where e.account_id = account and e.position >= first_position
            and e.position <= coalesce(last_position, 9223372036854775807)
        order by e.position desc
        limit entries_max;
    else
        return query
        select * from public.credit_entries as e
        where e.account_id = account and e.kind = only_kind and e.position >= first_position
            and e.position <= coalesce(last_position, 9223372036854775807)
        order by e.position desc
        limit entries_max;
    end if;
end;
$$;

-- Who may execute what ------------------------------------------------------------------------------

do $$
declare
    routine regprocedure;
begin
    for routine in
        select p.oid::regprocedure from pg_proc as p
        where p.pronamespace = any (array[
                'ledger'::regnamespace::oid, 'caller'::regnamespace::oid
            ])
            or p.oid in (
                'public.deduct_credits(uuid, bigint, text, text, text)'::regprocedure::oid,
                'private.first_sight(uuid, text, bigint)'::regprocedure::oid
            )
    loop
        execute format(
            'revoke all on function %s from public, anon, authenticated, service_role', routine);
    end loop;
end;
$$;

grant execute on function
    ledger.grant_credits(uuid, bigint, text, text, timestamptz, text),
    ledger.place_hold(uuid, bigint, text, text, text),
    ledger.spend(uuid, bigint, text, text, text),
    ledger.settle_hold(uuid, text, bigint),
    ledger.release_hold(uuid, text),
    ledger.refund_charge(uuid, text, bigint, text, text),
    ledger.expire_lots(integer),
    ledger.audit(),
    public.deduct_credits(uuid, bigint, text, text, text),
    private.first_sight(uuid, text, bigint)
to service_role;

grant execute on function
    caller.enter(text, uuid),
    caller.credit_balance(text, uuid),
    caller.credit_balances(text[], uuid[]),
    caller.credit_balance_at(text, uuid, timestamptz),
    caller.credit_entries(text, uuid, text, timestamptz, timestamptz, bigint, integer)
to app_user;
