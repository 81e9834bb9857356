-- part: task
task.no, body, id, created_at, slot, state, version, session_id, updated_at, runs, calls, asks, tries,
    next_call, wish, message
FROM task JOIN task_spec USING (no)

-- part: run
no, call, session_id, created_at, resumed_from, restart_of, state, version, supervisor, updated_at,
    shim, exit_code, signal, message, checkpoint_id, paused_at, pause_reason, superseded_by,
    session_ref, resumable
FROM run

-- part: call
no, body, tool, nonce, label, state, version, digest, claimed_by, approved_by, ask, shim, attempt
FROM call JOIN call_body USING (no)

-- part: ask
no, body, (SELECT task.id FROM task WHERE task.no = ask.no >> 20),
    id, kind, run, created_at, slot, call, state, expires_at, settled_at, settled_by, reply, level,
    snoozed_until, given, remind_at
FROM ask JOIN ask_body USING (no)

-- name: task_by_id
SELECT {task} WHERE id = ?;

-- name: task_in_slot
SELECT {task} WHERE slot = ?;

-- name: task_no
SELECT no FROM task WHERE id = ?;

-- name: task_id
SELECT id FROM task WHERE no = ?;

-- name: tasks_like
SELECT id FROM task WHERE id >= ?1 AND id < ?2
UNION
SELECT task.id FROM run JOIN task ON task.no = run.no >> 20 WHERE checkpoint_id >= ?1 AND checkpoint_id < ?2
ORDER BY 1 LIMIT 3;

-- name: tasks_before
SELECT {task} WHERE task.no < ? ORDER BY task.no DESC LIMIT ?;

-- name: tasks_in_state_before
SELECT {task} WHERE state = ? AND task.no < ? ORDER BY task.no DESC LIMIT ?;

-- name: unwanted_tasks
SELECT id FROM task WHERE state = 'running' AND wish IS NOT NULL;

-- name: queued
SELECT {task} WHERE pool = ? AND state = 'queued' ORDER BY task.no LIMIT ?;

-- name: insert_task
INSERT INTO task (
    id, created_at, slot, state, version, session_id, updated_at, runs, calls, asks, tries,
    next_call, wish, message, pool
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING no;

-- name: insert_spec
INSERT INTO task_spec (no, body) VALUES (?, ?);

-- name: update_spec
UPDATE task_spec SET body = ?2 WHERE no = ?1;

-- name: update_task
UPDATE task SET state = ?, version = ?, session_id = ?, updated_at = ?, runs = ?, calls = ?, asks = ?, tries = ?, next_call = ?,
    wish = ?, message = ?
WHERE no = ? AND version = ? AND state = ?;

-- name: run
SELECT {run} WHERE no = ?;

-- name: runs
SELECT {run} WHERE no BETWEEN ? AND ? ORDER BY no;

-- name: runs_like
SELECT no FROM run WHERE checkpoint_id >= ? AND checkpoint_id < ? LIMIT 2;

-- name: insert_run
INSERT INTO run (
    no, call, session_id, created_at, resumed_from, restart_of, state, version, supervisor,
    updated_at, shim, exit_code, signal, message, checkpoint_id, paused_at, pause_reason,
    superseded_by, session_ref, resumable
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: update_run
UPDATE run SET state = ?, version = ?, supervisor = ?, updated_at = ?, shim = ?, exit_code = ?, signal = ?, message = ?, checkpoint_id = ?,
    paused_at = ?, pause_reason = ?, superseded_by = ?, session_ref = ?, resumable = ?
WHERE no = ? AND version = ? AND state = ?;

-- name: call
SELECT {call} WHERE no = ?;

-- name: calls
SELECT {call} WHERE no BETWEEN ? AND ? ORDER BY no;

-- name: calls_in
SELECT {call}
WHERE no BETWEEN ? AND ? AND state IN ('pending', 'approved', 'claimed', 'executing', 'uncertain') AND state = ? ORDER BY no;

-- name: call_labelled
SELECT no FROM call WHERE label = ? AND no BETWEEN ? AND ?;

-- name: insert_call
INSERT INTO call (no, tool, nonce, label, state, version, digest, claimed_by, approved_by, ask, shim, attempt)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_call_body
INSERT INTO call_body (no, body) VALUES (?, ?);

-- name: update_call
UPDATE call SET state = ?, version = ?, digest = ?, claimed_by = ?, approved_by = ?, ask = ?, shim = ?, attempt = ?
WHERE no = ? AND version = ? AND state = ? AND digest = ? AND claimed_by IS ?;

-- name: update_call_body
UPDATE call_body SET body = ?2 WHERE no = ?1;

-- name: ask_by_id
SELECT {ask} WHERE id = ?;

-- name: ask_by_no
SELECT {ask} WHERE no = ?;

-- name: ask_in_slot
SELECT {ask} WHERE slot = ? AND state != 'withdrawn' ORDER BY no DESC LIMIT 1;

-- name: asks
SELECT {ask} WHERE no BETWEEN ? AND ? ORDER BY no;

-- name: asks_of_run
-- Runs ask one after the other: looked for from the end, what the newest one asked costs no history.
SELECT {ask}
WHERE no > coalesce((SELECT no FROM ask WHERE no BETWEEN ?1 AND ?2 AND run < ?3 ORDER BY no DESC LIMIT 1), ?1) AND no <= ?2 AND run = ?3
ORDER BY no;

-- name: open_asks_of
SELECT {ask} WHERE no BETWEEN ? AND ? AND state = 'pending' ORDER BY no;

-- name: open_asks
SELECT {ask} WHERE state = 'pending' AND (created_at, no) > (?, ?) ORDER BY created_at, no LIMIT ?;

-- name: awake_asks
SELECT {ask}
WHERE state = 'pending' AND (created_at, no) > (?1, ?2) AND (snoozed_until IS NULL OR snoozed_until <= ?4)
ORDER BY created_at, no LIMIT ?3;

-- name: asks_before
SELECT {ask}
WHERE state = 'pending' AND (created_at, no) > (?1, ?2) AND (created_at, no) < (?5, ?6)
    AND (snoozed_until IS NULL OR snoozed_until <= ?4)
ORDER BY created_at DESC, no DESC LIMIT ?3;

-- name: open_ask_ids
SELECT id, kind FROM ask
WHERE state = 'pending' AND (snoozed_until IS NULL OR snoozed_until <= ?1) ORDER BY created_at, no;

-- name: snoozed_asks
SELECT {ask} WHERE state = 'pending' AND snoozed_until IS NOT NULL AND snoozed_until > ?
ORDER BY snoozed_until, no LIMIT ?;

-- name: count_snoozed_asks
SELECT count(*) FROM ask WHERE state = 'pending' AND snoozed_until IS NOT NULL AND snoozed_until > ?;

-- name: expired_asks
SELECT {ask} WHERE state = 'pending' AND expires_at IS NOT NULL AND expires_at <= ? ORDER BY no;

-- name: asks_to_remind
SELECT {ask} WHERE state = 'pending' AND remind_at IS NOT NULL AND remind_at <= ? ORDER BY no;

-- name: ask_place
SELECT created_at, no FROM ask WHERE id = ?;

-- name: count_open_asks
SELECT count(*) FROM ask WHERE state = 'pending';

-- name: asks_like
SELECT id FROM ask WHERE id >= ? AND id < ? ORDER BY id LIMIT 3;

-- name: insert_ask
INSERT INTO ask (
    no, id, kind, run, created_at, slot, call, state, expires_at, settled_at, settled_by, reply,
    level, snoozed_until, given, remind_at
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_ask_body
INSERT INTO ask_body (no, body) VALUES (?, ?);

-- name: update_ask
UPDATE ask SET state = ?, expires_at = ?, settled_at = ?, settled_by = ?, reply = ?, level = ?, snoozed_until = ?,
    given = ?, remind_at = ?
WHERE no = ? AND state = ?;

-- name: count_turns
SELECT count(*) FROM turn WHERE run = ? AND key = ?;

-- name: turns_left_open
SELECT kind, thing FROM turn WHERE run = ? AND left_open = 1 ORDER BY no;

-- name: insert_turn
INSERT INTO turn (run, key, kind, thing, left_open) VALUES (?, ?, ?, ?, ?);

-- name: close_turn
UPDATE turn SET left_open = 0 WHERE run = ? AND thing = ?;

-- name: document
SELECT body FROM document WHERE task = ? AND name = ?;

-- name: drop_document
DELETE FROM document WHERE task = ? AND name = ?;

-- name: insert_document
INSERT INTO document (task, name, body) VALUES (?, ?, ?);

-- name: messages
SELECT body FROM message WHERE no > ? AND no <= ? ORDER BY no;

-- name: last_message
SELECT no FROM message WHERE no BETWEEN ? AND ? ORDER BY no DESC LIMIT 1;

-- name: insert_message
INSERT INTO message (no, body) VALUES (?, ?);

-- name: forget_messages
DELETE FROM message WHERE no BETWEEN ? AND ?;

-- name: shared_document
SELECT body FROM shared_document WHERE name = ?;

-- name: keep_shared_document
INSERT INTO shared_document (name, body) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET body = ?2;

-- name: head
SELECT no, head FROM task WHERE id = ?;

-- name: update_head
UPDATE task SET head = ?2 WHERE no = ?1;

-- name: last_seal
SELECT seal FROM event ORDER BY no DESC LIMIT 1;

-- name: seal_at
SELECT seal FROM event WHERE no = ?;

-- name: insert_event
INSERT INTO event (task, body, seal) VALUES (?, ?, ?);

-- name: events
SELECT body FROM event WHERE task = ? AND body IS NOT NULL ORDER BY no;

-- name: first_event
SELECT body FROM event WHERE task = ? ORDER BY no LIMIT 1;

-- name: last_events
SELECT no, body, seal FROM event WHERE task = ? AND body IS NOT NULL ORDER BY no DESC LIMIT ?;

-- name: trail
SELECT event.no, task.id, body, link, seal FROM event LEFT JOIN task ON task.no = event.task
WHERE event.no > ? ORDER BY event.no LIMIT ?;

-- name: trail_head
SELECT no, seal FROM event ORDER BY no DESC LIMIT 1;

-- name: happened
SELECT event.no, task.id, body, seal FROM event JOIN task ON task.no = event.task
WHERE event.no > ? AND body IS NOT NULL ORDER BY event.no LIMIT ?;

-- name: events_before
SELECT no, body FROM event WHERE no < ? AND body IS NOT NULL ORDER BY no DESC LIMIT 500;

-- name: outbox
SELECT body FROM outbox WHERE notifier = ?;

-- name: save_outbox
INSERT INTO outbox (notifier, body) VALUES (?1, ?2) ON CONFLICT (notifier) DO UPDATE SET body = ?2;

-- name: trail_of
SELECT no, body FROM event WHERE task = ? ORDER BY no;

-- name: forget_event
UPDATE event SET body = NULL, link = ?2 WHERE no = ?1;

-- name: clear_task
UPDATE task SET slot = NULL, state = ?2, version = version + 1, session_id = ?3, updated_at = ?4, runs = 0, calls = 0, asks = 0,
    tries = 0, next_call = NULL, wish = NULL, message = ?5
WHERE no = ?1;

-- name: forget_task
DELETE FROM task WHERE no = ?;

-- name: forget_spec
DELETE FROM task_spec WHERE no = ?;

-- name: forget_runs
DELETE FROM run WHERE no BETWEEN ? AND ?;

-- name: forget_calls
DELETE FROM call WHERE no BETWEEN ? AND ?;

-- name: forget_call_bodies
DELETE FROM call_body WHERE no BETWEEN ? AND ?;

-- name: forget_asks
DELETE FROM ask WHERE no BETWEEN ? AND ?;

-- name: forget_ask_bodies
DELETE FROM ask_body WHERE no BETWEEN ? AND ?;

-- name: forget_turns
DELETE FROM turn WHERE run BETWEEN ? AND ?;

-- name: forget_documents
DELETE FROM document WHERE task = ?;
