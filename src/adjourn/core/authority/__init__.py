"""Who may do what: scopes, signed decisions, webhooks."""
