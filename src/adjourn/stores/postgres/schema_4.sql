-- Two more reasons of a pause.
ALTER DOMAIN adjourn.pause_reason DROP CONSTRAINT pause_reason_check;
ALTER DOMAIN adjourn.pause_reason ADD CONSTRAINT pause_reason_check CHECK (
    value IN ('tool_approval_required', 'input_required', 'user_interrupt', 'unavailable', 'limit_reached')
);
