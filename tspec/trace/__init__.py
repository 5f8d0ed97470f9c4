"""The trace: what one job did, as a folder of Arrow streams, one a rank.

`model` says what a trace holds, `write` makes one, `read` reads one (records, or Arrow tables for
set-based queries), `show` tells a person what is in it. Nothing is imported here: each of them
needs pyarrow, which takes 0.4 s.
"""
