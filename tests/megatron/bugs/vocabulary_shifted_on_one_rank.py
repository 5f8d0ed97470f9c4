"""One tensor-parallel rank begins its part of the vocabulary one token too late: that token has no row.

Source: the class of TTrace 1 (tokens and rows of an embedding that is cut do not fit), in the range and not in the mask.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "tp=2"
FOUND = ("ranks_hold_the_whole_vocabulary", 1, (0, 1), "embedding.word_embeddings")


def put_in() -> None:
    """The last rank's range is shifted by one."""
    from megatron.core import parallel_state
    from megatron.core.tensor_parallel.layers import VocabParallelEmbedding

    original = VocabParallelEmbedding.__init__

    def init(self: Any, *given: Any, **options: Any) -> None:
        original(self, *given, **options)
        if parallel_state.get_tensor_model_parallel_rank() == 1:
            self.vocab_start_index += 1
            self.vocab_end_index += 1

    VocabParallelEmbedding.__init__ = init
