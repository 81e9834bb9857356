-- Four roles for those who share a store, and what the database itself lets each of them do. `adjourn store roles` runs this, as the
-- owner of the schemas; then give each login one of them: GRANT adjourn_worker TO ci.
--
-- adjourn_agent     is inside a run: it reads, asks, and hears the answer. It decides nothing and starts nothing, whatever it says.
-- adjourn_approver  decides: it settles asks, and queues what was decided. It runs nothing.
-- adjourn_worker    starts and runs: it records how calls ended, opens asks, takes answers from files. It approves nothing that was asked.
-- adjourn_server    is an approver that speaks for others: for people whom it has logged in itself, by browser, chat, link or token.
--
-- A login with one of the other roles writes in its own name only, in asks, calls and the trail.

-- No login writes to a table: all writes go through the functions of schema_2.sql, which run as the owner and are granted one by one, and through
-- the guards below, which look at each row and at the login. So no login locks a table or a row either, other than by such a function.

-- --- tables ---------------------------------------------------------------------------------------------------------------

-- By this secret of the store a process proves of which task it is: adjourn.run_key. Nobody but the owner can read it.
CREATE TABLE IF NOT EXISTS adjourn.secret (body bytea NOT NULL);
INSERT INTO adjourn.secret (body) SELECT sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8'))
WHERE NOT EXISTS (SELECT 1 FROM adjourn.secret);

DO $$
DECLARE
    name text;
    owner text := (SELECT nspowner::regrole FROM pg_namespace WHERE nspname = 'adjourn');
BEGIN
    EXECUTE format('ALTER TABLE adjourn.secret OWNER TO %s', owner);
    FOREACH name IN ARRAY ARRAY['adjourn_agent', 'adjourn_approver', 'adjourn_worker'] LOOP
        IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = name) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', name);
        END IF;
        EXECUTE format('GRANT USAGE ON SCHEMA adjourn, absurd TO %I', name);
        EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA adjourn, absurd FROM PUBLIC, %I', name);  -- what an older version let it do
        EXECUTE format('REVOKE ALL ON ALL SEQUENCES IN SCHEMA adjourn FROM PUBLIC, %I', name);
        EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA adjourn FROM PUBLIC, %I', name);
        EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA adjourn, absurd TO %I', name);
        EXECUTE format('REVOKE ALL ON adjourn.secret, adjourn.lock FROM %I', name);
        -- The queues that are still to come: it is the owner of the schemas who makes them.
        EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %s IN SCHEMA absurd REVOKE ALL ON TABLES FROM %I', owner, name);
        EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %s IN SCHEMA absurd GRANT SELECT ON TABLES TO %I', owner, name);
    END LOOP;
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'adjourn_server') THEN
        CREATE ROLE adjourn_server NOLOGIN IN ROLE adjourn_approver;
    END IF;
END $$;

-- --- functions ------------------------------------------------------------------------------------------------------------

-- Has a function run as the owner, for those who may call it: some letters of agent, approver (the p) and worker.
CREATE OR REPLACE FUNCTION adjourn.restrict(function_name text, who text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    found regprocedure := format('adjourn.%I', function_name)::regproc;
BEGIN
    EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = pg_catalog, pg_temp', found);
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', found);
    IF who LIKE '%a%' THEN
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO adjourn_agent', found);
    END IF;
    IF who LIKE '%p%' THEN
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO adjourn_approver', found);
    END IF;
    IF who LIKE '%w%' THEN
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO adjourn_worker', found);
    END IF;
END $$;
REVOKE ALL ON FUNCTION adjourn.restrict (text, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION adjourn.restrict_queue_functions(queue text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    tasks text := 't_' || queue;
BEGIN
    PERFORM adjourn.restrict('enqueue_' || queue, 'pw'), adjourn.restrict('dequeue_' || queue, 'pw'),
        adjourn.restrict('hold_' || queue, 'w'), adjourn.restrict('fence_' || queue, 'w');
    EXECUTE format('DROP TRIGGER IF EXISTS guard ON absurd.%I', tasks);
    EXECUTE format('DROP TRIGGER IF EXISTS guard_leaving ON absurd.%I', tasks);
    EXECUTE format('CREATE CONSTRAINT TRIGGER guard AFTER INSERT ON absurd.%I DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION adjourn.guard_queue()', tasks);
    EXECUTE format('CREATE CONSTRAINT TRIGGER guard_leaving AFTER DELETE ON absurd.%I DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW WHEN (NOT adjourn.speaks_as(''adjourn_worker'')) EXECUTE FUNCTION adjourn.guard_queue()', tasks);
END $$;
REVOKE ALL ON FUNCTION adjourn.restrict_queue_functions (text) FROM PUBLIC;

-- Returns what a process of a task has to show to write for it with an agent's login; a worker hands it to the processes that it starts.
CREATE OR REPLACE FUNCTION adjourn.run_key(task_id text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT encode(sha256(body || sha256(convert_to(task_id, 'UTF8'))), 'hex') FROM adjourn.secret
$$;

SELECT adjourn.restrict(function_name, who) FROM (VALUES
    ('lock_families', 'apw'), ('seal_events', 'apw'), ('write_task', 'apw'), ('write_head', 'apw'), ('add_call', 'apw'),
    ('write_call', 'apw'), ('write_ask', 'apw'), ('add_document', 'apw'), ('drop_document', 'apw'),
    ('add_ask', 'aw'), ('add_turn', 'aw'), ('close_turn', 'aw'),
    ('write_spec', 'pw'), ('write_run', 'pw'), ('write_call_body', 'pw'), ('lock_expired_asks', 'pw'), ('lock_asks_to_remind', 'w'), ('made_queue', 'pw'),
    ('lock_shared_document', 'pw'), ('keep_shared_document', 'pw'),
    ('add_task', 'w'), ('add_run', 'w'), ('guard', 'w'), ('add_message', 'w'), ('save_outbox', 'w'), ('forget_task', 'w'),
    ('appear', 'w'), ('leave', 'w'), ('clean_up', 'w'), ('put_back', 'w'), ('wrest', 'w'), ('taken', 'w'), ('leave_to_others', 'w'),
    ('beat', 'w'), ('run_key', 'w'), ('require_schema', 'w'),
    ('write_ask_body', ''), ('wait_for', ''), ('enqueue', ''), ('retire', ''), ('is_held', ''), ('repair', ''), ('take_next', ''),
    ('make_queue_functions', ''), ('check_queue', '')
) AS granted (function_name, who);
-- What only reads runs as its caller.
GRANT EXECUTE ON FUNCTION adjourn.queue_of (text), adjourn.lease_end (text, uuid), adjourn.tasks_named (text[], text[]), adjourn.field (bytea, text)
TO adjourn_agent, adjourn_approver, adjourn_worker;

-- --- rows -----------------------------------------------------------------------------------------------------------------
-- What a statement may write depends on rows, not on tables. Each guard has a search_path of its own: a login that may create functions
-- somewhere could otherwise make it call those.

-- Returns whether the login has a role; no SET ROLE changes that, nor a function that runs as its owner.
CREATE OR REPLACE FUNCTION adjourn.speaks_as(role name) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT pg_has_role(session_user, role, 'MEMBER')
$$;

CREATE OR REPLACE FUNCTION adjourn.is_agent_only() RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT NOT (adjourn.speaks_as('adjourn_approver') OR adjourn.speaks_as('adjourn_worker'))
$$;

-- The owner of the tables may write any name: it moves whole stores, and nothing here could keep it from anything.
CREATE OR REPLACE FUNCTION adjourn.may_write_any(of_table oid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT pg_has_role(session_user, relowner, 'MEMBER') FROM pg_class WHERE oid = of_table
$$;

CREATE OR REPLACE FUNCTION adjourn.refuse(words text, VARIADIC said text[] DEFAULT '{}') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE insufficient_privilege USING MESSAGE = format(words, VARIADIC said);
END $$;

-- Refuses a name that is not that of the login who speaks, nor one that is no login's: adjourn, the policy; of those who decide a key or a
-- webhook, of a server those whom it has logged in, and a file or an agent that speaks MCP through the login.
CREATE OR REPLACE FUNCTION adjourn.require_own_name(name text, of_table oid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(
        name = 'db:' || session_user OR name IN ('adjourn', 'policy')
        OR (name ~ '^(key|passkey|webhook):' AND adjourn.speaks_as('adjourn_approver'))
        OR (name ~ '^(web|telegram|slack|token|link):' AND adjourn.speaks_as('adjourn_server'))
        OR (name ~ '^(agent|file):' AND NOT adjourn.is_agent_only()),
        false
    ) OR adjourn.may_write_any(of_table) THEN
        RETURN;
    END IF;
    PERFORM adjourn.refuse('%s may not speak for %s', session_user, coalesce(name, 'nobody'));
END $$;

-- Returns what an event was, whose doing, and when: the first texts and the number of its body, which is MessagePack. What is not written as we
-- write it is nobody's, and happened at no time.
CREATE OR REPLACE FUNCTION adjourn.head_of(body bytea, OUT texts text[], OUT moment bigint) LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    place integer := 1;
    tag integer;
    size integer;
BEGIN
    texts := '{}';
    IF get_byte(body, 0) != 148 THEN
        PERFORM adjourn.refuse('this is no event of adjourn''s');
    END IF;
    FOR i IN 1 .. 2 LOOP
        tag := get_byte(body, place);
        size := CASE WHEN tag BETWEEN 160 AND 191 THEN tag - 160 WHEN tag = 217 THEN get_byte(body, place + 1) END;
        IF size IS NULL THEN
            PERFORM adjourn.refuse('this is no event of adjourn''s');
        END IF;
        place := place + CASE WHEN tag = 217 THEN 2 ELSE 1 END + size;
        texts := texts || convert_from(substring(body FROM place - size + 1 FOR size), 'UTF8');
    END LOOP;
    IF length(body) > place + 8 AND get_byte(body, place) = 207 AND get_byte(body, place + 1) < 128 THEN
        moment := ('x' || encode(substring(body FROM place + 2 FOR 8), 'hex'))::bit(64)::bigint;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION adjourn.texts_of(body bytea) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT texts FROM adjourn.head_of(body)
$$;

-- Returns who asked for a task.
CREATE OR REPLACE FUNCTION adjourn.requester_of(task_no bigint) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT (adjourn.texts_of(body))[2] FROM adjourn.event WHERE task = task_no ORDER BY no LIMIT 1
$$;

-- Refuses a decision that claims to be worth more than it is. That it is signed, L2, is looked into before anything starts.
CREATE OR REPLACE FUNCTION adjourn.require_true_level(ask adjourn.ask, of_table oid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF adjourn.may_write_any(of_table) THEN
        RETURN;
    END IF;
    -- Whom a server logged in is worth no more than the server's own login
    IF (ask.level = 'L1' AND (ask.settled_by !~ '^(db|web|telegram|slack|token):' OR 'db:' || session_user = adjourn.requester_of(ask.no >> 20)))
        OR (ask.settled_by ~ '^(key|passkey):' AND ask.level IS DISTINCT FROM 'L2') THEN
        PERFORM adjourn.refuse('a decision by %s is not worth %s', ask.settled_by, ask.level);
    END IF;
END $$;

-- An agent has a say only in its own task, and while that runs: what waits, is to be started, or belongs to others is not for it to touch.
CREATE OR REPLACE FUNCTION adjourn.require_running(task_no bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    task adjourn.task;
BEGIN
    -- Any other transaction sees what was so when it began: the run may have ended since.
    IF current_setting('transaction_isolation') != 'read committed' THEN
        PERFORM adjourn.refuse('%s may write in transactions that are READ COMMITTED, and in no others', session_user);
    END IF;
    SELECT * INTO task FROM adjourn.task WHERE no = task_no;
    IF task.state IS DISTINCT FROM 'running' THEN
        PERFORM adjourn.refuse('%s has a say only in what runs', session_user);
    END IF;
    IF current_setting('adjourn.key', true) IS DISTINCT FROM adjourn.run_key(task.id) THEN
        PERFORM adjourn.refuse('%s has a say only in the task that it runs in, and has not shown the key of task %s', session_user, task.id);
    END IF;
END $$;

-- An agent locks its own task and no other.
CREATE OR REPLACE FUNCTION adjourn.lock_families(families bigint[]) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF adjourn.is_agent_only() AND NOT EXISTS (
        SELECT 1 FROM adjourn.task WHERE family = ALL(families) AND state = 'running'
            AND current_setting('adjourn.key', true) = adjourn.run_key(id)
    ) THEN
        PERFORM adjourn.refuse('%s has a say only in the task that it runs in', session_user);
    END IF;
    PERFORM 1 FROM adjourn.family WHERE no = ANY(families) ORDER BY no FOR UPDATE;
END $$;

-- Everybody waits for the login that writes to the trail; that is the last thing a transaction does. A login that holds it and does not commit is cut
-- off: an agent's after five seconds, another's when it has been silent for ten. Where the owner may end no connections, it is named.
CREATE OR REPLACE FUNCTION adjourn.wait_for(lock_name text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    patience text := current_setting('lock_timeout');
BEGIN
    PERFORM 1 FROM adjourn.lock WHERE name = lock_name FOR UPDATE SKIP LOCKED;
    WHILE NOT FOUND LOOP
        BEGIN
            PERFORM set_config('lock_timeout', '5s', true);
            PERFORM 1 FROM adjourn.lock WHERE name = lock_name FOR UPDATE;
            PERFORM set_config('lock_timeout', patience, true);
            RETURN;
        EXCEPTION WHEN lock_not_available THEN
            PERFORM adjourn.cut_off(lock_name);
        END;
        PERFORM 1 FROM adjourn.lock WHERE name = lock_name FOR UPDATE SKIP LOCKED;
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION adjourn.cut_off(lock_name text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    holder record;
    is_agent boolean;
BEGIN
    SELECT activity.pid, activity.usename, activity.state, clock_timestamp() - activity.state_change AS silence INTO holder
    FROM pg_locks JOIN pg_stat_activity AS activity ON activity.pid = pg_locks.pid
    WHERE locktype = 'transactionid' AND granted AND transactionid = (SELECT xmax FROM adjourn.lock WHERE name = lock_name);
    IF holder.pid IS NULL THEN
        RETURN;  -- it has gone meanwhile
    END IF;
    -- Without pg_read_all_stats the owner is not told whether another login is silent: the login that waits is told instead.
    IF holder.state IS NULL THEN
        RAISE insufficient_privilege;
    END IF;
    is_agent := NOT pg_has_role(holder.usename, 'adjourn_approver', 'MEMBER') AND NOT pg_has_role(holder.usename, 'adjourn_worker', 'MEMBER');
    IF is_agent OR holder.state LIKE 'idle in transaction%' AND holder.silence > interval '10 seconds' THEN
        PERFORM pg_terminate_backend(holder.pid, 5000);
    END IF;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE lock_not_available USING
        MESSAGE = format('the login %s keeps everybody waiting; as a superuser: SELECT pg_terminate_backend(%s)', holder.usename, holder.pid);
END $$;
REVOKE ALL ON FUNCTION adjourn.cut_off (text) FROM PUBLIC;

-- An approver queues what waits, and takes out what is queued and has not started.
CREATE OR REPLACE FUNCTION adjourn.check_queue(verb text, task_no bigint, engine_task uuid) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    task adjourn.task;
BEGIN
    IF NOT adjourn.speaks_as('adjourn_worker') THEN
        SELECT * INTO task FROM adjourn.task WHERE no = task_no;
        IF (verb = 'enqueue' AND task.state IN ('waiting', 'paused')
            OR verb = 'dequeue' AND task.state = 'queued' AND task.engine_task = check_queue.engine_task) IS NOT TRUE THEN
            PERFORM adjourn.refuse('%s may queue what was decided, and nothing else', session_user);
        END IF;
    END IF;
END $$;

-- A row of a queue is that of a task which is queued or runs, in the queue of its pool. It is checked at the end, when both are written. Any other row
-- would keep workers busy for ever, and a task that lost its row would never start.
CREATE OR REPLACE FUNCTION adjourn.guard_queue() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    task_no bigint := (CASE TG_OP WHEN 'DELETE' THEN OLD.params ELSE NEW.params END ->> 'task')::bigint;
    engine_id uuid := CASE TG_OP WHEN 'DELETE' THEN OLD.task_id ELSE NEW.task_id END;
    is_told boolean := EXISTS (
        SELECT 1 FROM adjourn.task
        WHERE no = task_no AND engine_task = engine_id AND 't_' || adjourn.queue_of(pool) = TG_TABLE_NAME
    );
    is_there boolean;
BEGIN
    IF is_told != (TG_OP = 'INSERT') AND NOT adjourn.may_write_any(TG_RELID) THEN
        EXECUTE format('SELECT EXISTS (SELECT 1 FROM absurd.%I WHERE task_id = $1)', TG_TABLE_NAME) INTO is_there USING engine_id;
        IF is_told != is_there THEN
            PERFORM adjourn.refuse('%s may queue what was decided, in the queue of its pool, and nothing else', session_user);
        END IF;
    END IF;
    RETURN NULL;
END $$;

-- The other side: an approver says of no task that it is in the place of another, and leaves none behind in a queue.
CREATE OR REPLACE FUNCTION adjourn.guard_queued() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    task adjourn.task;
    is_there boolean := true;
    is_left boolean := false;
BEGIN
    SELECT * INTO task FROM adjourn.task WHERE no = NEW.no;
    IF task.engine_task IS NOT NULL OR task.engine_run IS NOT NULL THEN
        EXECUTE format(
            'SELECT EXISTS (SELECT 1 FROM absurd.%I AS t JOIN absurd.%I AS r USING (task_id)
                WHERE task_id = $1 AND run_id = $2 AND (t.params ->> ''task'')::bigint = $3)',
            't_' || adjourn.queue_of(task.pool), 'r_' || adjourn.queue_of(task.pool)
        ) INTO is_there USING task.engine_task, task.engine_run, task.no;
    END IF;
    IF OLD.engine_task IS DISTINCT FROM task.engine_task AND OLD.engine_task IS NOT NULL THEN
        EXECUTE format('SELECT EXISTS (SELECT 1 FROM absurd.%I WHERE task_id = $1)', 't_' || adjourn.queue_of(task.pool))
        INTO is_left USING OLD.engine_task;
    END IF;
    IF (is_left OR NOT is_there) AND NOT adjourn.may_write_any(TG_RELID) THEN
        PERFORM adjourn.refuse('%s may queue what was decided, in the queue of its pool, and nothing else', session_user);
    END IF;
    RETURN NULL;
END $$;

SELECT adjourn.restrict_queue_functions(queue_name) FROM absurd.queues WHERE queue_name LIKE 'adjourn\_%';

-- Says whether a time is that of the database's clock, which the program goes by; a minute is left for those who waited before they wrote.
CREATE OR REPLACE FUNCTION adjourn.is_now(moment bigint) RETURNS boolean LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(abs(moment - extract(epoch FROM clock_timestamp()) * 1000) <= 60000, false)
$$;

-- Nobody decides later than they may, or has an ask expire earlier than it does, by writing another time.
CREATE OR REPLACE FUNCTION adjourn.require_in_time(ask adjourn.ask) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    late numeric := extract(epoch FROM clock_timestamp()) * 1000 - ask.expires_at;  -- milliseconds
BEGIN
    IF NOT adjourn.is_now(ask.settled_at) THEN
        PERFORM adjourn.refuse('the database does not have the time at which ask %s is said to be settled', ask.id);
    END IF;
    IF late > 60000 AND ask.state IN ('approved', 'rejected', 'answered', 'settled') AND ask.settled_by IS DISTINCT FROM 'policy' THEN
        PERFORM adjourn.refuse('ask %s has expired', ask.id);
    END IF;
    IF ask.state = 'expired' AND (late IS NULL OR late < -60000) THEN
        PERFORM adjourn.refuse('ask %s has not expired', ask.id);
    END IF;
END $$;

-- Of several approvals that an ask needs, each login gives its own, once, behind those that are there; or the first one, where an edit has made
-- those before it void. guard_told checks at the end that all are for the bytes of the call.
CREATE OR REPLACE FUNCTION adjourn.require_own_given(was text, ask adjourn.ask, of_table oid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    old jsonb := was::jsonb;
    now jsonb := ask.given::jsonb;
    own jsonb := now -> -1;
BEGIN
    IF jsonb_typeof(now) IS DISTINCT FROM 'array' OR own IS NULL OR NOT (now - -1 IN (old, '[]'::jsonb))
        OR (now - -1) @> jsonb_build_array(jsonb_build_object('by', own -> 'by'))
        OR (now - -1) @> jsonb_build_array(jsonb_build_object('person', own -> 'person'))
        OR own ->> 'by' IS NULL OR own ->> 'person' IS NULL OR own ->> 'digest' IS NULL THEN
        PERFORM adjourn.refuse('%s may add its own approval to ask %s, once, and nothing else', session_user, ask.id);
    END IF;
    IF own ->> 'by' ~ '^(adjourn$|policy$|file:)' OR NOT adjourn.speaks_as('adjourn_approver') THEN
        PERFORM adjourn.refuse('%s may not decide', session_user);
    END IF;
    PERFORM adjourn.require_own_name(own ->> 'by', of_table);
    ask.settled_by := own ->> 'by';
    ask.level := own ->> 'level';
    ask.settled_at := (own ->> 'at')::bigint;
    IF ask.state = 'pending' THEN
        ask.state := 'approved';
    END IF;
    PERFORM adjourn.require_true_level(ask, of_table), adjourn.require_in_time(ask);
END $$;

CREATE OR REPLACE FUNCTION adjourn.guard_ask() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    was_given text := CASE TG_OP WHEN 'UPDATE' THEN OLD.given ELSE '[]' END;
BEGIN
    IF adjourn.may_write_any(TG_RELID) THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'UPDATE' AND OLD.state != 'pending' AND OLD IS DISTINCT FROM NEW AND NOT (
        -- What was approved is not what would start any more: it must be asked for again. That is done by a worker, or
        -- by the process that a call would be handed to; guard_told checks that an agent takes back the call, too.
        (OLD.state, NEW.state, NEW.settled_by) = ('approved', 'withdrawn', 'policy')
        AND (adjourn.speaks_as('adjourn_worker') OR adjourn.is_agent_only())
    ) THEN
        PERFORM adjourn.refuse('ask %s is settled', OLD.id);
    END IF;
    IF TG_OP = 'UPDATE' AND (OLD.no, OLD.id, OLD.kind, OLD.run, OLD.created_at, OLD.slot, OLD.call, OLD.expires_at, OLD.approvals)
        IS DISTINCT FROM (NEW.no, NEW.id, NEW.kind, NEW.run, NEW.created_at, NEW.slot, NEW.call, NEW.expires_at, NEW.approvals)
        -- The login that sends a reminder of an ask removes that reminder, once.
        OR TG_OP = 'UPDATE' AND OLD.remind_at IS DISTINCT FROM NEW.remind_at
        AND (NEW.remind_at IS NOT NULL OR NOT adjourn.speaks_as('adjourn_worker')) THEN
        PERFORM adjourn.refuse('%s may not change what is asked', session_user);
    END IF;
    IF NEW.given != was_given THEN
        PERFORM adjourn.require_own_given(was_given, NEW, TG_RELID);
    END IF;
    IF adjourn.is_agent_only() THEN
        PERFORM adjourn.require_running(NEW.no >> 20);
        IF TG_OP = 'UPDATE' AND NEW.state = 'pending' THEN
            PERFORM adjourn.refuse('%s may not change what is asked', session_user);
        END IF;
        -- It chooses how long its own ask is open: never in the past, and at most for a year.
        IF TG_OP = 'INSERT' AND (NEW.expires_at < NEW.created_at OR NEW.expires_at > NEW.created_at + 366 * 86400000::bigint) THEN
            PERFORM adjourn.refuse('ask %s is open for no time, or for more than a year', NEW.id);
        END IF;
    END IF;
    IF NEW.state != 'pending' THEN
        PERFORM adjourn.require_own_name(NEW.settled_by, TG_RELID);
        PERFORM adjourn.require_true_level(NEW, TG_RELID);
        IF TG_OP = 'INSERT' OR OLD.state != NEW.state THEN
            PERFORM adjourn.require_in_time(NEW);
        END IF;
    END IF;
    IF NEW.state = 'pending' AND (NEW.settled_by IS NOT NULL OR NEW.level IS NOT NULL) THEN
        PERFORM adjourn.refuse('ask %s is settled by nobody', NEW.id);
    END IF;
    IF TG_OP = 'INSERT' AND NOT adjourn.is_now(NEW.created_at) THEN
        PERFORM adjourn.refuse('the database does not have the time at which ask %s is said to be opened', NEW.id);
    END IF;
    IF NEW.state = 'rejected' AND NEW.settled_by = 'policy' THEN
        RETURN NEW;  -- a login that judges a call by the policy may reject it
    END IF;
    IF NEW.state IN ('approved', 'rejected', 'settled')
        AND (NEW.settled_by ~ '^(adjourn$|policy$|file:)' OR NOT adjourn.speaks_as('adjourn_approver')) THEN
        PERFORM adjourn.refuse('%s may not decide', session_user);
    END IF;
    IF NEW.state IN ('answered', 'expired') AND adjourn.is_agent_only()
        OR NEW.state = 'answered' AND NEW.settled_by IN ('adjourn', 'policy') THEN
        PERFORM adjourn.refuse('%s may not answer', session_user);
    END IF;
    RETURN NEW;
END $$;

-- A decision has its event in the same transaction, by the same name. It is looked into at the end: the trail is written last.
CREATE OR REPLACE FUNCTION adjourn.guard_told() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NEW.state != OLD.state AND NOT adjourn.may_write_any(TG_RELID) AND NOT EXISTS (
        SELECT 1 FROM adjourn.event WHERE task = NEW.no >> 20 AND xmin = pg_current_xact_id()::xid AND body IS NOT NULL
            AND adjourn.texts_of(body) = ARRAY['ask_' || NEW.state, NEW.settled_by]
            AND position(convert_to(NEW.id, 'UTF8') IN body) > 0
    ) THEN
        PERFORM adjourn.refuse('%s may not settle ask %s without an event of the trail', session_user, NEW.id);
    END IF;
    IF NEW.given != OLD.given AND NOT adjourn.may_write_any(TG_RELID) AND NOT EXISTS (
        SELECT 1 FROM adjourn.event WHERE task = NEW.no >> 20 AND xmin = pg_current_xact_id()::xid AND body IS NOT NULL
            AND adjourn.texts_of(body) = ARRAY['approval_given', NEW.given::jsonb -> -1 ->> 'by']
            AND position(convert_to(NEW.id, 'UTF8') IN body) > 0
    ) THEN
        PERFORM adjourn.refuse('%s may not approve ask %s without an event of the trail', session_user, NEW.id);
    END IF;
    -- What settles an ask that needs several approvals is the last of them, and each is for the bytes that would run.
    IF NOT adjourn.may_write_any(TG_RELID) AND (NEW.given != OLD.given OR NEW.state != OLD.state AND NEW.state = 'approved') AND (
        EXISTS (
            SELECT 1 FROM jsonb_array_elements(NEW.given::jsonb) AS each WHERE NOT EXISTS (
                SELECT 1 FROM adjourn.call WHERE no = ((NEW.no >> 20) << 20) + NEW.call AND encode(digest, 'hex') = each ->> 'digest'
            )
        )
        -- Only an edit takes approvals away.
        OR jsonb_array_length(NEW.given::jsonb) <= jsonb_array_length(OLD.given::jsonb) AND NEW.given != OLD.given AND EXISTS (
            SELECT 1 FROM jsonb_array_elements(OLD.given::jsonb) AS each
            JOIN adjourn.call ON no = ((NEW.no >> 20) << 20) + NEW.call AND encode(digest, 'hex') = each ->> 'digest'
        )
        OR NEW.state = 'approved' AND NEW.approvals > 1 AND (
            NEW.settled_by IS DISTINCT FROM NEW.given::jsonb -> -1 ->> 'by'
            OR (SELECT count(DISTINCT each ->> 'by') < NEW.approvals OR count(DISTINCT each ->> 'person') < NEW.approvals
                FROM jsonb_array_elements(NEW.given::jsonb) AS each)
        )
    ) THEN
        PERFORM adjourn.refuse('ask %s needs %s approvals of what would run, by as many people', NEW.id, NEW.approvals::text);
    END IF;
    IF OLD.state = 'approved' AND adjourn.is_agent_only() AND NOT EXISTS (
        SELECT 1 FROM adjourn.call WHERE no = ((NEW.no >> 20) << 20) + NEW.call AND state = 'withdrawn'
    ) THEN
        PERFORM adjourn.refuse('%s may not take back the approval of a call that it has not taken back', session_user);
    END IF;
    RETURN NULL;
END $$;

-- A call goes on by a decision on its ask in the same transaction, by the same name; one that may have run, by a word on that.
CREATE OR REPLACE FUNCTION adjourn.guard_decided() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    settled text := CASE OLD.state WHEN 'pending' THEN 'approved' WHEN 'uncertain' THEN 'settled' END;
BEGIN
    -- One of several who approve may edit what the others have still to approve, and says so.
    IF OLD.state = 'pending' AND NEW.state = 'pending' AND NEW.digest != OLD.digest AND NOT adjourn.may_write_any(TG_RELID)
        AND NOT EXISTS (
            SELECT 1 FROM adjourn.event WHERE task = NEW.no >> 20 AND xmin = pg_current_xact_id()::xid AND body IS NOT NULL
                AND (adjourn.texts_of(body))[1] = 'call_edited' AND position(convert_to(encode(NEW.digest, 'hex'), 'UTF8') IN body) > 0
        ) THEN
        PERFORM adjourn.refuse('%s may not change what is asked', session_user);
    END IF;
    IF NEW.state = OLD.state OR settled IS NULL OR OLD.state = 'pending' AND NEW.state != 'approved'
        OR adjourn.may_write_any(TG_RELID) THEN
        RETURN NULL;
    END IF;
    IF NOT EXISTS (
        SELECT 1 FROM adjourn.ask WHERE no BETWEEN (NEW.no >> 20) << 20 AND ((NEW.no >> 20) << 20) + 1048575
            AND xmin = pg_current_xact_id()::xid AND state = settled
            AND (settled = 'settled' OR call = NEW.no & 1048575 AND settled_by = NEW.approved_by)
    ) THEN
        PERFORM adjourn.refuse('%s may not let a call go on without a decision on its ask', session_user);
    END IF;
    RETURN NULL;
END $$;

-- Only logins that may decide write decisions to the trail. An agent writes only its asks and its own calls. An approver writes
-- nothing that only the process of a run can know.
CREATE OR REPLACE FUNCTION adjourn.guard_event() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    head record := adjourn.head_of(NEW.body);
    kind text := head.texts[1];
    author text := head.texts[2];
BEGIN
    IF adjourn.may_write_any(TG_RELID) THEN
        RETURN NEW;
    END IF;
    IF (kind LIKE 'ask\_%' OR kind IN ('approval_given', 'call_edited', 'call_settled')) AND NOT adjourn.is_now(head.moment) THEN
        PERFORM adjourn.refuse('the database does not have the time of this %s', kind);
    END IF;
    PERFORM adjourn.require_own_name(author, TG_RELID);
    IF adjourn.is_agent_only() THEN
        PERFORM adjourn.require_running(NEW.task);
    END IF;
    IF kind IN ('approval_given', 'ask_approved', 'ask_rejected', 'ask_settled', 'call_edited', 'call_settled')
        AND (kind, author) != ('ask_rejected', 'policy')
        AND (author ~ '^(adjourn$|policy$|file:)' OR NOT adjourn.speaks_as('adjourn_approver'))
        OR kind = 'ask_answered' AND author IN ('adjourn', 'policy')
        OR NOT adjourn.speaks_as('adjourn_worker') AND NOT adjourn.is_agent_only()
            AND (kind ~ '^run_' OR kind IN (
                'call_executing', 'call_closed', 'call_lost', 'call_proposed', 'call_let_through', 'call_found', 'call_released', 'call_not_made',
                'ask_reminded', 'start_refused', 'program_executed', 'files_changed', 'task_forked', 'task_restarted', 'task_continued'
            ))
        OR kind = 'task_created' AND NOT adjourn.speaks_as('adjourn_worker')
        OR kind NOT IN ('ask_opened', 'ask_rejected', 'ask_withdrawn', 'call_executing', 'call_closed') AND adjourn.is_agent_only() THEN
        PERFORM adjourn.refuse('%s may not record %s', session_user, kind);
    END IF;
    RETURN NEW;
END $$;

-- Of a task that ended the words may be forgotten; their links stay, and each is the one that its seal was made of.
CREATE OR REPLACE FUNCTION adjourn.guard_forgetting() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    before bytea;
BEGIN
    IF adjourn.may_write_any(TG_RELID) THEN
        RETURN NEW;
    END IF;
    IF NEW.body IS NOT NULL OR NOT EXISTS (
        SELECT 1 FROM adjourn.task WHERE no = OLD.task AND state IN ('succeeded', 'failed', 'canceled')
    ) THEN
        PERFORM adjourn.refuse('%s may not change the trail', session_user);
    END IF;
    SELECT seal INTO before FROM adjourn.event WHERE no < OLD.no ORDER BY no DESC LIMIT 1;
    IF (OLD.no, OLD.task, OLD.seal) IS DISTINCT FROM (NEW.no, NEW.task, NEW.seal)
        OR NEW.seal IS DISTINCT FROM sha256(coalesce(before, decode(repeat('00', 32), 'hex')) || NEW.link) THEN
        PERFORM adjourn.refuse('%s may not forget event %s without its link', session_user, OLD.no::text);
    END IF;
    RETURN NEW;
END $$;

-- The login that lets a call through writes its own name. A call that goes on keeps the name under which the task went on before: that of
-- the login that approved it then, or asked for the task.
CREATE OR REPLACE FUNCTION adjourn.require_own_approval(call adjourn.call, of_table oid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF call.approved_by IS DISTINCT FROM adjourn.requester_of(call.no >> 20) AND NOT EXISTS (
        SELECT 1 FROM adjourn.call AS earlier WHERE earlier.approved_by = call.approved_by
            AND earlier.no BETWEEN (call.no >> 20) << 20 AND call.no - 1
    ) THEN
        PERFORM adjourn.require_own_name(call.approved_by, of_table);
    END IF;
END $$;

-- What is decided stays so. The login that approves a call writes its own name there, and may write other bytes with it.
CREATE OR REPLACE FUNCTION adjourn.require_same_call(was adjourn.call, call adjourn.call, of_table oid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF was.approved_by IS DISTINCT FROM call.approved_by THEN
        IF (was.state, call.state) != ('pending', 'approved') OR NOT adjourn.speaks_as('adjourn_approver') THEN
            PERFORM adjourn.refuse('%s may not decide', session_user);
        END IF;
        PERFORM adjourn.require_own_name(call.approved_by, of_table);
    ELSIF was.digest IS DISTINCT FROM call.digest AND NOT (
        -- Of what several people approve, each approves the bytes: guard_told counts only approvals of these.
        was.state = 'pending' AND call.state = 'pending' AND adjourn.speaks_as('adjourn_approver') AND EXISTS (
            SELECT 1 FROM adjourn.ask WHERE ask.no BETWEEN (call.no >> 20) << 20 AND ((call.no >> 20) << 20) + 1048575
                AND ask.call = call.no & 1048575 AND ask.state = 'pending' AND ask.approvals > 1
        )
    ) THEN
        PERFORM adjourn.refuse('%s may not change what is asked', session_user);
    END IF;
    IF was.no != call.no THEN
        PERFORM adjourn.refuse('%s may not change what is asked', session_user);
    END IF;
END $$;

-- The table of core/states.py. What nobody has decided yet, and what may have run, goes on by an approver's word; or ends, undecided.
CREATE OR REPLACE FUNCTION adjourn.require_true_move(was adjourn.call, call adjourn.call) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF was.state = call.state THEN
        RETURN;
    END IF;
    IF (was.state::text, call.state::text) NOT IN (
        ('pending', 'approved'), ('pending', 'rejected'), ('pending', 'expired'), ('pending', 'withdrawn'), ('approved', 'claimed'),
        ('approved', 'executing'), ('approved', 'withdrawn'), ('claimed', 'executing'), ('claimed', 'approved'), ('claimed', 'failed'),
        ('executing', 'approved'), ('executing', 'done'), ('executing', 'failed'), ('executing', 'uncertain'), ('uncertain', 'done'),
        ('uncertain', 'failed'), ('uncertain', 'approved')
    ) THEN
        PERFORM adjourn.refuse('a call that is %s does not become %s', was.state, call.state);
    END IF;
    IF NOT adjourn.speaks_as('adjourn_approver')
        AND (was.state = 'uncertain' OR was.state = 'pending' AND call.state NOT IN ('rejected', 'expired', 'withdrawn')) THEN
        PERFORM adjourn.refuse('%s may not decide', session_user);
    END IF;
END $$;

-- An approver lets a task that waits go on with the command that it ran before: the same words, in the same directory. Other words come by an edit
-- of what is asked, and no other way. `--approval-decision` is what an approval adds to them.
CREATE OR REPLACE FUNCTION adjourn.require_same_command(call_no bigint, content bytea) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    arguments jsonb := convert_from(content, 'UTF8')::jsonb -> 'arguments';
BEGIN
    IF NOT EXISTS (SELECT 1 FROM adjourn.task WHERE no = call_no >> 20 AND state IN ('waiting', 'paused'))
        OR arguments -> 'env' IS DISTINCT FROM '{}'::jsonb
        OR NOT EXISTS (
            SELECT 1 FROM adjourn.call JOIN adjourn.call_body USING (no), LATERAL (
                SELECT convert_from(call_body.body, 'UTF8')::jsonb AS content
            ) AS earlier
            WHERE no BETWEEN (call_no >> 20) << 20 AND call_no - 1
                AND state NOT IN ('pending', 'rejected', 'expired', 'withdrawn')
                AND earlier.content -> 'tool' = '"command"'
                AND earlier.content -> 'arguments' -> 'cwd' = arguments -> 'cwd'
                AND adjourn.plain_words(earlier.content -> 'arguments' -> 'argv') = adjourn.plain_words(arguments -> 'argv')
        ) THEN
        PERFORM adjourn.refuse('%s may let a task go on with its own command, and with nothing else', session_user);
    END IF;
END $$;

CREATE OR REPLACE FUNCTION adjourn.plain_words(argv jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(jsonb_agg(word ORDER BY place), '[]') FROM jsonb_array_elements(argv) WITH ORDINALITY AS words (word, place)
    WHERE word #>> '{}' IS NULL OR word #>> '{}' NOT LIKE '--approval-decision=%'
$$;

CREATE OR REPLACE FUNCTION adjourn.guard_call() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF adjourn.may_write_any(TG_RELID) THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'UPDATE' THEN
        PERFORM adjourn.require_same_call(OLD, NEW, TG_RELID);
        PERFORM adjourn.require_true_move(OLD, NEW);
    ELSIF NEW.state NOT IN ('pending', 'approved') OR NOT EXISTS (SELECT 1 FROM adjourn.task WHERE no = NEW.no >> 20) THEN
        PERFORM adjourn.refuse('%s may not add a call that is %s', session_user, NEW.state);
    END IF;
    IF TG_OP = 'INSERT' AND NEW.approved_by IS NOT NULL THEN
        PERFORM adjourn.require_own_approval(NEW, TG_RELID);
    END IF;
    IF NOT (adjourn.is_agent_only() OR adjourn.speaks_as('adjourn_worker')) AND (
        NEW.state IN ('claimed', 'executing') AND (TG_OP = 'INSERT' OR OLD.state != NEW.state OR OLD.claimed_by != NEW.claimed_by)
        OR TG_OP = 'UPDATE' AND OLD.state IN ('approved', 'claimed', 'executing') AND NEW.state NOT IN (OLD.state, 'withdrawn')
    ) THEN
        PERFORM adjourn.refuse('%s may decide, never run', session_user);
    END IF;
    IF adjourn.is_agent_only() THEN
        PERFORM adjourn.require_running(NEW.no >> 20);
        IF TG_OP = 'INSERT' THEN
            PERFORM adjourn.require_asking(NEW);
        ELSE
            PERFORM adjourn.require_own_call(OLD, NEW);
        END IF;
    END IF;
    RETURN NEW;
END $$;

-- The bytes of a call are those of its digest, and that is what people approve.
CREATE OR REPLACE FUNCTION adjourn.guard_bytes() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM adjourn.call WHERE no = NEW.no AND digest = sha256(NEW.body)) THEN
        PERFORM adjourn.refuse('%s may not change what is asked', session_user);
    END IF;
    IF TG_OP = 'INSERT' AND NOT adjourn.is_agent_only() AND NOT adjourn.speaks_as('adjourn_worker') THEN
        PERFORM adjourn.require_same_command(NEW.no, NEW.body);
    END IF;
    RETURN NEW;
END $$;

-- An approval with other arguments changes the arguments of the task, and nothing else of it. This is checked at
-- the end: the arguments may be written before the approval.
CREATE OR REPLACE FUNCTION adjourn.guard_spec() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT adjourn.speaks_as('adjourn_worker') AND NOT EXISTS (
        SELECT 1 FROM adjourn.ask JOIN adjourn.call ON call.no = (NEW.no << 20) + ask.call
        WHERE ask.no BETWEEN NEW.no << 20 AND (NEW.no << 20) + 1048575 AND ask.xmin = pg_current_xact_id()::xid
            AND call.xmin = pg_current_xact_id()::xid AND ask.state = 'approved' AND ask.settled_by = call.approved_by
            AND (approved_by = 'db:' || session_user OR approved_by ~ '^(agent|key|webhook):')
    ) THEN
        PERFORM adjourn.refuse('%s may not change what a task is', session_user);
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION adjourn.require_asking(call adjourn.call) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF call.state != 'pending' OR call.approved_by IS NOT NULL THEN
        PERFORM adjourn.refuse('%s may ask, never decide', session_user);
    END IF;
END $$;

-- An agent takes back what it asked, takes what was approved for its own run, and records how that ended.
CREATE OR REPLACE FUNCTION adjourn.require_own_call(was adjourn.call, call adjourn.call) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    task_id text := (SELECT id FROM adjourn.task WHERE no = call.no >> 20);
BEGIN
    IF (was.state, call.state) NOT IN (
        ('pending', 'withdrawn'), ('pending', 'rejected'), ('approved', 'withdrawn'), ('approved', 'claimed'),
        ('approved', 'executing'), ('claimed', 'executing'), ('executing', 'done'), ('executing', 'failed')
    ) THEN
        PERFORM adjourn.refuse('%s may not move a call from %s to %s', session_user, was.state, call.state);
    END IF;
    IF (was.label, was.body) IS DISTINCT FROM (call.label, call.body) THEN
        PERFORM adjourn.refuse('%s may not change what is asked', session_user);
    END IF;
    IF split_part(coalesce(was.claimed_by, task_id), '.', 1) != task_id OR split_part(coalesce(call.claimed_by, task_id), '.', 1) != task_id THEN
        PERFORM adjourn.refuse('%s may not touch what others run', session_user);
    END IF;
END $$;

-- The table of core/states.py. What has ended begins again by a worker alone, and an approver never moves what runs.
CREATE OR REPLACE FUNCTION adjourn.guard_task() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    is_worker boolean := adjourn.speaks_as('adjourn_worker');
BEGIN
    IF adjourn.may_write_any(TG_RELID) THEN
        RETURN NEW;
    END IF;
    IF adjourn.is_agent_only() THEN
        PERFORM adjourn.require_running(OLD.no);
    END IF;
    IF (OLD.no, OLD.id, OLD.family, OLD.pool) IS DISTINCT FROM (NEW.no, NEW.id, NEW.family, NEW.pool)
        OR adjourn.is_agent_only() AND (OLD.state, OLD.next_call, OLD.wish, OLD.slot, OLD.engine_task, OLD.engine_run)
        IS DISTINCT FROM (NEW.state, NEW.next_call, NEW.wish, NEW.slot, NEW.engine_task, NEW.engine_run) THEN
        PERFORM adjourn.refuse('%s may not move a task', session_user);
    END IF;
    IF OLD.state != NEW.state AND (OLD.state::text, NEW.state::text) NOT IN (
        ('queued', 'running'), ('queued', 'paused'), ('queued', 'canceled'), ('queued', 'failed'), ('running', 'queued'),
        ('running', 'succeeded'), ('running', 'failed'), ('running', 'waiting'), ('running', 'paused'), ('running', 'canceled'),
        ('waiting', 'queued'), ('waiting', 'failed'), ('waiting', 'succeeded'), ('waiting', 'paused'), ('waiting', 'canceled'),
        ('paused', 'queued'), ('paused', 'canceled'), ('succeeded', 'queued'), ('failed', 'queued'), ('canceled', 'queued')
    ) THEN
        PERFORM adjourn.refuse('a task that is %s does not become %s', OLD.state, NEW.state);
    END IF;
    IF NOT is_worker AND (
        -- The head of its chain is written last, in the transaction that ended it.
        OLD.state IN ('succeeded', 'failed', 'canceled')
            AND (OLD.state, OLD.version, OLD.next_call, OLD.wish, OLD.slot, OLD.engine_task, OLD.engine_run, OLD.body)
            IS DISTINCT FROM (NEW.state, NEW.version, NEW.next_call, NEW.wish, NEW.slot, NEW.engine_task, NEW.engine_run, NEW.body)
        OR OLD.state != NEW.state AND 'running' IN (OLD.state, NEW.state)
        OR OLD.state = 'running' AND (OLD.engine_task, OLD.engine_run, OLD.next_call)
            IS DISTINCT FROM (NEW.engine_task, NEW.engine_run, NEW.next_call)
    ) THEN
        PERFORM adjourn.refuse('%s may decide, never start', session_user);
    END IF;
    IF NOT is_worker AND NEW.state = 'queued' AND NOT EXISTS (
        SELECT 1 FROM adjourn.call WHERE no = (NEW.no << 20) + NEW.next_call AND state = 'approved'
    ) THEN
        PERFORM adjourn.refuse('%s may queue what was decided, and nothing else', session_user);
    END IF;
    RETURN NEW;
END $$;

-- An approver may say that the work of a run that waits is good.
CREATE OR REPLACE FUNCTION adjourn.guard_run() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF adjourn.may_write_any(TG_RELID) OR adjourn.speaks_as('adjourn_worker') THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'INSERT' OR (OLD.state::text, NEW.state::text) != ('waiting', 'succeeded') OR OLD.supervisor != NEW.supervisor THEN
        PERFORM adjourn.refuse('%s may decide, never run', session_user);
    END IF;
    RETURN NEW;
END $$;

-- A policy is known by its digest, and never changes. An approver keeps the ids of decisions that came from outside, and a server how far it has
-- read a chat.
CREATE OR REPLACE FUNCTION adjourn.guard_shared_document() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF adjourn.may_write_any(TG_RELID) THEN
        RETURN NEW;
    END IF;
    IF NEW.name LIKE 'policy:%' AND NEW.name != 'policy:' || encode(sha256(NEW.body), 'hex')
        OR TG_OP = 'UPDATE' AND OLD.name != NEW.name
        OR NOT adjourn.speaks_as('adjourn_worker') AND (NEW.name NOT LIKE 'webhook:%' OR TG_OP = 'UPDATE')
        AND NOT (NEW.name LIKE 'heard:%' AND adjourn.speaks_as('adjourn_server')) THEN
        PERFORM adjourn.refuse('%s may not change %s', session_user, NEW.name);
    END IF;
    RETURN NEW;
END $$;

-- What a process may keep of its own. Results, signatures and what a call was before a person changed it are not among it.
CREATE OR REPLACE FUNCTION adjourn.guard_document() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name text := CASE TG_OP WHEN 'DELETE' THEN OLD.name ELSE NEW.name END;
BEGIN
    IF adjourn.is_agent_only() THEN
        PERFORM adjourn.require_running(CASE TG_OP WHEN 'DELETE' THEN OLD.task ELSE NEW.task END);
        IF name NOT IN ('saved', 'clarification', 'checkpoint', 'response') AND name NOT LIKE 'editable:%'
            AND NOT (TG_OP = 'INSERT' AND name SIMILAR TO '(why|copies):%') THEN
            PERFORM adjourn.refuse('%s may not touch %s', session_user, name);
        END IF;
    ELSIF NOT adjourn.speaks_as('adjourn_worker') AND name NOT SIMILAR TO '(original|signed|result):%' AND name != 'response'
        AND NOT (TG_OP = 'INSERT' AND name SIMILAR TO '(why|copies):%')
        AND NOT (name SIMILAR TO '(sent|links):%' AND adjourn.speaks_as('adjourn_server')) THEN
        PERFORM adjourn.refuse('%s may not touch %s', session_user, name);
    END IF;
    RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END $$;

-- What a run asked for, in its order; the reader of an answer may record that nothing is left open there, and no more.
CREATE OR REPLACE FUNCTION adjourn.guard_turn() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND (OLD.no, OLD.run, OLD.key, OLD.kind, OLD.thing) IS DISTINCT FROM (NEW.no, NEW.run, NEW.key, NEW.kind, NEW.thing) THEN
        PERFORM adjourn.refuse('%s may not change what is asked', session_user);
    END IF;
    IF adjourn.is_agent_only() THEN
        PERFORM adjourn.require_running(NEW.run >> 20);
    END IF;
    RETURN NEW;
END $$;

-- Only what has ended is forgotten. A trigger says by how many bits a row's number is longer than its task's.
CREATE OR REPLACE FUNCTION adjourn.guard_pruning() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT adjourn.may_write_any(TG_RELID) AND NOT EXISTS (
        SELECT 1 FROM adjourn.task WHERE no = OLD.no >> TG_ARGV[0]::integer AND state IN ('succeeded', 'failed', 'canceled')
    ) THEN
        PERFORM adjourn.refuse('%s may not forget what has not ended', session_user);
    END IF;
    IF TG_TABLE_NAME = 'task' AND NOT adjourn.may_write_any(TG_RELID) AND EXISTS (
        SELECT 1 FROM adjourn.event WHERE task = OLD.no AND body IS NOT NULL
    ) THEN
        PERFORM adjourn.refuse('%s may not forget a task and leave its events', session_user);
    END IF;
    RETURN OLD;
END $$;

-- Its row is there to be locked, which needs the right to change it, and is never changed.
CREATE OR REPLACE FUNCTION adjourn.guard_family() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM adjourn.refuse('%s may not move a task', session_user);
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER guard BEFORE INSERT OR UPDATE ON adjourn.ask FOR EACH ROW EXECUTE FUNCTION adjourn.guard_ask();
CREATE OR REPLACE TRIGGER guard BEFORE INSERT OR UPDATE ON adjourn.call FOR EACH ROW EXECUTE FUNCTION adjourn.guard_call();
CREATE OR REPLACE TRIGGER guard BEFORE INSERT OR UPDATE ON adjourn.call_body FOR EACH ROW EXECUTE FUNCTION adjourn.guard_bytes();
CREATE OR REPLACE TRIGGER guard BEFORE INSERT OR UPDATE ON adjourn.turn FOR EACH ROW EXECUTE FUNCTION adjourn.guard_turn();
DROP TRIGGER IF EXISTS guard ON adjourn.task_spec;  -- one that waits for the end cannot be replaced
CREATE CONSTRAINT TRIGGER guard AFTER UPDATE ON adjourn.task_spec DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION adjourn.guard_spec();
CREATE OR REPLACE TRIGGER guard BEFORE INSERT ON adjourn.event FOR EACH ROW EXECUTE FUNCTION adjourn.guard_event();
CREATE OR REPLACE TRIGGER guard_forgetting BEFORE UPDATE ON adjourn.event FOR EACH ROW EXECUTE FUNCTION adjourn.guard_forgetting();
CREATE OR REPLACE TRIGGER guard BEFORE UPDATE ON adjourn.task FOR EACH ROW EXECUTE FUNCTION adjourn.guard_task();
DROP TRIGGER IF EXISTS guard_queued ON adjourn.task;
CREATE CONSTRAINT TRIGGER guard_queued AFTER UPDATE ON adjourn.task DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
WHEN (
    (OLD.engine_task IS DISTINCT FROM NEW.engine_task OR OLD.engine_run IS DISTINCT FROM NEW.engine_run)
    AND NOT adjourn.speaks_as('adjourn_worker')
) EXECUTE FUNCTION adjourn.guard_queued();
CREATE OR REPLACE TRIGGER guard BEFORE INSERT OR DELETE ON adjourn.document FOR EACH ROW EXECUTE FUNCTION adjourn.guard_document();
CREATE OR REPLACE TRIGGER guard BEFORE INSERT OR UPDATE ON adjourn.run FOR EACH ROW EXECUTE FUNCTION adjourn.guard_run();
CREATE OR REPLACE TRIGGER guard BEFORE INSERT OR UPDATE ON adjourn.shared_document
FOR EACH ROW EXECUTE FUNCTION adjourn.guard_shared_document();
DROP TRIGGER IF EXISTS guard_told ON adjourn.ask;
CREATE CONSTRAINT TRIGGER guard_told AFTER UPDATE ON adjourn.ask DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION adjourn.guard_told();
DROP TRIGGER IF EXISTS guard_decided ON adjourn.call;
CREATE CONSTRAINT TRIGGER guard_decided AFTER UPDATE ON adjourn.call DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION adjourn.guard_decided();
CREATE OR REPLACE TRIGGER guard BEFORE UPDATE ON adjourn.family FOR EACH ROW EXECUTE FUNCTION adjourn.guard_family();
CREATE OR REPLACE TRIGGER guard_pruning BEFORE DELETE ON adjourn.task FOR EACH ROW EXECUTE FUNCTION adjourn.guard_pruning(0);
CREATE OR REPLACE TRIGGER guard_pruning BEFORE DELETE ON adjourn.task_spec FOR EACH ROW EXECUTE FUNCTION adjourn.guard_pruning(0);
CREATE OR REPLACE TRIGGER guard_pruning BEFORE DELETE ON adjourn.run FOR EACH ROW EXECUTE FUNCTION adjourn.guard_pruning(20);
CREATE OR REPLACE TRIGGER guard_pruning BEFORE DELETE ON adjourn.call FOR EACH ROW EXECUTE FUNCTION adjourn.guard_pruning(20);
CREATE OR REPLACE TRIGGER guard_pruning BEFORE DELETE ON adjourn.call_body FOR EACH ROW EXECUTE FUNCTION adjourn.guard_pruning(20);
CREATE OR REPLACE TRIGGER guard_pruning BEFORE DELETE ON adjourn.ask FOR EACH ROW EXECUTE FUNCTION adjourn.guard_pruning(20);
CREATE OR REPLACE TRIGGER guard_pruning BEFORE DELETE ON adjourn.ask_body FOR EACH ROW EXECUTE FUNCTION adjourn.guard_pruning(20);
CREATE OR REPLACE TRIGGER guard_pruning BEFORE DELETE ON adjourn.message FOR EACH ROW EXECUTE FUNCTION adjourn.guard_pruning(20);

-- All of it belongs to the owner, as whom it runs, whatever login ran this file.
DO $$
DECLARE
    owner regrole := (SELECT nspowner::regrole FROM pg_namespace WHERE nspname = 'adjourn');
    made regprocedure;
BEGIN
    FOR made IN SELECT oid FROM pg_proc WHERE pronamespace = 'adjourn'::regnamespace AND proowner != owner::oid LOOP
        EXECUTE format('ALTER FUNCTION %s OWNER TO %s', made, owner);
    END LOOP;
END $$;

-- The guards, and what they use, are for nobody to call. Those that look at the end of a transaction look as the owner, too.
DO $$
DECLARE
    helper regprocedure;
BEGIN
    FOR helper IN SELECT oid FROM pg_proc WHERE pronamespace = 'adjourn'::regnamespace
        AND (proname LIKE 'guard\_%' OR proname IN (
            'speaks_as', 'is_agent_only', 'may_write_any', 'refuse', 'require_own_name', 'texts_of', 'requester_of', 'require_true_level',
            'require_running', 'head_of', 'is_now', 'require_in_time', 'require_own_approval', 'require_own_given', 'require_same_call', 'require_true_move', 'require_same_command', 'plain_words',
            'require_asking', 'require_own_call'
        ))
    LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', helper);
    END LOOP;
    ALTER FUNCTION adjourn.guard_spec () SECURITY DEFINER;
END $$;

-- The owner may do all, as before.
DO $$
DECLARE
    owner oid := (SELECT nspowner FROM pg_namespace WHERE nspname = 'adjourn');
BEGIN
    IF NOT (pg_has_role(owner, 'adjourn_approver', 'MEMBER') AND pg_has_role(owner, 'adjourn_worker', 'MEMBER')) THEN
        EXECUTE format('GRANT adjourn_approver, adjourn_worker TO %s', owner::regrole);
    END IF;
END $$;
