"""Recordings as earlier formats wrote them, which are still to be read, and what they hold."""
