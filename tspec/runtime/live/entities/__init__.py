"""The kinds of subjects.

Each file has one kind: which subjects exist, and the values of their fields.
"""
