-- How many approvals an ask needs and which it has, as JSON, so that the guards of roles.sql can count them; and when somebody is reminded of it.
ALTER TABLE adjourn.ask ADD COLUMN approvals smallint NOT NULL DEFAULT 1 CHECK (approvals > 0);
ALTER TABLE adjourn.ask ADD COLUMN given text NOT NULL DEFAULT '[]';
ALTER TABLE adjourn.ask ADD COLUMN remind_at bigint;
CREATE INDEX ask_reminder ON adjourn.ask (remind_at) WHERE state = 'pending' AND remind_at IS NOT NULL;

DROP FUNCTION adjourn.add_ask (bigint, text, text, text, integer, bigint, bytea, integer, bigint, bigint, text, text, bigint, bytea, bytea);
CREATE FUNCTION adjourn.add_ask(
    ask_no bigint, ask_id text, ask_state text, ask_kind text, ask_run integer, ask_created_at bigint, ask_slot bytea,
    ask_call integer, ask_expires_at bigint, ask_settled_at bigint, ask_settled_by text, ask_level text, ask_snoozed_until bigint,
    ask_given text, ask_remind_at bigint, ask_approvals integer, ask_body bytea, asked bytea
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO adjourn.ask (
        no, id, state, kind, run, created_at, slot, call, expires_at, settled_at, settled_by, level, snoozed_until, given, remind_at,
        approvals, body
    ) VALUES (
        ask_no, ask_id, ask_state, ask_kind, ask_run, ask_created_at, ask_slot, ask_call, ask_expires_at, ask_settled_at,
        ask_settled_by, ask_level, ask_snoozed_until, ask_given, ask_remind_at, ask_approvals, ask_body
    );
    INSERT INTO adjourn.ask_body (no, body) VALUES (ask_no, asked);
END $$;

DROP FUNCTION adjourn.write_ask (bigint, text, integer, bigint, bigint, text, text, bigint, bytea);
CREATE FUNCTION adjourn.write_ask(
    ask_no bigint, new_state text, new_call integer, new_expires_at bigint, new_settled_at bigint, new_settled_by text,
    new_level text, new_snoozed_until bigint, new_given text, new_remind_at bigint, new_body bytea
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE adjourn.ask SET
        state = new_state, call = new_call, expires_at = new_expires_at, settled_at = new_settled_at, settled_by = new_settled_by,
        level = new_level, snoozed_until = new_snoozed_until, given = new_given, remind_at = new_remind_at, body = new_body
    WHERE no = ask_no;
END $$;

-- Locks the families of the asks of which somebody is to be reminded.
CREATE FUNCTION adjourn.lock_asks_to_remind(moment bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM adjourn.family WHERE no IN (
        SELECT task.family FROM adjourn.ask JOIN adjourn.task ON task.no = ask.no >> 20
        WHERE ask.state = 'pending' AND remind_at IS NOT NULL AND remind_at <= moment
    ) ORDER BY no FOR UPDATE;
END $$;
