"""How parameters and gradients change from one update to the next, and what changes them besides an optimizer."""
