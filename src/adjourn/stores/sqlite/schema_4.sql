-- Two more reasons of a pause. SQLite cannot change a CHECK, so the column is made again.
ALTER TABLE run RENAME COLUMN pause_reason TO old_reason;
ALTER TABLE run ADD COLUMN pause_reason TEXT CHECK (
    pause_reason IN ('tool_approval_required', 'input_required', 'user_interrupt', 'unavailable', 'limit_reached')
);
UPDATE run SET pause_reason = old_reason WHERE old_reason IS NOT NULL;
ALTER TABLE run DROP COLUMN old_reason;
