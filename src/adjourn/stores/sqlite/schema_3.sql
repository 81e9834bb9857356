-- What agents call their calls, what runs a call beside the process of its run, and where a provider can go on.
ALTER TABLE call ADD COLUMN label TEXT;
ALTER TABLE call ADD COLUMN shim TEXT;
ALTER TABLE call ADD COLUMN attempt INTEGER NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX call_label ON call (label, no >> 20) WHERE label IS NOT NULL;
ALTER TABLE run ADD COLUMN session_ref TEXT;
ALTER TABLE run ADD COLUMN resumable INTEGER NOT NULL DEFAULT 0;

-- Transcripts: a step writes only what is new.
CREATE TABLE message (no INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
