-- Three roles for those who share a store, and what the database itself lets each of them do. `adjourn store roles` runs this, as the
-- owner of the schemas; then give each login one of them: GRANT adjourn_worker TO ci.
--
-- adjourn_agent     is inside a run: it reads, asks, and hears the answer. It decides nothing and starts nothing, whatever it says.
-- adjourn_approver  decides: it settles asks, and queues what was decided. It runs nothing.
-- adjourn_worker    starts and runs: it says what became of calls, opens asks, takes answers from files. It approves nothing that was asked.
--
-- Whoever has one of them speaks in the name of its own login, in asks and in the trail, and in that of no other.

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['adjourn_agent', 'adjourn_approver', 'adjourn_worker'] LOOP
        IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = name) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', name);
        END IF;
        EXECUTE format('GRANT USAGE ON SCHEMA adjourn, absurd TO %I', name);
        EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA adjourn, absurd TO %I', name);
        EXECUTE format('ALTER DEFAULT PRIVILEGES IN SCHEMA absurd GRANT SELECT ON TABLES TO %I', name);
        EXECUTE format('GRANT USAGE ON ALL SEQUENCES IN SCHEMA adjourn TO %I', name);
    END LOOP;
END $$;

GRANT INSERT ON adjourn.ask, adjourn.ask_body, adjourn.call, adjourn.call_body, adjourn.turn, adjourn.document, adjourn.message,
    adjourn.event TO adjourn_agent;
GRANT UPDATE ON adjourn.family, adjourn.task, adjourn.ask, adjourn.call, adjourn.turn TO adjourn_agent;
GRANT DELETE ON adjourn.document TO adjourn_agent;

GRANT INSERT ON adjourn.call, adjourn.call_body, adjourn.document, adjourn.shared_document, adjourn.event TO adjourn_approver;
GRANT UPDATE ON adjourn.family, adjourn.task, adjourn.task_spec, adjourn.ask, adjourn.call, adjourn.call_body, adjourn.turn,
    adjourn.shared_document TO adjourn_approver;
GRANT DELETE ON adjourn.document TO adjourn_approver;
GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA absurd TO adjourn_approver;
ALTER DEFAULT PRIVILEGES IN SCHEMA absurd GRANT INSERT, UPDATE, DELETE ON TABLES TO adjourn_approver;

GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA adjourn, absurd TO adjourn_worker;
REVOKE INSERT, UPDATE, DELETE ON adjourn.schema_version FROM adjourn_worker;
ALTER DEFAULT PRIVILEGES IN SCHEMA absurd GRANT INSERT, UPDATE, DELETE ON TABLES TO adjourn_worker;

-- What a statement may say is a matter of rows, not of tables. Each guard has a search_path of its own: whoever may make functions somewhere
-- could otherwise have it call theirs.

-- The owner of the tables may write any name: it moves whole stores, and nothing here could keep it from anything.
CREATE OR REPLACE FUNCTION adjourn.may_write_any(of_table oid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT pg_has_role(session_user, relowner, 'MEMBER') FROM pg_class WHERE oid = of_table
$$;

-- Refuses a name that is not that of the login who speaks, nor one that is no login's: a key, a webhook, a file, adjourn, the policy.
CREATE OR REPLACE FUNCTION adjourn.require_own_name(name text, of_table oid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF name IS NOT NULL AND (name = 'db:' || session_user OR name IN ('adjourn', 'policy') OR name ~ '^(key|webhook|file):') THEN
        RETURN;
    END IF;
    IF NOT adjourn.may_write_any(of_table) THEN
        RAISE insufficient_privilege USING MESSAGE = format('%s may not speak for %s', session_user, coalesce(name, 'nobody'));
    END IF;
END $$;

-- Returns whose doing an event was: the second text of its body, which is MessagePack. What is not written as we write it is nobody's.
CREATE OR REPLACE FUNCTION adjourn.author_of(body bytea) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    place integer := 1;
    tag integer;
    size integer;
BEGIN
    FOR i IN 1 .. 2 LOOP
        tag := get_byte(body, place);
        size := CASE WHEN tag BETWEEN 160 AND 191 THEN tag - 160 WHEN tag = 217 THEN get_byte(body, place + 1) END;
        place := place + CASE WHEN tag = 217 THEN 2 ELSE 1 END + size;
    END LOOP;
    IF get_byte(body, 0) != 148 OR size IS NULL THEN
        RAISE insufficient_privilege USING MESSAGE = 'this is no event of adjourn''s';
    END IF;
    RETURN convert_from(substring(body FROM place - size + 1 FOR size), 'UTF8');
END $$;

-- Refuses a decision that claims to be worth more than it is. That it is signed, L2, is looked into before anything starts.
CREATE OR REPLACE FUNCTION adjourn.require_true_level(ask adjourn.ask, of_table oid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    requester text := (
        SELECT adjourn.author_of(event.body) FROM adjourn.event WHERE event.task = ask.no >> 20 ORDER BY event.no LIMIT 1
    );
BEGIN
    IF adjourn.may_write_any(of_table) THEN
        RETURN;
    END IF;
    IF (ask.level = 'L1' AND (ask.settled_by NOT LIKE 'db:%' OR ask.settled_by IS NOT DISTINCT FROM requester))
        OR (ask.settled_by LIKE 'key:%' AND ask.level IS DISTINCT FROM 'L2') THEN
        RAISE insufficient_privilege USING MESSAGE = format('a decision by %s is not worth %s', ask.settled_by, ask.level);
    END IF;
END $$;

CREATE OR REPLACE FUNCTION adjourn.guard_ask() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.state != 'pending' AND OLD IS DISTINCT FROM NEW THEN
        RAISE insufficient_privilege USING MESSAGE = format('ask %s is settled', OLD.id);
    END IF;
    IF NEW.state != 'pending' THEN
        PERFORM adjourn.require_own_name(NEW.settled_by, TG_RELID);
        PERFORM adjourn.require_true_level(NEW, TG_RELID);
    END IF;
    IF NEW.state = 'rejected' AND NEW.settled_by = 'policy' THEN
        RETURN NEW;  -- whoever judges a call by the policy may turn it down
    END IF;
    IF NEW.state IN ('approved', 'rejected', 'settled')
        AND (NEW.settled_by IN ('adjourn', 'policy') OR NOT pg_has_role('adjourn_approver', 'MEMBER')) THEN
        RAISE insufficient_privilege USING MESSAGE = format('%s may not decide', current_user);
    END IF;
    IF NEW.state IN ('answered', 'expired')
        AND NOT (pg_has_role('adjourn_approver', 'MEMBER') OR pg_has_role('adjourn_worker', 'MEMBER')) THEN
        RAISE insufficient_privilege USING MESSAGE = format('%s may not answer', current_user);
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION adjourn.guard_event() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM adjourn.require_own_name(adjourn.author_of(NEW.body), TG_RELID);
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION adjourn.guard_call() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.digest != NEW.digest AND NOT pg_has_role('adjourn_approver', 'MEMBER') THEN
        RAISE insufficient_privilege USING MESSAGE = format('%s may not change what is asked', current_user);
    END IF;
    IF TG_OP = 'UPDATE' AND OLD.state = 'pending' AND NEW.state = 'approved'
        AND NOT pg_has_role('adjourn_approver', 'MEMBER') THEN
        RAISE insufficient_privilege USING MESSAGE = format('%s may not decide', current_user);
    END IF;
    IF pg_has_role('adjourn_approver', 'MEMBER') OR pg_has_role('adjourn_worker', 'MEMBER') THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'INSERT' AND NEW.state != 'pending' THEN
        RAISE insufficient_privilege USING MESSAGE = format('%s may ask, never decide', current_user);
    END IF;
    IF TG_OP = 'UPDATE' AND OLD.state != NEW.state AND (OLD.state, NEW.state) NOT IN (
        ('pending', 'withdrawn'), ('pending', 'rejected'), ('approved', 'withdrawn'), ('approved', 'claimed'),
        ('approved', 'executing'), ('claimed', 'executing'), ('executing', 'done'), ('executing', 'failed')
    ) THEN
        RAISE insufficient_privilege USING MESSAGE = format('%s may not move a call from %s to %s', current_user, OLD.state, NEW.state);
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION adjourn.guard_task() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT (pg_has_role('adjourn_approver', 'MEMBER') OR pg_has_role('adjourn_worker', 'MEMBER'))
        AND (OLD.id, OLD.family, OLD.state, OLD.pool, OLD.next_call, OLD.wish, OLD.engine_task, OLD.engine_run)
        IS DISTINCT FROM (NEW.id, NEW.family, NEW.state, NEW.pool, NEW.next_call, NEW.wish, NEW.engine_task, NEW.engine_run) THEN
        RAISE insufficient_privilege USING MESSAGE = format('%s may not move a task', current_user);
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER guard BEFORE INSERT OR UPDATE ON adjourn.ask FOR EACH ROW EXECUTE FUNCTION adjourn.guard_ask();
CREATE OR REPLACE TRIGGER guard BEFORE INSERT OR UPDATE ON adjourn.call FOR EACH ROW EXECUTE FUNCTION adjourn.guard_call();
CREATE OR REPLACE TRIGGER guard BEFORE INSERT ON adjourn.event FOR EACH ROW EXECUTE FUNCTION adjourn.guard_event();
CREATE OR REPLACE TRIGGER guard BEFORE UPDATE ON adjourn.task FOR EACH ROW EXECUTE FUNCTION adjourn.guard_task();

DO $$
BEGIN
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        EXECUTE format('GRANT adjourn_approver, adjourn_worker TO %I', current_user);  -- the owner may do all, as before
    END IF;
END $$;
