"""The reasons why a rule fired or did not fire; its meaning and its costs.

conditions.py      the distance of a condition from the opposite truth value
look.py            one instance: the condition that decided it, and the values that it read
recording.py       the part of a recording that a rule reads
ask.py             all instances of a rule over a recording: counts, those that fired, the nearest
show.py            the answer as text and JSON
words.py           a rule in plain English
explain.py         the words, costs, hook points and code of a rule
show_explained.py  the explanation as text and JSON
"""
