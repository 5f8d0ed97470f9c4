"""Tests of rules: scripts played, verdicts compared, coverage counted, rules mutated to measure the tests.

tensors.py      a tensor from the features of a script
play.py         a script as a trace
run.py          the verdicts of the rules that a test decides, by every executor
judge.py        the failures of a test's expectations
coverage.py     the verdicts and conditions that tests cover
mutants.py      small changes of a rule
mutate.py       the changes that no test notices
"""
