"""Attention over long sequences: what each method keeps, in a few lines each (chapter 13).

All functions take (B, h, T, d) tensors; masks are boolean with True = may look. A method that has
no `mask` argument cannot hide keys.
"""

from course_utils.models.long_attention.costs import bytes_held, bytes_kept, multiply_adds, seconds
from course_utils.models.long_attention.hashing import lsh_attention, lsh_buckets, lsh_mask
from course_utils.models.long_attention.kernels import (
    RandomFeatures,
    elu_features,
    linear_attention,
)
from course_utils.models.long_attention.low_rank import low_rank_attention, mean_pooling
from course_utils.models.long_attention.patterns import (
    global_mask,
    random_mask,
    segment_mask,
    window_mask,
)
from course_utils.models.long_attention.retrieval import top_k_attention
from course_utils.models.long_attention.reversible import ReversibleBlock, ReversibleStack
from course_utils.models.long_attention.segments import RelativeAttention, SegmentReader
from course_utils.models.long_attention.windows import block_summary_attention, window_attention

__all__ = [
    "RandomFeatures",
    "RelativeAttention",
    "ReversibleBlock",
    "ReversibleStack",
    "SegmentReader",
    "block_summary_attention",
    "bytes_held",
    "bytes_kept",
    "elu_features",
    "global_mask",
    "linear_attention",
    "low_rank_attention",
    "lsh_attention",
    "lsh_buckets",
    "lsh_mask",
    "mean_pooling",
    "multiply_adds",
    "random_mask",
    "seconds",
    "segment_mask",
    "top_k_attention",
    "window_attention",
    "window_mask",
]
