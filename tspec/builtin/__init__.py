"""The built-in parts of the language: one table for each kind, from which all else is derived.

The tables import the standard library only, so that both the compiler and a job can read them. The
reference interpreter (`tspec.check.interpret`) takes no code from them: it is the independent
implementation that tests compare the other executors with.
"""
