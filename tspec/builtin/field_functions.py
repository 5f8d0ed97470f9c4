"""The functions that the declaration of a field may call: `reused: list[string] = reused(self)`.

The resolver takes these names, and `SubjectRegistry` has the code of each. The rows say what a job
has to follow for a function besides the call that it is computed at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Followed = Literal["nothing", "tokens", "checkpoints"]
"""`tokens`: what embeddings were given. `checkpoints`: what was loaded, and which states were taken
from it.
"""

GENERAL = (
    "abs",
    "ceil",
    "count",
    "elements",
    "exp",
    "floor",
    "log",
    "max",
    "min",
    "names",
    "round",
    "sqrt",
    "sum",
)
"""Functions of numbers and collections, for any event. The others each belong to some fields that
ship.
"""

_ROWS: Mapping[Followed, tuple[str, ...]] = {
    "tokens": (
        "counted_padding",
        "ends_alike",
        "ends_in_padding",
        "filled_padding",
        "hides_tokens",
        "layer_sees_padding",
        "masked_labels",
        "picked_ahead",
        "picked_padding",
        "picked_sees_later",
        "rows_swapped",
        "sees_later",
        "sees_padding",
        "shows_padding",
        "tokens_ahead",
        "uses_state_after_padding",
        "visible_chosen",
        "visible_targets",
        "weighed_padding",
    ),
    "checkpoints": (
        "goes_on_from",
        "lost_updates",
        "restarted",
    ),
    "nothing": (
        *GENERAL,
        "added_entropies",
        "adds_constant",
        "answers_as_in_training",
        "averages_all_places",
        "before_update",
        "begins_with_last_state",
        "blank_labels",
        "blunt_similarities",
        "choices_across",
        "constant_varies",
        "counted_kinds",
        "crossed_norms",
        "data_differ",
        "differentiates_inputs",
        "divisor_of_average",
        "doubled",
        "dropped",
        "enlarges_inputs",
        "factor_of_all",
        "first_row_alone",
        "for_parameters",
        "foreign",
        "grown_divergences",
        "held_out_evaluations",
        "highest_factor",
        "idle_part",
        "is_average",
        "is_dropped",
        "is_entropy",
        "is_known_term",
        "is_of_parameters",
        "is_own_state",
        "is_term",
        "known_samples",
        "lacks_graph",
        "leaked_targets",
        "left_out",
        "loose_parameters",
        "made_by",
        "missing_keys",
        "mixed_reductions",
        "mode_is_given",
        "models_of",
        "moving_targets",
        "moving_weights",
        "negated",
        "new_labels",
        "not_loaded",
        "off_ratios",
        "operations",
        "over_classes",
        "over_labels",
        "own_logits_alike",
        "passes_unused",
        "picked_across",
        "picked_activations",
        "placements",
        "preserves_rng",
        "repeated_places",
        "resumed_updates",
        "reused",
        "right_logits_alike",
        "right_logits_twice",
        "scale_of_inputs",
        "scaled",
        "scored_padding",
        "softmax_dims",
        "softmaxes_across",
        "sorted_splits",
        "spread_sums",
        "states_held",
        "states_left",
        "steps_left",
        "steps_made",
        "stretched_squares",
        "stretched_weights",
        "swapping_views",
        "takes_larger_gain",
        "unbeaten_classes",
        "unbeaten_logits",
        "unbeaten_picks",
        "unbeaten_squares",
        "unrelated_averages",
        "unscaled_scores",
        "used_early",
        "values_left_out",
        "variances_as_deviations",
        "viewed_as_channels_first",
        "weak_masks",
        "whole_norms",
        "without_room",
        "without_weight",
        "written_to",
    ),
}

FIELD_FUNCTIONS: Mapping[str, Followed] = {
    name: followed for followed, names in _ROWS.items() for name in names
}
"""Name of a function -> what is followed for it."""
