"""The kinds of subjects: one file a kind, each with what there is and what its fields are."""
