"""What the language has built in: one table for each kind of thing, from which all else is derived.

The tables import the standard library only, so that the compiler and a job both read them. The
reference interpreter (`tspec.check.interpret`) takes no code from them: it is the second opinion
that tests hold the other executors against.
"""
