-- Which approvals an ask has that needs several, as JSON, and when somebody is reminded of it.
ALTER TABLE ask ADD COLUMN given TEXT NOT NULL DEFAULT '[]';
ALTER TABLE ask ADD COLUMN remind_at INTEGER;
CREATE INDEX ask_reminder ON ask (remind_at) WHERE state = 'pending' AND remind_at IS NOT NULL;
