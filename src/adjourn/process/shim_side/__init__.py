"""The shim's own side: the small process between a supervisor and a child."""
