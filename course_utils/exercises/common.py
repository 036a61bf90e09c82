"""Known mistakes that several exercises share: their references have the same switches."""

from course_utils.exercises.model import wrong

SOFTMAX_TWICE = wrong(
    "the softmax is applied twice",
    "normalisation",
    "Of weights between 0 and 1 a second softmax makes nearly equal ones.",
    normalise="twice",
)

SOFTMAX_OF_THE_MAP = wrong(
    "one softmax runs over queries and keys together",
    "softmax axis",
    "Each row must sum to 1, not the whole map.",
    normalise="of the map",
    axis=-1,
)
