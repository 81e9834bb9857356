-- What people's own queries look at: the tables of a common approval worker, read-only.
CREATE VIEW tool_runs AS
SELECT
    task.id,
    CASE WHEN task.state = 'waiting' AND EXISTS (
        SELECT 1 FROM ask
        WHERE ask.no BETWEEN task.no << 20 AND (task.no << 20) | 1048575 AND ask.run = task.runs AND ask.kind = 'approval'
    ) THEN 'waiting_approval' ELSE task.state END AS status,
    task.created_at,
    task.updated_at,
    task.message
FROM task;

CREATE VIEW approvals AS
SELECT
    ask.id,
    task.id AS tool_run_id,
    ask.state AS status,
    CASE WHEN ask.state = 'approved' THEN coalesce(ask.reply, 'approved') END AS value,
    ask.created_at,
    ask.settled_at,
    ask.settled_by
FROM ask JOIN task ON task.no = ask.no >> 20
WHERE ask.kind = 'approval';
