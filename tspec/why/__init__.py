"""Why a rule fired or did not fire; what a rule means and costs.

conditions.py      how near a condition is to being otherwise
look.py            one instance: the condition that decided it, and the values that it read
recording.py       the part of a recording that a rule reads
ask.py             all instances of a rule over a recording: counts, those that fired, the nearest
show.py            the answer as text and JSON
words.py           a rule in plain English
explain.py         its words, costs, hook points and code
show_explained.py  that as text and JSON
"""
