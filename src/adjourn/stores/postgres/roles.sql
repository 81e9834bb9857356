-- Three roles for those who share a store, and what the database itself lets each of them do. `adjourn store roles` runs this, as the
-- owner of the schemas; then give each login one of them: GRANT adjourn_worker TO ci.
--
-- adjourn_agent     is inside a run: it reads, asks, and hears the answer. It decides nothing and starts nothing, whatever it says.
-- adjourn_approver  decides: it settles asks, and queues what was decided. It runs nothing.
-- adjourn_worker    starts and runs: it says what became of calls, opens asks, takes answers from files. It approves nothing that was asked.

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

-- What a statement may say is a matter of rows, not of tables.

CREATE OR REPLACE FUNCTION adjourn.guard_ask() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.state != 'pending' AND OLD IS DISTINCT FROM NEW THEN
        RAISE insufficient_privilege USING MESSAGE = format('ask %s is settled', OLD.id);
    END IF;
    IF NEW.state IN ('approved', 'rejected', 'settled') AND NOT pg_has_role('adjourn_approver', 'MEMBER') THEN
        RAISE insufficient_privilege USING MESSAGE = format('%s may not decide', current_user);
    END IF;
    IF NEW.state IN ('answered', 'expired')
        AND NOT (pg_has_role('adjourn_approver', 'MEMBER') OR pg_has_role('adjourn_worker', 'MEMBER')) THEN
        RAISE insufficient_privilege USING MESSAGE = format('%s may not answer', current_user);
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION adjourn.guard_call() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.digest != NEW.digest AND NOT pg_has_role('adjourn_approver', 'MEMBER') THEN
        RAISE insufficient_privilege USING MESSAGE = format('%s may not change what is asked', current_user);
    END IF;
    IF TG_OP = 'UPDATE' AND OLD.state = 'pending' AND NEW.state IN ('approved', 'rejected')
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
        ('pending', 'withdrawn'), ('approved', 'withdrawn'), ('approved', 'claimed'), ('approved', 'executing'),
        ('claimed', 'executing'), ('executing', 'done'), ('executing', 'failed')
    ) THEN
        RAISE insufficient_privilege USING MESSAGE = format('%s may not move a call from %s to %s', current_user, OLD.state, NEW.state);
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION adjourn.guard_task() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE OR REPLACE TRIGGER guard BEFORE UPDATE ON adjourn.task FOR EACH ROW EXECUTE FUNCTION adjourn.guard_task();

DO $$
BEGIN
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        EXECUTE format('GRANT adjourn_approver, adjourn_worker TO %I', current_user);  -- the owner may do all, as before
    END IF;
END $$;
