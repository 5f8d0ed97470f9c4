"""From an invariant as it is written to a typed rule."""
