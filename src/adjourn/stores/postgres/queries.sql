-- part: task
task.no, id, state, version, slot, next_call, wish, task.body, task_spec.body
FROM adjourn.task JOIN adjourn.task_spec USING (no)

-- part: run
no, state, version, supervisor, checkpoint_id, pause_reason, body
FROM adjourn.run

-- part: call
no, state, version, digest, claimed_by, approved_by, label, call.body, call_body.body
FROM adjourn.call JOIN adjourn.call_body USING (no)

-- part: ask
no, id, state, kind, run, created_at, slot, call, expires_at, settled_at, settled_by, level, snoozed_until,
    given, remind_at, approvals,
    ask.body, ask_body.body, (SELECT task.id FROM adjourn.task WHERE task.no = ask.no >> 20)
FROM adjourn.ask JOIN adjourn.ask_body USING (no)

-- part: last_run
LEFT JOIN LATERAL (
    SELECT * FROM adjourn.run WHERE run.no BETWEEN task.no << 20 AND (task.no << 20) + 1048575 ORDER BY run.no DESC LIMIT 1
) AS run ON true

-- name: task_by_id
SELECT {task} WHERE id = $1;

-- name: task_in_slot
SELECT {task} WHERE slot = $1;

-- name: task_no
SELECT no FROM adjourn.task WHERE id = $1;

-- name: task_id
SELECT id FROM adjourn.task WHERE no = $1;

-- name: lock_families
SELECT adjourn.lock_families(ARRAY(SELECT family FROM adjourn.task WHERE task.no {named}));

-- name: guard
SELECT adjourn.guard($1, $2, $3);

-- name: whole_tasks
SELECT task.no, id, task.state, task.version, slot, next_call, wish, task.body,
    (SELECT body FROM adjourn.task_spec WHERE task_spec.no = task.no),
    pool, engine_task::text, engine_run::text, head,
    (SELECT event.body FROM adjourn.event WHERE event.task = task.no ORDER BY event.no LIMIT 1),
    EXISTS (SELECT 1 FROM adjourn.turn WHERE turn.run = run.no AND left_open),
    run.no, run.state, run.version, supervisor, checkpoint_id, pause_reason, run.body
FROM adjourn.task {last_run}
WHERE task.no {named};

-- name: whole_asks
-- All that are open, and those of the last run: what a task asked long ago costs nothing.
SELECT ask.no, ask.id, ask.state, kind, ask.run, created_at, ask.slot, call, expires_at, settled_at, settled_by, level, snoozed_until,
    given, remind_at, approvals,
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
    given, remind_at, approvals,
    ask.body, (SELECT body FROM adjourn.ask_body WHERE ask_body.no = ask.no), task.id
FROM adjourn.task JOIN adjourn.task_spec ON task_spec.no = task.no
LEFT JOIN adjourn.call ON call.no = (task.no << 20) + next_call
LEFT JOIN adjourn.call_body ON call_body.no = call.no
{last_run}
LEFT JOIN LATERAL (
    SELECT * FROM adjourn.ask WHERE no BETWEEN task.no << 20 AND (task.no << 20) + 1048575 ORDER BY no DESC LIMIT 1
) AS ask ON true
WHERE task.id = $1::text;

-- name: lock_expired_asks
SELECT adjourn.lock_expired_asks($1);

-- name: tasks_like
SELECT id FROM adjourn.task WHERE id >= $1 AND id < $2
UNION
SELECT task.id FROM adjourn.run JOIN adjourn.task ON task.no = run.no >> 20 WHERE checkpoint_id >= $1 AND checkpoint_id < $2
ORDER BY 1 LIMIT 3;

-- name: tasks_before
SELECT {task} WHERE task.no < $1 ORDER BY task.no DESC LIMIT $2;

-- name: tasks_in_state_before
SELECT {task} WHERE state = $1 AND task.no < $2 ORDER BY task.no DESC LIMIT $3;

-- name: running_tasks
SELECT task.no, id, task.state, task.version, slot, next_call, wish, task.body, task_spec.body,
    run.no, run.state, run.version, supervisor, checkpoint_id, pause_reason, run.body
FROM adjourn.task JOIN adjourn.task_spec USING (no) {last_run}
WHERE task.state = 'running' ORDER BY task.no;

-- name: unwanted_tasks
SELECT id FROM adjourn.task WHERE state = 'running' AND wish IS NOT NULL;

-- name: queued
SELECT {task} WHERE pool = $1 AND state = 'queued' ORDER BY task.no LIMIT $2;

-- name: insert_task
SELECT task_no, task_family FROM adjourn.add_task($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- name: update_spec
SELECT adjourn.write_spec($1, $2);

-- name: write_task
-- rows: no bigint, state text, version integer, slot bytea, next_call integer, wish text, body bytea, engine_task uuid, engine_run uuid, head bytea
SELECT adjourn.write_task(no, state, version, slot, next_call, wish, body, engine_task, engine_run, head) FROM {given};

-- name: run
SELECT {run} WHERE no = $1;

-- name: runs
SELECT {run} WHERE no BETWEEN $1 AND $2 ORDER BY no;

-- name: runs_like
SELECT no FROM adjourn.run WHERE checkpoint_id >= $1 AND checkpoint_id < $2 LIMIT 2;

-- name: insert_run
SELECT adjourn.add_run($1, $2, $3, $4, $5, $6, $7);

-- name: write_run
-- rows: no bigint, state text, version integer, supervisor text, checkpoint_id text, pause_reason text, body bytea
SELECT adjourn.write_run(no, state, version, supervisor, checkpoint_id, pause_reason, body) FROM {given};

-- name: call
SELECT {call} WHERE no = $1;

-- name: calls
SELECT {call} WHERE no BETWEEN $1 AND $2 ORDER BY no;

-- name: calls_in
SELECT {call}
WHERE no BETWEEN $1 AND $2 AND state IN ('pending', 'approved', 'claimed', 'executing', 'uncertain') AND state = $3 ORDER BY no;

-- name: insert_call
SELECT adjourn.add_call($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- name: call_labelled
SELECT no FROM adjourn.call WHERE label = $1 AND no BETWEEN $2 AND $3;

-- name: write_call
-- rows: no bigint, state text, version integer, digest bytea, claimed_by text, approved_by text, label text, body bytea
SELECT adjourn.write_call(no, state, version, digest, claimed_by, approved_by, label, body) FROM {given};

-- name: update_call_body
-- rows: no bigint, body bytea
SELECT adjourn.write_call_body(no, body) FROM {given};

-- name: ask_by_id
SELECT {ask} WHERE id = $1;

-- name: ask_by_no
SELECT {ask} WHERE no = $1;

-- name: ask_in_slot
SELECT {ask} WHERE slot = $1 AND state != 'withdrawn' ORDER BY no DESC LIMIT 1;

-- name: asks
SELECT {ask} WHERE no BETWEEN $1 AND $2 ORDER BY no;

-- name: asks_of_run
-- Runs ask one after the other: looked for from the end, what the newest one asked costs no history.
SELECT {ask}
WHERE no > coalesce((SELECT no FROM adjourn.ask WHERE no BETWEEN $1 AND $2 AND run < $3 ORDER BY no DESC LIMIT 1), $1)
    AND no <= $2 AND run = $3
ORDER BY no;

-- name: open_asks_of
SELECT {ask} WHERE no BETWEEN $1 AND $2 AND state = 'pending' ORDER BY no;

-- name: open_asks
SELECT {ask} WHERE state = 'pending' AND (created_at, no) > ($1, $2)
ORDER BY created_at, no LIMIT $3;

-- name: awake_asks
SELECT {ask}
WHERE state = 'pending' AND (created_at, no) > ($1, $2) AND (snoozed_until IS NULL OR snoozed_until <= $4)
ORDER BY created_at, no LIMIT $3;

-- name: asks_before
SELECT {ask}
WHERE state = 'pending' AND (created_at, no) > ($1, $2) AND (created_at, no) < ($5, $6)
    AND (snoozed_until IS NULL OR snoozed_until <= $4)
ORDER BY created_at DESC, no DESC LIMIT $3;

-- name: open_ask_ids
SELECT id, kind FROM adjourn.ask
WHERE state = 'pending' AND (snoozed_until IS NULL OR snoozed_until <= $1) ORDER BY created_at, no;

-- name: snoozed_asks
SELECT {ask} WHERE state = 'pending' AND snoozed_until > $1
ORDER BY snoozed_until, no LIMIT $2;

-- name: count_snoozed_asks
SELECT count(*) FROM adjourn.ask WHERE state = 'pending' AND snoozed_until > $1;

-- name: expired_asks
SELECT {ask}
WHERE state = 'pending' AND expires_at IS NOT NULL AND expires_at <= $1 ORDER BY no;

-- name: lock_asks_to_remind
SELECT adjourn.lock_asks_to_remind($1);

-- name: asks_to_remind
SELECT {ask}
WHERE state = 'pending' AND remind_at IS NOT NULL AND remind_at <= $1 ORDER BY no;

-- name: ask_place
SELECT created_at, no FROM adjourn.ask WHERE id = $1;

-- name: count_open_asks
SELECT count(*) FROM adjourn.ask WHERE state = 'pending';

-- name: asks_like
SELECT id FROM adjourn.ask WHERE id >= $1 AND id < $2 ORDER BY id LIMIT 3;

-- name: insert_ask
SELECT adjourn.add_ask($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18);

-- name: write_ask
-- rows: no bigint, state text, call integer, expires_at bigint, settled_at bigint, settled_by text, level text, snoozed_until bigint, given text, remind_at bigint, body bytea
SELECT adjourn.write_ask(no, state, call, expires_at, settled_at, settled_by, level, snoozed_until, given.given, remind_at, body) FROM {given};

-- name: update_ask_body
-- rows: no bigint, body bytea
SELECT adjourn.write_ask_body(no, body) FROM {given};

-- name: count_turns
SELECT count(*) FROM adjourn.turn WHERE run = $1 AND key = $2;

-- name: turns_left_open
SELECT kind, thing FROM adjourn.turn WHERE run = $1 AND left_open ORDER BY no;

-- name: insert_turn
SELECT adjourn.add_turn($1, $2, $3, $4, $5);

-- name: close_turn
SELECT adjourn.close_turn($1, $2);

-- name: document
SELECT body FROM adjourn.document WHERE task = $1 AND name = $2;

-- name: drop_document
SELECT adjourn.drop_document($1, $2);

-- name: insert_document
SELECT adjourn.add_document($1, $2, $3);

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
SELECT adjourn.add_message($1, $2);

-- name: shared_document
SELECT body FROM adjourn.shared_document WHERE name = $1;

-- name: lock_shared_document
SELECT adjourn.lock_shared_document($1);

-- name: keep_shared_document
SELECT adjourn.keep_shared_document($1, $2);

-- name: head
SELECT head FROM adjourn.task WHERE no = $1;

-- name: update_head
-- rows: no bigint, head bytea
SELECT adjourn.write_head(no, head) FROM {given};

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
SELECT adjourn.save_outbox($1, $2);

-- name: trail_of
SELECT no, body FROM adjourn.event WHERE task = $1 ORDER BY no;

-- name: forget_task
SELECT adjourn.forget_task($1, $2, $3);

-- name: enqueue
-- rows: no bigint, engine_task uuid, engine_run uuid
SELECT adjourn.{enqueue}(no, engine_task, engine_run) FROM {given};

-- name: make_queue
SELECT adjourn.made_queue($1);

-- name: dequeue
-- rows: no bigint, engine_task uuid
SELECT adjourn.{dequeue}(no, engine_task) FROM {given};

-- name: place
SELECT pool, engine_task::text, engine_run::text FROM adjourn.task WHERE no = $1;

-- name: put_back
-- rows: no bigint, seconds double precision
SELECT adjourn.put_back(no, seconds) FROM {given};

-- name: hold
-- rows: no bigint, engine_run uuid, holder text, seconds double precision, sentence text
SELECT adjourn.{hold}(no, engine_run, holder, seconds, sentence) FROM {given};

-- name: fence
-- rows: no bigint, engine_run uuid, holder text, sentence text
SELECT adjourn.{fence}(no, engine_run, holder, sentence) FROM {given};

-- name: wrest
SELECT adjourn.wrest($1, $2);

-- name: abandoned
SELECT run.no & 1048575, task.id FROM adjourn.task
JOIN adjourn.run ON run.no BETWEEN task.no << 20 AND (task.no << 20) + 1048575 AND run.state = 'running'
WHERE task.state = 'running' AND adjourn.lease_end(task.pool, task.engine_run) <= absurd.current_time() ORDER BY run.no;

-- name: appear
SELECT adjourn.appear($1, $2, $3, $4, $5);

-- name: leave
SELECT adjourn.leave($1);

-- name: beat
SELECT task.id, run_no & 1048575 FROM adjourn.beat($1, $2, $3) AS run_no JOIN adjourn.task ON task.no = run_no >> 20;

-- name: living
SELECT name, machine, host, body FROM adjourn.supervisor WHERE alive_until > clock_timestamp() ORDER BY name;

-- name: clean_up
SELECT adjourn.clean_up($1);

-- name: take_next
SELECT no, id, state, version, slot, next_call, wish, body, spec
FROM adjourn.require_schema({schema}), adjourn.taken($1, $2, $3);

-- name: leave_to_others
SELECT adjourn.leave_to_others($1, $2, $3);

-- name: login
SELECT
    session_user::text,
    EXISTS (SELECT 1 FROM pg_trigger WHERE tgname = 'guard' AND tgrelid = to_regclass('adjourn.ask')),
    ARRAY(SELECT rolname::text FROM pg_roles WHERE rolname LIKE 'adjourn\_%' AND pg_has_role(session_user, oid, 'MEMBER'));

-- name: roles_of
SELECT ARRAY(
    SELECT role.rolname::text FROM pg_roles AS role JOIN pg_roles AS login ON login.rolname = $1
    WHERE role.rolname LIKE 'adjourn\_%' AND pg_has_role(login.oid, role.oid, 'MEMBER')
)
