"""The only place where a task changes.

`whole.Controller`, made of parts, of which a short verb loads only the desk.
"""
