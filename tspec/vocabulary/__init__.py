"""What a rule can name: the vocabulary of the standard library, and the words of the language, each with an example."""
