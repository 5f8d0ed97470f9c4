"""Values over time: what `previous`, `first` and folds `over` a window keep of earlier instances."""
