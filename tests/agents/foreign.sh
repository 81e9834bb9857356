#!/bin/sh
# Knows nothing of adjourn but the protocol's files; asks one question and leaves with exit code 0.
response="$ADJOURN_STORE/clarifications/$ADJOURN_TASK_ID.response.yaml"
if [ -f "$response" ]; then
  sed -n 's/.*answer: *//p' "$response" > heard
  exit 0
fi
mkdir -p "$ADJOURN_STORE/clarifications" "$ADJOURN_STORE/checkpoints"
cat > "$ADJOURN_STORE/clarifications/$ADJOURN_TASK_ID.needed.yaml" <<END
[CLARIFICATION_NEEDED]
agent_id: $ADJOURN_TASK_ID
timestamp: 2026-01-18T10:15:23Z
blocked_at: "Supervision pattern selection"
reason: "..."

questions:
  - question_id: Q1
    text: "Which pattern?"

checkpoint_info:
  brief_poll_duration: 60s

work_continues: true
parallel_work_available: |
  Can implement:
  - File watching logic
[/CLARIFICATION_NEEDED]
END
cat > "$ADJOURN_STORE/checkpoints/$ADJOURN_TASK_ID.checkpoint.json" <<END
{
  "agentId": "$ADJOURN_TASK_ID",
  "timestamp": "2026-01-18T10:15:23Z",
  "phase": "waiting_clarification",
  "clarificationRequestId": "clarif_xyz789",
  "workState": {"completed": ["Session log analysis"], "inProgress": [], "blocked": ["Q1"], "parallelWorkAvailable": []},
  "extractedContext": {"a": 1},
  "decisions": ["x", "y"],
  "filesCreated": ["file-watcher.spec.md", "actor.ts"],
  "resumeInstructions": {"nextPhase": "implementation", "estimatedRemainingWork": "15-20 minutes"}
}
END
exit 0
