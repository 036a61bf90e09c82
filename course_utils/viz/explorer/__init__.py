"""The attention explorer: touch a token, and see what it looks at and by what arithmetic.

>>> explore(translator, "I'm home.")            # as the last line of a cell
>>> explore_layer(layer, ["mary", "gave"], x)   # one attention layer, x (T, d_model)

In a running notebook both show a live figure; everywhere else (on a page, in a file) the same cell
shows its picture, a heatmap of each head. Every number in it is the model's own.
"""

from course_utils.viz.explorer.display import Explorer
from course_utils.viz.explorer.scenes import layer_scene, translation_scene

__all__ = ["explore", "explore_layer"]


def explore(translator, text, target=None):
    """Explore the attention of a trained `Translator` while it translates.

    Args:
        translator: a `Translator` whose model is a `Transformer`, or a `Seq2Seq` with attention.
        text: the English sentence to begin with; others can be typed into the figure.
        target: a French sentence to put into the decoder's mouth (default: what it says itself).

    Raises:
        TypeError, ValueError: the model has no attention, or the sentence is empty or too long.
    """
    return Explorer(
        translation_scene(translator, text, target),
        lambda own: translation_scene(translator, own),
    )


def explore_layer(layer, tokens, x, mask=None):
    """Explore the self-attention of one layer over some tokens.

    Args:
        layer: a `MultiHeadAttention`, `DotProductAttention` or `AdditiveAttention`.
        tokens: T words to write beside the vectors.
        x: (T, d_model) or (1, T, d_model), the vectors of the tokens.
        mask: boolean, True = may look; (T, T) or broadcastable to (1, h, T, T).

    Raises:
        TypeError, ValueError: layer, tokens, vectors or mask do not fit.
    """
    return Explorer(layer_scene(layer, tokens, x, mask))
