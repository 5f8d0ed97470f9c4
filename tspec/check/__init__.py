"""Deciding rules offline, over a recorded trace."""
