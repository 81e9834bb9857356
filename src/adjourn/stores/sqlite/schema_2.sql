-- What a decision is worth, and until when an ask is out of sight.
ALTER TABLE ask ADD COLUMN level TEXT CHECK (level IN ('L0', 'L1', 'L2'));
ALTER TABLE ask ADD COLUMN snoozed_until INTEGER;
-- With the snooze in it, those that sleep are passed over without a look at their rows.
DROP INDEX ask_inbox;
CREATE INDEX ask_inbox ON ask (created_at, no, snoozed_until) WHERE state = 'pending';
CREATE INDEX ask_snoozed ON ask (snoozed_until) WHERE state = 'pending' AND snoozed_until IS NOT NULL;

-- What belongs to no task: policies by their digest, and the ids of decisions that came from outside.
CREATE TABLE shared_document (name TEXT PRIMARY KEY, body BLOB NOT NULL) STRICT, WITHOUT ROWID;
