"""The meaning of names: the vocabulary, the scope of each file, written types, callables of torch."""
