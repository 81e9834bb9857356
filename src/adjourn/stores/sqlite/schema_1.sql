-- Bodies stand apart from status rows: a decision rewrites a few bytes, whatever the size of what was decided.
-- `no` of a run, a call and an ask is its task's number times 2^20 plus its own number: one key, no second index.

CREATE TABLE task (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    state TEXT NOT NULL
        CHECK (state IN ('queued', 'running', 'waiting', 'paused', 'succeeded', 'failed', 'canceled')),
    version INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    runs INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    asks INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    pool TEXT NOT NULL,
    next_call INTEGER,
    wish TEXT CHECK (wish IN ('pause', 'cancel')),
    message TEXT,
    slot BLOB,
    head BLOB,
    CHECK (state != 'queued' OR next_call IS NOT NULL)
) STRICT;
CREATE UNIQUE INDEX task_id ON task (id);
CREATE INDEX task_state ON task (state);
CREATE INDEX task_queued ON task (pool) WHERE state = 'queued';
CREATE UNIQUE INDEX task_slot ON task (slot) WHERE slot IS NOT NULL;

CREATE TABLE task_spec (no INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;

CREATE TABLE run (
    no INTEGER PRIMARY KEY,
    state TEXT NOT NULL CHECK (state IN ('running', 'waiting', 'paused', 'succeeded', 'failed', 'canceled')),
    version INTEGER NOT NULL,
    call INTEGER NOT NULL,
    supervisor TEXT NOT NULL,
    session_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    shim TEXT,
    exit_code INTEGER,
    signal INTEGER,
    message TEXT,
    checkpoint_id TEXT,
    paused_at INTEGER,
    pause_reason TEXT CHECK (pause_reason IN ('tool_approval_required', 'input_required', 'user_interrupt')),
    resumed_from INTEGER,
    restart_of INTEGER,
    superseded_by INTEGER
) STRICT;
CREATE UNIQUE INDEX run_checkpoint ON run (checkpoint_id) WHERE checkpoint_id IS NOT NULL;

CREATE TABLE call (
    no INTEGER PRIMARY KEY,
    state TEXT NOT NULL CHECK (
        state IN (
            'pending', 'approved', 'rejected', 'expired', 'withdrawn',
            'claimed', 'executing', 'done', 'failed', 'uncertain'
        )
    ),
    version INTEGER NOT NULL,
    tool TEXT NOT NULL,
    digest BLOB NOT NULL,
    nonce TEXT NOT NULL,
    claimed_by TEXT,
    approved_by TEXT,
    ask INTEGER,
    CHECK (state NOT IN ('claimed', 'executing') OR claimed_by IS NOT NULL)
) STRICT;
CREATE INDEX call_open ON call (no) WHERE state IN ('pending', 'approved', 'claimed', 'executing', 'uncertain');

CREATE TABLE call_body (no INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;

CREATE TABLE ask (
    no INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    state TEXT NOT NULL
        CHECK (state IN ('pending', 'approved', 'rejected', 'answered', 'settled', 'expired', 'withdrawn')),
    kind TEXT NOT NULL CHECK (kind IN ('approval', 'question', 'uncertain')),
    run INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    slot BLOB,
    call INTEGER,
    expires_at INTEGER,
    settled_at INTEGER,
    settled_by TEXT,
    reply TEXT,
    CHECK ((state = 'pending') = (settled_at IS NULL))
) STRICT;
CREATE UNIQUE INDEX ask_id ON ask (id);
CREATE INDEX ask_inbox ON ask (created_at) WHERE state = 'pending';
CREATE INDEX ask_pending ON ask (no) WHERE state = 'pending';
CREATE INDEX ask_expiry ON ask (expires_at) WHERE state = 'pending' AND expires_at IS NOT NULL;
CREATE INDEX ask_slot ON ask (slot) WHERE slot IS NOT NULL;

CREATE TABLE ask_body (no INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;

CREATE TABLE turn (
    no INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    key BLOB NOT NULL,
    kind TEXT NOT NULL,
    thing TEXT NOT NULL,
    left_open INTEGER NOT NULL
) STRICT;
CREATE INDEX turn_run ON turn (run, key);

CREATE TABLE document (
    task INTEGER NOT NULL,
    name TEXT NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX document_name ON document (task, name);

CREATE TABLE event (
    no INTEGER PRIMARY KEY,
    task INTEGER NOT NULL,
    body BLOB,
    link BLOB,
    seal BLOB NOT NULL
) STRICT;
CREATE INDEX event_task ON event (task);

-- One row per notifier: its place in `event`, and the few events that it did not take. What is to be told is read from `event`.
CREATE TABLE outbox (notifier TEXT PRIMARY KEY, body BLOB NOT NULL) STRICT;
