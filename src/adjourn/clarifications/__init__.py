"""The files by which agents ask several questions and get their answers.

Copies of what the store knows, and a way in.
"""
