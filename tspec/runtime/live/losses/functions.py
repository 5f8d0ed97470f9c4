"""The functions about losses that the declaration of a field may call, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tspec.runtime.live.losses.alignments import blank_labels, without_room
from tspec.runtime.live.losses.bootstrapped import moving_targets
from tspec.runtime.live.losses.causality import Causality
from tspec.runtime.live.losses.choices import choices_across
from tspec.runtime.live.losses.class_softmaxes import softmaxes_across
from tspec.runtime.live.losses.class_weights import WeighedClasses
from tspec.runtime.live.losses.constants import TERMS, ConstantTerms
from tspec.runtime.live.losses.derivatives import (
    DifferentiableDerivatives,
    is_of_parameters,
    lacks_graph,
    whole_norms,
)
from tspec.runtime.live.losses.divergences import (
    grown_divergences,
    mixed_reductions,
    variances_as_deviations,
)
from tspec.runtime.live.losses.dropped import is_dropped
from tspec.runtime.live.losses.endings import SequenceEndings
from tspec.runtime.live.losses.entropies import Entropies
from tspec.runtime.live.losses.gains import takes_larger_gain
from tspec.runtime.live.losses.graph import (
    PASSES,
    logits_made_by,
    made_by,
    over_classes,
    over_labels,
    softmax_dims,
    unscaled_scores,
)
from tspec.runtime.live.losses.guesses import Guesses
from tspec.runtime.live.losses.labels import (
    LOSSES,
    averages_all_places,
    counted_kinds,
    own_logits_alike,
    right_logits_alike,
    right_logits_twice,
    scored_padding,
)
from tspec.runtime.live.losses.last_states import LastStates
from tspec.runtime.live.losses.masked import weak_masks
from tspec.runtime.live.losses.matches import in_order_of_matches
from tspec.runtime.live.losses.operations import LossOperations
from tspec.runtime.live.losses.padding import MASKS, PaddingMasks
from tspec.runtime.live.losses.picked import PickedTokens, picked_across, picked_activations
from tspec.runtime.live.losses.policies import moving_weights, stretched_weights
from tspec.runtime.live.losses.ratios import off_ratios
from tspec.runtime.live.losses.rows import FlattenedRows
from tspec.runtime.live.losses.similarities import blunt_similarities, crossed_norms
from tspec.runtime.live.losses.spread import spread_sums
from tspec.runtime.live.losses.squares import stretched_squares
from tspec.runtime.live.losses.sums import divisor_of_average, factor_of_all, is_average
from tspec.runtime.live.losses.terms import LossTerms, adds_constant
from tspec.runtime.live.losses.tokens import TokenHistory
from tspec.runtime.live.losses.views import swapping_views
from tspec.runtime.live.sampling import TrainingSampling

RATIOS = 4
"""The number of passes whose ratios of probabilities are read: an update may have several."""
DERIVATIVES = 128
"""The number of backward passes that are asked whether their loss has a term without a graph, or uses a derivative;
and of derivatives that are asked for their graph. Of a model of two, one may have several in each step.
"""


def loss_functions(
    tokens: TokenHistory, before_update: Callable[[], bool], trainings: TrainingSampling
) -> Mapping[str, Callable[..., Any]]:
    """The functions of one job. `before_update`: gradients wait for an update."""
    of_first, of_first_with_graph = trainings.of_first, trainings.of_first_with_graph
    padding, entropies, derivatives = PaddingMasks(tokens), Entropies(), DifferentiableDerivatives()
    picked, constants, last_states = PickedTokens(tokens), ConstantTerms(), LastStates(padding)
    return {
        "tokens_ahead": tokens.tokens_ahead,
        "samples_and_places": tokens.samples_and_places,
        "visible_targets": tokens.visible_targets,
        "visible_chosen": tokens.visible_chosen,
        "counted_padding": tokens.counted_padding,
        "masked_labels": tokens.masked_labels,
        "sees_later": Causality(tokens, trainings).sees_later,
        "ends_alike": of_first_with_graph(PASSES, SequenceEndings(tokens).ends_alike),
        "rows_swapped": of_first_with_graph(PASSES, FlattenedRows(tokens).rows_swapped),
        "shows_padding": of_first(MASKS, padding.shows_padding),
        "hides_tokens": of_first(MASKS, padding.hides_tokens),
        "layer_sees_padding": of_first(MASKS, padding.layer_sees_padding),
        "sees_padding": of_first(MASKS, padding.sees_padding),
        "filled_padding": of_first(PASSES, padding.filled_padding),
        "weighed_padding": of_first(PASSES, padding.weighed_padding),
        "ends_in_padding": of_first(MASKS, last_states.ends_in_padding),
        "uses_state_after_padding": of_first(PASSES, last_states.uses_state_after_padding),
        "blank_labels": of_first_with_graph(LOSSES, blank_labels),
        "without_room": of_first_with_graph(LOSSES, without_room),
        "weight_of_frequent": of_first_with_graph(LOSSES, WeighedClasses().weight_of_frequent),
        "counted_kinds": of_first_with_graph(LOSSES, counted_kinds),
        "right_logits_alike": of_first_with_graph(LOSSES, right_logits_alike),
        "right_logits_twice": of_first_with_graph(LOSSES, right_logits_twice),
        "in_order_of_matches": of_first_with_graph(LOSSES, in_order_of_matches),
        "own_logits_alike": of_first_with_graph(LOSSES, own_logits_alike),
        "scored_padding": of_first_with_graph(LOSSES, scored_padding),
        "logits_made_by": of_first_with_graph(LOSSES, logits_made_by),
        "made_by": made_by,
        "over_classes": over_classes,
        "over_labels": over_labels,
        "softmax_dims": of_first(PASSES, softmax_dims),
        "softmaxes_across": of_first(PASSES, softmaxes_across),
        "operations": LossOperations().operations,
        "weak_masks": of_first(PASSES, weak_masks),
        **LossTerms(before_update).functions,
        "factor_of_all": factor_of_all,
        "divisor_of_average": divisor_of_average,
        "is_average": is_average,
        "is_known_term": of_first_with_graph(TERMS, constants.is_known_term),
        "constant_varies": of_first(PASSES, constants.constant_varies),
        "is_dropped": of_first_with_graph(LOSSES, is_dropped),
        "adds_constant": of_first(DERIVATIVES, adds_constant),
        "lacks_graph": lacks_graph,
        "has_graph": of_first(DERIVATIVES, derivatives.has_graph),
        "ends_derivatives": of_first(DERIVATIVES, derivatives.ends_derivatives),
        "uses_derivatives": of_first(DERIVATIVES, derivatives.uses_derivatives),
        "is_of_parameters": is_of_parameters,
        "whole_norms": of_first(PASSES, whole_norms),
        "averages_all_places": of_first(PASSES, averages_all_places),
        "picked_sees_later": of_first(PASSES, picked.picked_sees_later),
        "picked_ahead": of_first(PASSES, picked.picked_ahead),
        "picked_padding": of_first(PASSES, picked.picked_padding),
        "picked_across": of_first(PASSES, picked_across),
        "picked_activations": of_first(PASSES, picked_activations),
        "is_entropy": entropies.is_entropy,
        "added_entropies": entropies.added_entropies,
        **Guesses().functions,
        "unscaled_scores": of_first(PASSES, unscaled_scores),
        "swapping_views": of_first(PASSES, swapping_views),
        "choices_across": of_first(PASSES, choices_across),
        "crossed_norms": of_first(PASSES, crossed_norms),
        "blunt_similarities": of_first(PASSES, blunt_similarities),
        "off_ratios": of_first(RATIOS, off_ratios),
        "stretched_squares": of_first(PASSES, stretched_squares),
        "spread_sums": of_first(PASSES, spread_sums),
        "grown_divergences": of_first(PASSES, grown_divergences),
        "mixed_reductions": of_first(PASSES, mixed_reductions),
        "variances_as_deviations": of_first(PASSES, variances_as_deviations),
        "moving_targets": of_first(PASSES, moving_targets),
        "moving_weights": of_first(PASSES, moving_weights),
        "takes_larger_gain": of_first(PASSES, takes_larger_gain),
        "stretched_weights": of_first(PASSES, stretched_weights),
    }
