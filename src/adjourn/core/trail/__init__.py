"""The audit trail: events, its chain, and receipts."""
