"""Programs as values: typed rules, the vocabulary, meshes, layouts, trials and scripts, without syntax in them."""
