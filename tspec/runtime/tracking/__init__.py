"""Windows of rules: where they open and close, and with which window each rule's function runs."""
