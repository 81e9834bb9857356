"""How each kind of agent is started and resumed: one module per runner."""
