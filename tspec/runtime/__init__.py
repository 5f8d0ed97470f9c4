"""The code that runs inside a job. Generated hooks use this package, which imports torch and the
standard library only.
"""
