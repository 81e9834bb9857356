"""The only place where a task changes.

`controller.Controller` is made of parts; a short command loads only `decisions.Decisions`.
"""
