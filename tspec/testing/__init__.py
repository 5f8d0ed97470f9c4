"""Tests of rules: scripts played, verdicts compared, coverage counted, rules changed to see who notices.

tensors.py      a tensor as a script says it
play.py         a script as a trace
run.py          the verdicts of the rules that a test decides, by every executor
judge.py        what a test expected and did not find
coverage.py     which verdicts and conditions were ever seen
mutants.py      small changes of a rule
mutate.py       which of them no test notices
"""
