"""Why a rule fired, and why it did not.

conditions.py   how near a condition is to being otherwise
look.py         one instance: what stopped it, and the values that it read
recording.py    the part of a recording that a rule reads
ask.py          all instances of a rule over a recording: counts, those that fired, the nearest
"""
