-- name: task_by_id
SELECT task.no, id, state, version, slot, next_call, wish, task.body, task_spec.body
FROM adjourn.task JOIN adjourn.task_spec USING (no) WHERE id = $1;

-- name: task_in_slot
SELECT task.no, id, state, version, slot, next_call, wish, task.body, task_spec.body
FROM adjourn.task JOIN adjourn.task_spec USING (no) WHERE slot = $1;

-- name: task_no
SELECT no FROM adjourn.task WHERE id = $1;

-- name: task_id
SELECT id FROM adjourn.task WHERE no = $1;

-- name: lock_families
-- In one order, whoever locks: two who change the same tasks cannot wait for each other.
SELECT no FROM adjourn.family WHERE no = ANY(ARRAY(SELECT family FROM adjourn.task WHERE task.no {named})) ORDER BY no FOR UPDATE;

-- name: guard
SELECT adjourn.guard($1, $2, $3);

-- name: whole_tasks
SELECT task.no, id, task.state, task.version, slot, next_call, wish, task.body,
    (SELECT body FROM adjourn.task_spec WHERE task_spec.no = task.no),
    pool, engine_task::text, engine_run::text, head,
    (SELECT event.body FROM adjourn.event WHERE event.task = task.no ORDER BY event.no LIMIT 1),
    EXISTS (SELECT 1 FROM adjourn.turn WHERE turn.run = run.no AND left_open),
    run.no, run.state, run.version, supervisor, checkpoint_id, pause_reason, run.body
FROM adjourn.task LEFT JOIN LATERAL (
    SELECT * FROM adjourn.run WHERE run.no BETWEEN task.no << 20 AND (task.no << 20) + 1048575 ORDER BY run.no DESC LIMIT 1
) AS run ON true
WHERE task.no {named};

-- name: whole_asks
-- All that are open, and those of the last run: what a task asked long ago costs nothing.
SELECT ask.no, ask.id, ask.state, kind, ask.run, created_at, ask.slot, call, expires_at, settled_at, settled_by, level, snoozed_until,
    ask.body, (SELECT body FROM adjourn.ask_body WHERE ask_body.no = ask.no), task.id
FROM adjourn.task LEFT JOIN LATERAL (
    SELECT no & 1048575 AS number FROM adjourn.run WHERE no BETWEEN task.no << 20 AND (task.no << 20) + 1048575
    ORDER BY no DESC LIMIT 1
) AS last ON true
CROSS JOIN LATERAL (
    SELECT * FROM adjourn.ask WHERE no BETWEEN task.no << 20 AND (task.no << 20) + 1048575 AND state = 'pending'
    UNION ALL
    SELECT * FROM adjourn.ask
    WHERE no > coalesce(
        (
            SELECT older.no FROM adjourn.ask AS older
            WHERE older.no BETWEEN task.no << 20 AND (task.no << 20) + 1048575 AND older.run < last.number
            ORDER BY older.no DESC LIMIT 1
        ),
        task.no << 20
    ) AND no <= (task.no << 20) + 1048575 AND run = last.number AND state != 'pending'
) AS ask
WHERE task.no {named};

-- name: whole_calls
SELECT call.no, call.state, call.version, digest, claimed_by, approved_by, label, call.body,
    (SELECT body FROM adjourn.call_body WHERE call_body.no = call.no)
FROM adjourn.task JOIN adjourn.call ON call.no BETWEEN task.no << 20 AND (task.no << 20) + 1048575
    AND call.state IN ('pending', 'approved', 'claimed', 'executing', 'uncertain')
WHERE task.no {named};

-- name: to_start
-- What a claim is judged by: the last run, the call that comes next, and the newest ask, which most often let it through.
SELECT task.no, task.id, task.state, task.version, task.slot, next_call, wish, task.body, task_spec.body,
    pool, engine_task::text, engine_run::text, head,
    run.no, run.state, run.version, supervisor, checkpoint_id, pause_reason, run.body,
    call.no, call.state, call.version, digest, claimed_by, approved_by, label, call.body, call_body.body,
    ask.no, ask.id, ask.state, kind, ask.run, created_at, ask.slot, ask.call, expires_at, settled_at, settled_by, level, snoozed_until,
    ask.body, (SELECT body FROM adjourn.ask_body WHERE ask_body.no = ask.no), task.id
FROM adjourn.task JOIN adjourn.task_spec ON task_spec.no = task.no
LEFT JOIN adjourn.call ON call.no = (task.no << 20) + next_call
LEFT JOIN adjourn.call_body ON call_body.no = call.no
LEFT JOIN LATERAL (
    SELECT * FROM adjourn.run WHERE no BETWEEN task.no << 20 AND (task.no << 20) + 1048575 ORDER BY no DESC LIMIT 1
) AS run ON true
LEFT JOIN LATERAL (
    SELECT * FROM adjourn.ask WHERE no BETWEEN task.no << 20 AND (task.no << 20) + 1048575 ORDER BY no DESC LIMIT 1
) AS ask ON true
WHERE task.id = $1::text;

-- name: lock_expired_asks
SELECT no FROM adjourn.family WHERE no IN (
    SELECT task.family FROM adjourn.ask JOIN adjourn.task ON task.no = ask.no >> 20
    WHERE ask.state = 'pending' AND expires_at IS NOT NULL AND expires_at <= $1
) ORDER BY no FOR UPDATE;

-- name: tasks_like
SELECT id FROM adjourn.task WHERE id >= $1 AND id < $2
UNION
SELECT task.id FROM adjourn.run JOIN adjourn.task ON task.no = run.no >> 20 WHERE checkpoint_id >= $1 AND checkpoint_id < $2
ORDER BY 1 LIMIT 3;

-- name: tasks_before
SELECT task.no, id, state, version, slot, next_call, wish, task.body, task_spec.body
FROM adjourn.task JOIN adjourn.task_spec USING (no) WHERE task.no < $1 ORDER BY task.no DESC LIMIT $2;

-- name: tasks_in_state_before
SELECT task.no, id, state, version, slot, next_call, wish, task.body, task_spec.body
FROM adjourn.task JOIN adjourn.task_spec USING (no) WHERE state = $1 AND task.no < $2 ORDER BY task.no DESC LIMIT $3;

-- name: running_tasks
SELECT task.no, id, task.state, task.version, slot, next_call, wish, task.body, task_spec.body,
    run.no, run.state, run.version, supervisor, checkpoint_id, pause_reason, run.body
FROM adjourn.task JOIN adjourn.task_spec USING (no) LEFT JOIN LATERAL (
    SELECT * FROM adjourn.run WHERE run.no BETWEEN task.no << 20 AND (task.no << 20) + 1048575 ORDER BY run.no DESC LIMIT 1
) AS run ON true
WHERE task.state = 'running' ORDER BY task.no;

-- name: unwanted_tasks
SELECT id FROM adjourn.task WHERE state = 'running' AND wish IS NOT NULL;

-- name: queued
SELECT task.no, id, state, version, slot, next_call, wish, task.body, task_spec.body
FROM adjourn.task JOIN adjourn.task_spec USING (no) WHERE pool = $1 AND state = 'queued' ORDER BY task.no LIMIT $2;

-- name: insert_task
WITH parent AS (SELECT family FROM adjourn.task WHERE id = $8), fresh AS (SELECT nextval('adjourn.task_no_seq') AS no)
INSERT INTO adjourn.task (no, family, id, state, version, slot, next_call, wish, pool, body, engine_task, engine_run)
SELECT no, coalesce((SELECT family FROM parent), no), $1, $2, $3, $4, $5, $6, $7, $9, $10, $11 FROM fresh RETURNING no, family;

-- name: insert_family
INSERT INTO adjourn.family (no) VALUES ($1);

-- name: insert_spec
INSERT INTO adjourn.task_spec (no, body) VALUES ($1, $2);

-- name: update_spec
UPDATE adjourn.task_spec SET body = $2 WHERE no = $1;

-- name: write_task
-- rows: no bigint, state text, version integer, slot bytea, next_call integer, wish text, body bytea, engine_task uuid, engine_run uuid, head bytea
-- Whoever writes rows of a task holds its family and has seen them since, or guards what was seen before: they are there.
UPDATE adjourn.task SET
    state = given.state, version = given.version, slot = given.slot, next_call = given.next_call, wish = given.wish,
    body = given.body, head = coalesce(given.head, task.head),
    engine_task = CASE WHEN given.state IN ('queued', 'running') THEN coalesce(given.engine_task, task.engine_task) END,
    engine_run = CASE WHEN given.state IN ('queued', 'running') THEN coalesce(given.engine_run, task.engine_run) END
FROM {given} WHERE task.no = given.no;

-- name: run
SELECT no, state, version, supervisor, checkpoint_id, pause_reason, body FROM adjourn.run WHERE no = $1;

-- name: runs
SELECT no, state, version, supervisor, checkpoint_id, pause_reason, body FROM adjourn.run WHERE no BETWEEN $1 AND $2 ORDER BY no;

-- name: runs_like
SELECT no FROM adjourn.run WHERE checkpoint_id >= $1 AND checkpoint_id < $2 LIMIT 2;

-- name: insert_run
INSERT INTO adjourn.run (no, state, version, supervisor, checkpoint_id, pause_reason, body) VALUES ($1, $2, $3, $4, $5, $6, $7);

-- name: write_run
-- rows: no bigint, state text, version integer, supervisor text, checkpoint_id text, pause_reason text, body bytea
UPDATE adjourn.run SET
    state = given.state, version = given.version, supervisor = given.supervisor, checkpoint_id = given.checkpoint_id,
    pause_reason = given.pause_reason, body = given.body
FROM {given} WHERE run.no = given.no;

-- name: call
SELECT no, state, version, digest, claimed_by, approved_by, label, call.body, call_body.body
FROM adjourn.call JOIN adjourn.call_body USING (no) WHERE no = $1;

-- name: calls
SELECT no, state, version, digest, claimed_by, approved_by, label, call.body, call_body.body
FROM adjourn.call JOIN adjourn.call_body USING (no) WHERE no BETWEEN $1 AND $2 ORDER BY no;

-- name: calls_in
SELECT no, state, version, digest, claimed_by, approved_by, label, call.body, call_body.body
FROM adjourn.call JOIN adjourn.call_body USING (no)
WHERE no BETWEEN $1 AND $2 AND state IN ('pending', 'approved', 'claimed', 'executing', 'uncertain') AND state = $3 ORDER BY no;

-- name: insert_call
INSERT INTO adjourn.call (no, state, version, digest, claimed_by, approved_by, label, body)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: call_labelled
SELECT no FROM adjourn.call WHERE label = $1 AND no BETWEEN $2 AND $3;

-- name: insert_call_body
INSERT INTO adjourn.call_body (no, body) VALUES ($1, $2);

-- name: write_call
-- rows: no bigint, state text, version integer, digest bytea, claimed_by text, approved_by text, label text, body bytea
UPDATE adjourn.call SET
    state = given.state, version = given.version, digest = given.digest, claimed_by = given.claimed_by,
    approved_by = given.approved_by, label = given.label, body = given.body
FROM {given} WHERE call.no = given.no;

-- name: update_call_body
-- rows: no bigint, body bytea
UPDATE adjourn.call_body SET
    body = given.body
FROM {given} WHERE call_body.no = given.no;

-- name: ask_by_id
SELECT no, id, state, kind, run, created_at, slot, call, expires_at, settled_at, settled_by, level, snoozed_until, ask.body,
    ask_body.body, (SELECT task.id FROM adjourn.task WHERE task.no = ask.no >> 20)
FROM adjourn.ask JOIN adjourn.ask_body USING (no) WHERE id = $1;

-- name: ask_by_no
SELECT no, id, state, kind, run, created_at, slot, call, expires_at, settled_at, settled_by, level, snoozed_until, ask.body,
    ask_body.body, (SELECT task.id FROM adjourn.task WHERE task.no = ask.no >> 20)
FROM adjourn.ask JOIN adjourn.ask_body USING (no) WHERE no = $1;

-- name: ask_in_slot
SELECT no, id, state, kind, run, created_at, slot, call, expires_at, settled_at, settled_by, level, snoozed_until, ask.body,
    ask_body.body, (SELECT task.id FROM adjourn.task WHERE task.no = ask.no >> 20)
FROM adjourn.ask JOIN adjourn.ask_body USING (no) WHERE slot = $1 AND state != 'withdrawn' ORDER BY no DESC LIMIT 1;

-- name: asks
SELECT no, id, state, kind, run, created_at, slot, call, expires_at, settled_at, settled_by, level, snoozed_until, ask.body,
    ask_body.body, (SELECT task.id FROM adjourn.task WHERE task.no = ask.no >> 20)
FROM adjourn.ask JOIN adjourn.ask_body USING (no) WHERE no BETWEEN $1 AND $2 ORDER BY no;

-- name: asks_of_run
-- Runs ask one after the other: looked for from the end, what the newest one asked costs no history.
SELECT no, id, state, kind, run, created_at, slot, call, expires_at, settled_at, settled_by, level, snoozed_until, ask.body,
    ask_body.body, (SELECT task.id FROM adjourn.task WHERE task.no = ask.no >> 20)
FROM adjourn.ask JOIN adjourn.ask_body USING (no)
WHERE no > coalesce((SELECT no FROM adjourn.ask WHERE no BETWEEN $1 AND $2 AND run < $3 ORDER BY no DESC LIMIT 1), $1)
    AND no <= $2 AND run = $3
ORDER BY no;

-- name: open_asks_of
SELECT no, id, state, kind, run, created_at, slot, call, expires_at, settled_at, settled_by, level, snoozed_until, ask.body,
    ask_body.body, (SELECT task.id FROM adjourn.task WHERE task.no = ask.no >> 20)
FROM adjourn.ask JOIN adjourn.ask_body USING (no) WHERE no BETWEEN $1 AND $2 AND state = 'pending' ORDER BY no;

-- name: open_asks
SELECT no, id, state, kind, run, created_at, slot, call, expires_at, settled_at, settled_by, level, snoozed_until, ask.body,
    ask_body.body, (SELECT task.id FROM adjourn.task WHERE task.no = ask.no >> 20)
FROM adjourn.ask JOIN adjourn.ask_body USING (no) WHERE state = 'pending' AND (created_at, no) > ($1, $2)
ORDER BY created_at, no LIMIT $3;

-- name: awake_asks
SELECT no, id, state, kind, run, created_at, slot, call, expires_at, settled_at, settled_by, level, snoozed_until, ask.body,
    ask_body.body, (SELECT task.id FROM adjourn.task WHERE task.no = ask.no >> 20)
FROM adjourn.ask JOIN adjourn.ask_body USING (no)
WHERE state = 'pending' AND (created_at, no) > ($1, $2) AND (snoozed_until IS NULL OR snoozed_until <= $4)
ORDER BY created_at, no LIMIT $3;

-- name: snoozed_asks
SELECT no, id, state, kind, run, created_at, slot, call, expires_at, settled_at, settled_by, level, snoozed_until, ask.body,
    ask_body.body, (SELECT task.id FROM adjourn.task WHERE task.no = ask.no >> 20)
FROM adjourn.ask JOIN adjourn.ask_body USING (no) WHERE state = 'pending' AND snoozed_until > $1
ORDER BY snoozed_until, no LIMIT $2;

-- name: count_snoozed_asks
SELECT count(*) FROM adjourn.ask WHERE state = 'pending' AND snoozed_until > $1;

-- name: expired_asks
SELECT no, id, state, kind, run, created_at, slot, call, expires_at, settled_at, settled_by, level, snoozed_until, ask.body,
    ask_body.body, (SELECT task.id FROM adjourn.task WHERE task.no = ask.no >> 20)
FROM adjourn.ask JOIN adjourn.ask_body USING (no)
WHERE state = 'pending' AND expires_at IS NOT NULL AND expires_at <= $1 ORDER BY no;

-- name: ask_place
SELECT created_at, no FROM adjourn.ask WHERE id = $1;

-- name: count_open_asks
SELECT count(*) FROM adjourn.ask WHERE state = 'pending';

-- name: asks_like
SELECT id FROM adjourn.ask WHERE id >= $1 AND id < $2 ORDER BY id LIMIT 3;

-- name: insert_ask
INSERT INTO adjourn.ask (
    no, id, state, kind, run, created_at, slot, call, expires_at, settled_at, settled_by, level, snoozed_until, body
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14);

-- name: insert_ask_body
INSERT INTO adjourn.ask_body (no, body) VALUES ($1, $2);

-- name: write_ask
-- rows: no bigint, state text, call integer, expires_at bigint, settled_at bigint, settled_by text, level text, snoozed_until bigint, body bytea
UPDATE adjourn.ask SET
    state = given.state, call = given.call, expires_at = given.expires_at, settled_at = given.settled_at,
    settled_by = given.settled_by, level = given.level, snoozed_until = given.snoozed_until, body = given.body
FROM {given} WHERE ask.no = given.no;

-- name: update_ask_body
-- rows: no bigint, body bytea
UPDATE adjourn.ask_body SET
    body = given.body
FROM {given} WHERE ask_body.no = given.no;

-- name: count_turns
SELECT count(*) FROM adjourn.turn WHERE run = $1 AND key = $2;

-- name: turns_left_open
SELECT kind, thing FROM adjourn.turn WHERE run = $1 AND left_open ORDER BY no;

-- name: insert_turn
INSERT INTO adjourn.turn (run, key, kind, thing, left_open) VALUES ($1, $2, $3, $4, $5);

-- name: close_turn
UPDATE adjourn.turn SET left_open = false WHERE run = $1 AND thing = $2;

-- name: document
SELECT body FROM adjourn.document WHERE task = $1 AND name = $2;

-- name: drop_document
DELETE FROM adjourn.document WHERE task = $1 AND name = $2;

-- name: insert_document
INSERT INTO adjourn.document (task, name, body) VALUES ($1, $2, $3);

-- name: messages
SELECT body FROM adjourn.message WHERE no > $1 AND no <= $2 ORDER BY no;

-- name: trace_of_event
SELECT 1 FROM adjourn.event WHERE xmin = $1::xid8::xid AND task = $2 AND body = $3;

-- name: trace_of_document
SELECT 1 FROM adjourn.document WHERE xmin = $1::xid8::xid AND task = $2 AND name = $3;

-- name: trace_of_message
SELECT 1 FROM adjourn.message WHERE xmin = $1::xid8::xid AND no = $2;

-- name: last_message
SELECT no FROM adjourn.message WHERE no BETWEEN $1 AND $2 ORDER BY no DESC LIMIT 1;

-- name: insert_message
INSERT INTO adjourn.message (no, body) VALUES ($1, $2);

-- name: forget_messages
DELETE FROM adjourn.message WHERE no BETWEEN $1 AND $2;

-- name: shared_document
SELECT body FROM adjourn.shared_document WHERE name = $1;

-- name: lock_shared_document
-- What is not there cannot be locked, so its name is.
SELECT pg_advisory_xact_lock(1633970800, hashtext($1));

-- name: keep_shared_document
INSERT INTO adjourn.shared_document (name, body) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET body = $2;

-- name: head
SELECT head FROM adjourn.task WHERE no = $1;

-- name: update_head
-- rows: no bigint, head bytea
UPDATE adjourn.task SET
    head = given.head
FROM {given} WHERE task.no = given.no;

-- name: seal_events
SELECT no, seal, pg_notify('adjourn', $4)
FROM adjourn.seal_events({schema}, $1::bigint[], $2::bytea[], $3::bytea[]);

-- name: notify
SELECT no, seal, pg_notify('adjourn', $1) FROM (VALUES (1)) AS one
LEFT JOIN (SELECT no, seal FROM adjourn.event ORDER BY no DESC LIMIT 1) AS head ON true;

-- name: events
SELECT body FROM adjourn.event WHERE task = $1 AND body IS NOT NULL ORDER BY no;

-- name: first_event
SELECT body FROM adjourn.event WHERE task = $1 ORDER BY no LIMIT 1;

-- name: first_told
SELECT event.body FROM adjourn.event JOIN adjourn.task ON task.no = event.task WHERE task.id = $1::text ORDER BY event.no LIMIT 1;

-- name: newest_told
SELECT event.body FROM adjourn.event JOIN adjourn.task ON task.no = event.task
WHERE task.id = $1::text AND event.body IS NOT NULL ORDER BY event.no DESC LIMIT $2;

-- name: last_events
SELECT no, body, seal FROM adjourn.event WHERE task = $1 AND body IS NOT NULL ORDER BY no DESC LIMIT $2;

-- name: trail
SELECT event.no, task.id, event.body, link, seal FROM adjourn.event LEFT JOIN adjourn.task ON task.no = event.task
WHERE event.no > $1 ORDER BY event.no LIMIT $2;

-- name: trail_head
SELECT no, seal FROM adjourn.event ORDER BY no DESC LIMIT 1;

-- name: happened
SELECT event.no, task.id, event.body, seal FROM adjourn.event JOIN adjourn.task ON task.no = event.task
WHERE event.no > $1 AND event.body IS NOT NULL ORDER BY event.no LIMIT $2;

-- name: events_before
SELECT no, body FROM adjourn.event WHERE no < $1 AND body IS NOT NULL ORDER BY no DESC LIMIT 500;

-- name: outbox
SELECT body FROM adjourn.outbox WHERE notifier = $1;

-- name: save_outbox
INSERT INTO adjourn.outbox (notifier, body) VALUES ($1, $2) ON CONFLICT (notifier) DO UPDATE SET body = $2;

-- name: trail_of
SELECT no, body FROM adjourn.event WHERE task = $1 ORDER BY no;

-- name: forget_event
UPDATE adjourn.event SET body = NULL, link = $2 WHERE no = $1;

-- name: forget_task
DELETE FROM adjourn.task WHERE no = $1;

-- name: forget_family
DELETE FROM adjourn.family WHERE no = $1 AND NOT EXISTS (SELECT 1 FROM adjourn.task WHERE family = $1);

-- name: family
SELECT family FROM adjourn.task WHERE no = $1;

-- name: forget_spec
DELETE FROM adjourn.task_spec WHERE no = $1;

-- name: forget_runs
DELETE FROM adjourn.run WHERE no BETWEEN $1 AND $2;

-- name: forget_calls
DELETE FROM adjourn.call WHERE no BETWEEN $1 AND $2;

-- name: forget_call_bodies
DELETE FROM adjourn.call_body WHERE no BETWEEN $1 AND $2;

-- name: forget_asks
DELETE FROM adjourn.ask WHERE no BETWEEN $1 AND $2;

-- name: forget_ask_bodies
DELETE FROM adjourn.ask_body WHERE no BETWEEN $1 AND $2;

-- name: forget_turns
DELETE FROM adjourn.turn WHERE run BETWEEN $1 AND $2;

-- name: forget_documents
DELETE FROM adjourn.document WHERE task = $1;

-- name: enqueue
-- rows: no bigint, engine_task uuid, engine_run uuid
-- The rows that absurd.spawn_task makes, planned once.
WITH moment AS (SELECT absurd.current_time() AS now), spawned AS (
    INSERT INTO absurd.{tasks} (task_id, task_name, params, max_attempts, enqueue_at, state, attempts, last_attempt_run)
    SELECT engine_task, 'run', jsonb_build_object('task', no), 1, now, 'pending', 1, engine_run FROM {given}, moment
)
INSERT INTO absurd.{runs} (run_id, task_id, attempt, state, available_at)
SELECT engine_run, engine_task, 1, 'pending', now FROM {given}, moment;

-- name: make_queue
SELECT adjourn.made_queue($1);

-- name: dequeue
-- rows: no bigint, engine_task uuid
WITH gone AS (DELETE FROM absurd.{runs} AS run USING {given} WHERE run.task_id = given.engine_task)
DELETE FROM absurd.{tasks} AS task USING {given} WHERE task.task_id = given.engine_task;

-- name: place
SELECT pool, engine_task::text, engine_run::text FROM adjourn.task WHERE no = $1;

-- name: put_back
-- rows: no bigint, seconds double precision
SELECT adjourn.put_back(no, seconds) FROM {given};

-- name: retire
SELECT adjourn.retire($1);

-- name: hold
-- rows: no bigint, engine_run uuid, holder text, seconds double precision, sentence text
-- Takes this very task for a supervisor, as absurd.claim_task takes the next one; or renews what it holds.
WITH moment AS (SELECT absurd.current_time() AS now), held AS (
    UPDATE absurd.{runs} AS run SET
        state = 'running', claimed_by = given.holder, claim_expires_at = now + make_interval(secs => given.seconds), started_at = now,
        available_at = now
    FROM {given}, moment
    WHERE run.run_id = given.engine_run
        AND (run.state IN ('pending', 'sleeping') OR (run.state = 'running' AND run.claimed_by = given.holder))
    RETURNING run.run_id, run.task_id
), begun AS (
    UPDATE absurd.{tasks} AS task SET state = 'running', first_started_at = coalesce(first_started_at, now)
    FROM held, moment WHERE task.task_id = held.task_id
)
SELECT adjourn.require(EXISTS (SELECT 1 FROM held WHERE held.run_id = given.engine_run), given.sentence) FROM {given};

-- name: fence
-- rows: no bigint, engine_run uuid, holder text, sentence text
-- Nobody takes away what a supervisor holds before the transaction ends.
WITH held AS (
    SELECT run.run_id FROM absurd.{runs} AS run JOIN {given} ON run.run_id = given.engine_run
    WHERE run.state = 'running' AND run.claimed_by = given.holder FOR UPDATE OF run
)
SELECT adjourn.require(EXISTS (SELECT 1 FROM held WHERE held.run_id = given.engine_run), given.sentence) FROM {given};

-- name: wrest
SELECT adjourn.wrest($1, $2);

-- name: abandoned
SELECT run.no & 1048575, task.id FROM adjourn.task
JOIN adjourn.run ON run.no BETWEEN task.no << 20 AND (task.no << 20) + 1048575 AND run.state = 'running'
WHERE task.state = 'running' AND adjourn.lease_end(task.pool, task.engine_run) <= absurd.current_time() ORDER BY run.no;

-- name: appear
INSERT INTO adjourn.supervisor (name, machine, host, body, alive_until)
VALUES ($1, $2, $3, $4, clock_timestamp() + make_interval(secs => $5))
ON CONFLICT (name) DO UPDATE SET alive_until = excluded.alive_until;

-- name: leave
DELETE FROM adjourn.supervisor WHERE name = $1;

-- name: beat
SELECT task.id, run_no & 1048575 FROM adjourn.beat($1, $2, $3) AS run_no JOIN adjourn.task ON task.no = run_no >> 20;

-- name: living
SELECT name, machine, host, body FROM adjourn.supervisor WHERE alive_until > clock_timestamp() ORDER BY name;

-- name: clean_up
DELETE FROM adjourn.supervisor WHERE alive_until < clock_timestamp() - interval '1 day';

-- name: clean_queues
SELECT absurd.cleanup_tasks(queue_name, $1, 1000) FROM absurd.queues WHERE queue_name LIKE 'adjourn\_%';

-- name: take_next
SELECT no, id, state, version, slot, next_call, wish, body, spec
FROM adjourn.require_schema({schema}), adjourn.taken($1, $2, $3);

-- name: leave_to_others
SELECT adjourn.leave_to_others($1, $2, $3);

-- name: login
SELECT
    session_user::text,
    EXISTS (SELECT 1 FROM pg_trigger WHERE tgname = 'guard' AND tgrelid = to_regclass('adjourn.ask')),
    ARRAY(SELECT rolname::text FROM pg_roles WHERE rolname LIKE 'adjourn\_%' AND pg_has_role(session_user, oid, 'MEMBER'))
