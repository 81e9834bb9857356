-- What people's own queries look at: the tables of a common approval worker, read-only.

-- Returns a field of a body, which is a MessagePack map of texts and numbers, or NULL. A body that cannot be read has no fields.
CREATE FUNCTION adjourn.field(body bytea, name text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    at integer := 0;  -- the place of the next byte
    fields integer;
    mark integer;
    size integer;  -- bytes of a text, or of a number
    is_number boolean;
    word text;
    key text;
BEGIN
    mark := get_byte(body, at);
    at := 1;
    fields := mark & 15;
    IF mark = 222 THEN  -- a map of up to 65,535 fields; any other begins with 0x80 and its number
        fields := get_byte(body, 1) * 256 + get_byte(body, 2);
        at := 3;
    ELSIF mark & 240 != 128 THEN
        RETURN NULL;
    END IF;
    FOR i IN 1 .. fields * 2 LOOP  -- a key, its value, a key, its value …
        mark := get_byte(body, at);
        at := at + 1;
        is_number := false;
        word := NULL;
        size := 0;
        IF mark < 128 THEN
            word := mark;
        ELSIF mark BETWEEN 160 AND 191 THEN  -- a text of up to 31 bytes
            size := mark & 31;
        ELSIF mark BETWEEN 217 AND 219 THEN  -- a text whose length follows in 1, 2 or 4 bytes
            FOR each IN 1 .. 1 << (mark - 217) LOOP
                size := size * 256 + get_byte(body, at);
                at := at + 1;
            END LOOP;
        ELSIF mark BETWEEN 204 AND 207 THEN  -- a number of 1, 2, 4 or 8 bytes
            is_number := true;
            size := 1 << (mark - 204);
        ELSIF mark NOT BETWEEN 192 AND 195 THEN  -- neither nothing, false nor true
            RETURN NULL;
        END IF;
        IF is_number THEN
            word := ('x' || lpad(encode(substr(body, at + 1, size), 'hex'), 16, '0'))::bit(64)::bigint;
        ELSIF mark BETWEEN 160 AND 191 OR mark BETWEEN 217 AND 219 THEN
            word := convert_from(substr(body, at + 1, size), 'UTF8');
        END IF;
        at := at + size;
        IF i % 2 = 1 THEN
            key := word;
        ELSIF key = name THEN
            RETURN word;
        END IF;
    END LOOP;
    RETURN NULL;
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END $$;

CREATE VIEW adjourn.tool_runs AS
SELECT
    task.id,
    CASE WHEN task.state = 'waiting' AND EXISTS (
        SELECT 1 FROM adjourn.ask
        WHERE ask.no BETWEEN task.no << 20 AND (task.no << 20) | 1048575 AND ask.run = kept.runs AND ask.kind = 'approval'
    ) THEN 'waiting_approval' ELSE task.state::text END AS status,
    adjourn.field(task.body, 'created_at')::bigint AS created_at,
    adjourn.field(task.body, 'updated_at')::bigint AS updated_at,
    adjourn.field(task.body, 'message') AS message
FROM adjourn.task CROSS JOIN LATERAL (SELECT adjourn.field(task.body, 'runs')::integer AS runs) AS kept;

CREATE VIEW adjourn.approvals AS
SELECT
    ask.id,
    task.id AS tool_run_id,
    ask.state::text AS status,
    CASE WHEN ask.state = 'approved' THEN coalesce(adjourn.field(ask.body, 'reply'), 'approved') END AS value,
    ask.created_at,
    ask.settled_at,
    ask.settled_by
FROM adjourn.ask JOIN adjourn.task ON task.no = ask.no >> 20
WHERE ask.kind = 'approval';
