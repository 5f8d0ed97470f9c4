"""What runs inside a job: generated hooks stand on this room, which imports torch and the standard library only."""
