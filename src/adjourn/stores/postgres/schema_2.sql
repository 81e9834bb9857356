-- Every write of the program is a function. `adjourn store roles` has them run as the owner of the schema, and takes from logins every right to
-- write to the tables: a login can then do what these functions and the guards of roles.sql let it do, and nothing else, whatever SQL it speaks.

-- What writers wait for. A login can lock neither these rows nor the tables: no lock of another database user keeps anybody waiting.
CREATE TABLE adjourn.lock (name text PRIMARY KEY);
INSERT INTO adjourn.lock (name) VALUES ('trail'), ('queues');
INSERT INTO adjourn.lock (name) SELECT 'document ' || number FROM generate_series(0, 63) AS number;

CREATE FUNCTION adjourn.wait_for(lock_name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM adjourn.lock WHERE name = lock_name FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the lock % is missing', lock_name;
    END IF;
END $$;

-- --- the audit trail ------------------------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION adjourn.seal_events(known integer, tasks bigint[], bodies bytea[], links bytea[], OUT no bigint, OUT seal bytea)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM adjourn.require_schema(known), adjourn.wait_for('trail');
    SELECT event.no, event.seal INTO no, seal FROM adjourn.event ORDER BY event.no DESC LIMIT 1;
    no := coalesce(no, 0);
    seal := coalesce(seal, decode(repeat('00', 32), 'hex'));
    FOR i IN 1 .. cardinality(tasks) LOOP
        no := no + 1;
        seal := sha256(seal || links[i]);
        INSERT INTO adjourn.event (no, task, body, seal) VALUES (seal_events.no, tasks[i], bodies[i], seal_events.seal);
    END LOOP;
END $$;

-- --- tasks and runs -------------------------------------------------------------------------------------------------------

-- Locks families, always in one order: two who change the same tasks cannot wait for each other.
CREATE FUNCTION adjourn.lock_families(families bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM adjourn.family WHERE no = ANY(families) ORDER BY no FOR UPDATE;
END $$;

CREATE FUNCTION adjourn.add_task(
    task_id text, task_state text, task_version integer, task_slot bytea, task_next_call integer, task_wish text, task_pool text,
    parent text, task_body bytea, new_engine_task uuid, new_engine_run uuid, spec bytea, OUT task_no bigint, OUT task_family bigint
) LANGUAGE plpgsql AS $$
BEGIN
    task_no := nextval('adjourn.task_no_seq');
    task_family := coalesce((SELECT family FROM adjourn.task WHERE id = parent), task_no);
    INSERT INTO adjourn.task (no, family, id, state, version, slot, next_call, wish, pool, body, engine_task, engine_run) VALUES (
        task_no, task_family, task_id, task_state, task_version, task_slot, task_next_call, task_wish, task_pool, task_body,
        new_engine_task, new_engine_run
    );
    IF task_family = task_no THEN
        INSERT INTO adjourn.family (no) VALUES (task_no);
    END IF;
    INSERT INTO adjourn.task_spec (no, body) VALUES (task_no, spec);
END $$;

-- A writer of a task's rows holds its family and has read them since, or guards what it read before: the rows exist.
CREATE FUNCTION adjourn.write_task(
    task_no bigint, new_state text, new_version integer, new_slot bytea, new_next_call integer, new_wish text, new_body bytea,
    new_engine_task uuid, new_engine_run uuid, new_head bytea
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE adjourn.task SET
        state = new_state, version = new_version, slot = new_slot, next_call = new_next_call, wish = new_wish,
        body = new_body, head = coalesce(new_head, head),
        engine_task = CASE WHEN new_state IN ('queued', 'running') THEN coalesce(new_engine_task, engine_task) END,
        engine_run = CASE WHEN new_state IN ('queued', 'running') THEN coalesce(new_engine_run, engine_run) END
    WHERE no = task_no;
END $$;

CREATE FUNCTION adjourn.write_head(task_no bigint, new_head bytea) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE adjourn.task SET head = new_head WHERE no = task_no;
END $$;

CREATE FUNCTION adjourn.write_spec(task_no bigint, new_body bytea) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE adjourn.task_spec SET body = new_body WHERE no = task_no;
END $$;

CREATE FUNCTION adjourn.add_run(
    run_no bigint, run_state text, run_version integer, run_supervisor text, run_checkpoint text, run_reason text, run_body bytea
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO adjourn.run (no, state, version, supervisor, checkpoint_id, pause_reason, body)
    VALUES (run_no, run_state, run_version, run_supervisor, run_checkpoint, run_reason, run_body);
END $$;

CREATE FUNCTION adjourn.write_run(
    run_no bigint, new_state text, new_version integer, new_supervisor text, new_checkpoint text, new_reason text, new_body bytea
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE adjourn.run SET
        state = new_state, version = new_version, supervisor = new_supervisor, checkpoint_id = new_checkpoint,
        pause_reason = new_reason, body = new_body
    WHERE no = run_no;
END $$;

-- --- calls and asks -------------------------------------------------------------------------------------------------------

CREATE FUNCTION adjourn.add_call(
    call_no bigint, call_state text, call_version integer, call_digest bytea, call_claimed_by text, call_approved_by text,
    call_label text, call_body bytea, content bytea
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO adjourn.call (no, state, version, digest, claimed_by, approved_by, label, body)
    VALUES (call_no, call_state, call_version, call_digest, call_claimed_by, call_approved_by, call_label, call_body);
    INSERT INTO adjourn.call_body (no, body) VALUES (call_no, content);
END $$;

CREATE FUNCTION adjourn.write_call(
    call_no bigint, new_state text, new_version integer, new_digest bytea, new_claimed_by text, new_approved_by text, new_label text,
    new_body bytea
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE adjourn.call SET
        state = new_state, version = new_version, digest = new_digest, claimed_by = new_claimed_by, approved_by = new_approved_by,
        label = new_label, body = new_body
    WHERE no = call_no;
END $$;

CREATE FUNCTION adjourn.write_call_body(call_no bigint, content bytea) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE adjourn.call_body SET body = content WHERE no = call_no;
END $$;

CREATE FUNCTION adjourn.add_ask(
    ask_no bigint, ask_id text, ask_state text, ask_kind text, ask_run integer, ask_created_at bigint, ask_slot bytea,
    ask_call integer, ask_expires_at bigint, ask_settled_at bigint, ask_settled_by text, ask_level text, ask_snoozed_until bigint,
    ask_body bytea, asked bytea
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO adjourn.ask (
        no, id, state, kind, run, created_at, slot, call, expires_at, settled_at, settled_by, level, snoozed_until, body
    ) VALUES (
        ask_no, ask_id, ask_state, ask_kind, ask_run, ask_created_at, ask_slot, ask_call, ask_expires_at, ask_settled_at,
        ask_settled_by, ask_level, ask_snoozed_until, ask_body
    );
    INSERT INTO adjourn.ask_body (no, body) VALUES (ask_no, asked);
END $$;

CREATE FUNCTION adjourn.write_ask(
    ask_no bigint, new_state text, new_call integer, new_expires_at bigint, new_settled_at bigint, new_settled_by text,
    new_level text, new_snoozed_until bigint, new_body bytea
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE adjourn.ask SET
        state = new_state, call = new_call, expires_at = new_expires_at, settled_at = new_settled_at, settled_by = new_settled_by,
        level = new_level, snoozed_until = new_snoozed_until, body = new_body
    WHERE no = ask_no;
END $$;

CREATE FUNCTION adjourn.write_ask_body(ask_no bigint, asked bytea) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE adjourn.ask_body SET body = asked WHERE no = ask_no;
END $$;

-- Locks the families of the asks whose time is over.
CREATE FUNCTION adjourn.lock_expired_asks(moment bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM adjourn.family WHERE no IN (
        SELECT task.family FROM adjourn.ask JOIN adjourn.task ON task.no = ask.no >> 20
        WHERE ask.state = 'pending' AND expires_at IS NOT NULL AND expires_at <= moment
    ) ORDER BY no FOR UPDATE;
END $$;

-- --- what tasks keep ------------------------------------------------------------------------------------------------------

CREATE FUNCTION adjourn.add_turn(turn_run bigint, turn_key bytea, turn_kind bytea, turn_thing text, is_left_open boolean) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO adjourn.turn (run, key, kind, thing, left_open) VALUES (turn_run, turn_key, turn_kind, turn_thing, is_left_open);
END $$;

CREATE FUNCTION adjourn.close_turn(turn_run bigint, turn_thing text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE adjourn.turn SET left_open = false WHERE run = turn_run AND thing = turn_thing;
END $$;

CREATE FUNCTION adjourn.drop_document(task_no bigint, document_name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM adjourn.document WHERE task = task_no AND name = document_name;
END $$;

CREATE FUNCTION adjourn.add_document(task_no bigint, document_name text, content bytea) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO adjourn.document (task, name, body) VALUES (task_no, document_name, content);
END $$;

CREATE FUNCTION adjourn.add_message(message_no bigint, content bytea) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO adjourn.message (no, body) VALUES (message_no, content);
END $$;

-- What is not there cannot be locked, so one of a few rows is that its name leads to.
CREATE FUNCTION adjourn.lock_shared_document(document_name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM adjourn.wait_for('document ' || (hashtext(document_name) & 63));
END $$;

CREATE FUNCTION adjourn.keep_shared_document(document_name text, content bytea) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO adjourn.shared_document (name, body) VALUES (document_name, content) ON CONFLICT (name) DO UPDATE SET body = content;
END $$;

CREATE FUNCTION adjourn.save_outbox(notifier_name text, content bytea) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO adjourn.outbox (notifier, body) VALUES (notifier_name, content) ON CONFLICT (notifier) DO UPDATE SET body = content;
END $$;

-- Drops an ended task and all that belongs to it; of its events the links stay.
CREATE FUNCTION adjourn.forget_task(task_no bigint, events bigint[], links bytea[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    first bigint := task_no << 20;
    last bigint := (task_no << 20) + 1048575;
    family_no bigint := (SELECT family FROM adjourn.task WHERE no = task_no);
BEGIN
    PERFORM adjourn.retire(task_no);
    UPDATE adjourn.event SET body = NULL, link = given.link
    FROM unnest(events, links) AS given (no, link) WHERE event.no = given.no AND event.task = task_no;
    DELETE FROM adjourn.run WHERE no BETWEEN first AND last;
    DELETE FROM adjourn.call_body WHERE no BETWEEN first AND last;
    DELETE FROM adjourn.call WHERE no BETWEEN first AND last;
    DELETE FROM adjourn.ask_body WHERE no BETWEEN first AND last;
    DELETE FROM adjourn.ask WHERE no BETWEEN first AND last;
    DELETE FROM adjourn.turn WHERE run BETWEEN first AND last;
    DELETE FROM adjourn.message WHERE no BETWEEN first AND last;
    DELETE FROM adjourn.document WHERE task = task_no;
    DELETE FROM adjourn.task_spec WHERE no = task_no;
    DELETE FROM adjourn.task WHERE no = task_no;
    DELETE FROM adjourn.family WHERE no = family_no AND NOT EXISTS (SELECT 1 FROM adjourn.task WHERE family = family_no);
END $$;

-- --- supervisors ----------------------------------------------------------------------------------------------------------

CREATE FUNCTION adjourn.appear(own_name text, own_machine text, own_host text, about bytea, seconds double precision) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO adjourn.supervisor (name, machine, host, body, alive_until)
    VALUES (own_name, own_machine, own_host, about, clock_timestamp() + make_interval(secs => seconds))
    ON CONFLICT (name) DO UPDATE SET alive_until = excluded.alive_until;
END $$;

CREATE FUNCTION adjourn.leave(own_name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM adjourn.supervisor WHERE name = own_name;
END $$;

CREATE FUNCTION adjourn.clean_up(leftovers integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM adjourn.supervisor WHERE alive_until < clock_timestamp() - interval '1 day';
    PERFORM absurd.cleanup_tasks(queue_name, leftovers, 1000) FROM absurd.queues WHERE queue_name LIKE 'adjourn\_%';
END $$;

-- --- the engine -----------------------------------------------------------------------------------------------------------

-- Checks whether a login may put a task into its queue, or take it out; `adjourn store roles` puts another in its place, which does.
CREATE FUNCTION adjourn.check_queue(verb text, task_no bigint, engine_task uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    NULL;
END $$;

-- Makes the functions of one queue. Each queue has tables of its own; a function that names them is planned once, one that is told their names never.
CREATE FUNCTION adjourn.make_queue_functions(queue text) RETURNS void LANGUAGE plpgsql AS $make$
DECLARE
    names text[] := ARRAY['enqueue_' || queue, 'dequeue_' || queue, 'hold_' || queue, 'fence_' || queue];
    runs text := 'r_' || queue;
    tasks text := 't_' || queue;
BEGIN
    -- The rows that absurd.spawn_task makes.
    EXECUTE format($f$
        CREATE FUNCTION adjourn.%1$I(task_no bigint, engine_task uuid, engine_run uuid) RETURNS void LANGUAGE plpgsql AS $$
        DECLARE
            now timestamptz := absurd.current_time();
        BEGIN
            PERFORM adjourn.check_queue('enqueue', task_no, engine_task);
            INSERT INTO absurd.%2$I (task_id, task_name, params, max_attempts, enqueue_at, state, attempts, last_attempt_run)
            VALUES (engine_task, 'run', jsonb_build_object('task', task_no), 1, now, 'pending', 1, engine_run);
            INSERT INTO absurd.%3$I (run_id, task_id, attempt, state, available_at) VALUES (engine_run, engine_task, 1, 'pending', now);
        END $$
    $f$, names[1], tasks, runs);
    EXECUTE format($f$
        CREATE FUNCTION adjourn.%1$I(task_no bigint, engine_task uuid) RETURNS void LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM adjourn.check_queue('dequeue', task_no, engine_task);
            DELETE FROM absurd.%3$I WHERE task_id = engine_task;
            DELETE FROM absurd.%2$I WHERE task_id = engine_task;
        END $$
    $f$, names[2], tasks, runs);
    -- Takes this very task for a supervisor, as absurd.claim_task takes the next one; or renews what it holds.
    EXECUTE format($f$
        CREATE FUNCTION adjourn.%1$I(task_no bigint, engine_run uuid, holder text, seconds double precision, sentence text)
        RETURNS void LANGUAGE plpgsql AS $$
        DECLARE
            now timestamptz := absurd.current_time();
            held uuid;
        BEGIN
            UPDATE absurd.%3$I AS run SET
                state = 'running', claimed_by = holder, claim_expires_at = now + make_interval(secs => seconds), started_at = now,
                available_at = now
            WHERE run.run_id = engine_run
                AND (run.state IN ('pending', 'sleeping') OR (run.state = 'running' AND run.claimed_by = holder))
            RETURNING run.task_id INTO held;
            PERFORM adjourn.require(held IS NOT NULL, sentence);
            UPDATE absurd.%2$I AS task SET state = 'running', first_started_at = coalesce(first_started_at, now)
            WHERE task.task_id = held;
        END $$
    $f$, names[3], tasks, runs);
    -- Nobody takes away what a supervisor holds before the transaction ends.
    EXECUTE format($f$
        CREATE FUNCTION adjourn.%1$I(task_no bigint, engine_run uuid, holder text, sentence text) RETURNS void LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM 1 FROM absurd.%2$I AS run
            WHERE run.run_id = engine_run AND run.state = 'running' AND run.claimed_by = holder FOR UPDATE;
            PERFORM adjourn.require(FOUND, sentence);
        END $$
    $f$, names[4], runs);
    IF to_regproc('adjourn.restrict_queue_functions') IS NOT NULL THEN
        PERFORM adjourn.restrict_queue_functions(queue);  -- what `adjourn store roles` does with all the others
    END IF;
END $make$;

CREATE OR REPLACE FUNCTION adjourn.made_queue(pool text) RETURNS text LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    queue text := adjourn.queue_of(pool);
BEGIN
    IF NOT EXISTS (SELECT 1 FROM absurd.queues WHERE queue_name = queue) THEN
        PERFORM adjourn.wait_for('queues');
        IF NOT EXISTS (SELECT 1 FROM absurd.queues WHERE queue_name = queue) THEN
            PERFORM absurd.create_queue(queue);
            PERFORM adjourn.make_queue_functions(queue);
        END IF;
    END IF;
    RETURN queue;
END $$;

SELECT adjourn.make_queue_functions(queue_name) FROM absurd.queues WHERE queue_name LIKE 'adjourn\_%';
