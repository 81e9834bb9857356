-- The name of a pool stands in the text of the functions of its queue. That text is handed over as one quoted word: a name with `$$` in it ended the
-- text between dollar signs, and what followed ran as the owner of the schema.

-- Makes the functions of one queue. Each queue has tables of its own; a function that names them is planned once, one that is told their names never.
CREATE OR REPLACE FUNCTION adjourn.make_queue_functions(queue text) RETURNS void LANGUAGE plpgsql AS $make$
DECLARE
    names text[] := ARRAY['enqueue_' || queue, 'dequeue_' || queue, 'hold_' || queue, 'fence_' || queue];
    runs text := 'r_' || queue;
    tasks text := 't_' || queue;
BEGIN
    -- The rows that absurd.spawn_task makes.
    EXECUTE format(
        'CREATE OR REPLACE FUNCTION adjourn.%I(task_no bigint, engine_task uuid, engine_run uuid) RETURNS void LANGUAGE plpgsql AS %L',
        names[1], format($f$
    DECLARE
        now timestamptz := absurd.current_time();
    BEGIN
        PERFORM adjourn.check_queue('enqueue', task_no, engine_task);
        INSERT INTO absurd.%1$I (task_id, task_name, params, max_attempts, enqueue_at, state, attempts, last_attempt_run)
        VALUES (engine_task, 'run', jsonb_build_object('task', task_no), 1, now, 'pending', 1, engine_run);
        INSERT INTO absurd.%2$I (run_id, task_id, attempt, state, available_at) VALUES (engine_run, engine_task, 1, 'pending', now);
    END $f$, tasks, runs)
    );
    EXECUTE format(
        'CREATE OR REPLACE FUNCTION adjourn.%I(task_no bigint, engine_task uuid) RETURNS void LANGUAGE plpgsql AS %L',
        names[2], format($f$
    BEGIN
        PERFORM adjourn.check_queue('dequeue', task_no, engine_task);
        IF EXISTS (SELECT 1 FROM absurd.%1$I WHERE task_id = engine_task AND (params ->> 'task')::bigint = task_no) THEN
            DELETE FROM absurd.%2$I WHERE task_id = engine_task;
            DELETE FROM absurd.%1$I WHERE task_id = engine_task;
        END IF;
    END $f$, tasks, runs)
    );
    -- Takes this very task for a supervisor, as absurd.claim_task takes the next one; or renews what it holds.
    EXECUTE format(
        'CREATE OR REPLACE FUNCTION adjourn.%I(task_no bigint, engine_run uuid, holder text, seconds double precision, sentence text)
        RETURNS void LANGUAGE plpgsql AS %L',
        names[3], format($f$
    DECLARE
        now timestamptz := absurd.current_time();
        held uuid;
    BEGIN
        UPDATE absurd.%2$I AS run SET
            state = 'running', claimed_by = holder, claim_expires_at = now + make_interval(secs => seconds), started_at = now,
            available_at = now
        WHERE run.run_id = engine_run
            AND (run.state IN ('pending', 'sleeping') OR (run.state = 'running' AND run.claimed_by = holder))
        RETURNING run.task_id INTO held;
        PERFORM adjourn.require(held IS NOT NULL, sentence);
        UPDATE absurd.%1$I AS task SET state = 'running', first_started_at = coalesce(first_started_at, now)
        WHERE task.task_id = held;
    END $f$, tasks, runs)
    );
    -- Nobody takes away what a supervisor holds before the transaction ends.
    EXECUTE format(
        'CREATE OR REPLACE FUNCTION adjourn.%I(task_no bigint, engine_run uuid, holder text, sentence text)
        RETURNS void LANGUAGE plpgsql AS %L',
        names[4], format($f$
    BEGIN
        PERFORM 1 FROM absurd.%1$I AS run
        WHERE run.run_id = engine_run AND run.state = 'running' AND run.claimed_by = holder FOR UPDATE;
        PERFORM adjourn.require(FOUND, sentence);
    END $f$, runs)
    );
    IF to_regproc('adjourn.restrict_queue_functions') IS NOT NULL THEN
        PERFORM adjourn.restrict_queue_functions(queue);  -- what `adjourn store roles` does with all the others
    END IF;
END $make$;

SELECT adjourn.make_queue_functions(queue_name) FROM absurd.queues WHERE queue_name LIKE 'adjourn\_%';
