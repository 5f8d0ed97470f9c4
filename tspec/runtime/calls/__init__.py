"""Calls as rules see them: their fields, and for how long they are kept."""
