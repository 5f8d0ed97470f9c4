"""What is saved and loaded, and whether a resumed run goes on from it."""
