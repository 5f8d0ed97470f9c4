"""The language's text: from characters to a typed tree and back to characters."""
