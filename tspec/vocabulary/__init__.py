"""The names that a rule can use: the vocabulary of the standard library, and the words of the
language, each with an example.
"""
