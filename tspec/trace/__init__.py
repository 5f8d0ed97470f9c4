"""The trace: the recording of one job, as a folder of Arrow streams, one a rank.

`model` defines the contents of a trace, `write` makes one, `read` reads one (records, or Arrow
tables for set-based queries), `show` prints its contents. Nothing is imported here: each of them
needs pyarrow, which takes 0.4 s.
"""
