"""What adjourn means: values and rules; no input, output or clock."""
