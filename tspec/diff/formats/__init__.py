"""Changes in words: for the terminal, a pull request, and programs."""
