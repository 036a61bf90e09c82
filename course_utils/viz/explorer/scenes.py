"""What there is to explore: maps with their tokens, the steps of decoding, two sentences."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from course_utils.models.attention import MultiHeadAttention, _Attention
from course_utils.models.modes import evaluating
from course_utils.models.recurrent import Seq2Seq
from course_utils.models.transformer import Transformer
from course_utils.text.batches import pad
from course_utils.text.subwords import Subwords
from course_utils.text.vocab import EOS, UNK
from course_utils.training.decoding import greedy_decode
from course_utils.training.translation import Translator
from course_utils.viz.explorer.arithmetic import join, recording

LONGEST = 100  # tokens of a sentence with its end; more could not be told apart in the figure
STEPS = 50  # of decoding, at most, as in `Translator.translate`
CANDIDATES = 3  # likeliest next tokens that a step shows


@dataclass(frozen=True)
class Family:
    """The maps of one kind of attention, for all layers and heads.

    Attributes:
        queries, keys: the tokens, Tq and Tk; query_label, key_label say what they are.
        layers: the `steps_of` each layer.
        grows: which sides come into being step by step: "queries", "both" or "".
    """

    name: str
    queries: list[str]
    keys: list[str]
    query_label: str
    key_label: str
    layers: list[dict[str, Tensor]]
    grows: str = ""

    @property
    def weights(self) -> Tensor:
        """(layers, h, Tq, Tk)"""
        return torch.stack([layer["weights"] for layer in self.layers])


@dataclass(frozen=True)
class Step:
    """One step of the decoder: what it reads, what it says, and its likeliest next tokens."""

    reads: str
    says: str
    candidates: list[tuple[str, float]]


@dataclass(frozen=True)
class Scene:
    """All that a figure shows; the first family is the one it begins with."""

    families: list[Family]
    source: str = ""
    said: str = ""
    notice: str = ""
    steps: list[Step] = field(default_factory=list)


def layers_of(model) -> dict[str, list[_Attention]]:
    """The attention layers of a model by family; the one to begin with comes first.

    Raises:
        TypeError: the model is of another kind. ValueError: it has no attention.
    """
    if isinstance(model, Transformer):
        return {
            "cross": [block.cross_attention.attention for block in model.decoder],
            "encoder": [block.attention.attention for block in model.encoder],
            "decoder": [block.self_attention.attention for block in model.decoder],
        }
    if not isinstance(model, Seq2Seq):
        raise TypeError(
            f"can explore a Transformer or a Seq2Seq, got {type(model).__name__}: for one layer "
            "take explore_layer(layer, tokens, x)"
        )
    if not hasattr(model.decoder, "attention"):
        raise ValueError("this model's decoder has no attention: take one with a BahdanauDecoder")
    return {"cross": [model.decoder.attention]}


def translation_scene(translator: Translator, text: str, target: str | None = None) -> Scene:
    """Translate `text` greedily (or say `target`) and keep all that attention does meanwhile.

    Raises:
        TypeError: no `Translator`. ValueError: an empty sentence, or one that is too long.
    """
    if not isinstance(translator, Translator):
        raise TypeError(
            f"explore takes a Translator, got {type(translator).__name__}: write "
            "explore(Translator(model, source_vocab, target_vocab), text)"
        )
    model, source, vocabulary = translator.model, translator.source, translator.target
    layers = layers_of(model)
    ids = source.encode(text)
    _check_length("the sentence", ids, model)
    device = next(model.parameters()).device
    src, src_lens = (x.to(device) for x in pad([[*ids, source.eos]]))  # (1, Ts), (1,)
    if target is None:
        said = _own_words(model, vocabulary, src, src_lens)
    else:
        said = vocabulary.encode(target)
        _check_length("the target", said, model)
        said.append(vocabulary.eos)
    read = [vocabulary.bos, *said[:-1]]
    with evaluating(model), recording([x for family in layers.values() for x in family]) as calls:
        logits = model(src, src_lens, torch.tensor([read], device=device))[0]  # (Tt, V)
    calls = iter(calls)
    arithmetic = {name: [join(next(calls)) for _ in family] for name, family in layers.items()}
    english = [*_typed(source, text, ids), EOS]
    french, french_read = _names(vocabulary, said), _names(vocabulary, read)
    return Scene(
        families=_families(arithmetic, english, french, french_read),
        source=text,
        said=vocabulary.decode(said[:-1] if said[-1] == vocabulary.eos else said),
        notice=_unknown(source, text, ids),
        steps=_steps(logits, french_read, french, vocabulary),
    )


def _check_length(what: str, ids: Sequence[int], model) -> None:
    """Raise ValueError for a sentence that is empty or, with its end, too long."""
    room = min(_room(model), LONGEST) - 1
    if not ids:
        raise ValueError(f"{what} is empty: write a few words")
    if len(ids) > room:
        raise ValueError(f"{what} has {len(ids)} tokens, and at most {room} fit: write fewer")


def _room(model) -> int:
    """How many positions a model has; a recurrent one has no end of them."""
    return model.config.max_len if isinstance(model, Transformer) else LONGEST


def _own_words(model, vocabulary, src: Tensor, src_lens: Tensor) -> list[int]:
    """What the model says, with its end, unless it was cut off before that."""
    most = min(_room(model), STEPS)
    ends = {"bos": vocabulary.bos, "eos": vocabulary.eos, "max_len": most}
    said = greedy_decode(model, src, src_lens, **ends)[0]
    return said + [vocabulary.eos] * (len(said) < most)


def _families(arithmetic, english, french, french_read) -> list[Family]:
    """The families that the model has, with their axes."""
    axes = {
        "cross": (french, english, "French, said", "English, read"),
        "encoder": (english, english, "English", "English"),
        "decoder": (french_read, french_read, "French, read", "French, read"),
    }
    grows = {"cross": "queries", "encoder": "", "decoder": "both"}
    return [Family(name, *axes[name], steps, grows[name]) for name, steps in arithmetic.items()]


def _names(vocabulary, ids: Sequence[int]) -> list[str]:
    """Each id as it reads on its own."""
    by_pieces = isinstance(vocabulary, Subwords)
    return vocabulary.pieces(ids) if by_pieces else vocabulary.vocab.decode(ids)


def _typed(source, text: str, ids: Sequence[int]) -> list[str]:
    """The tokens of the source as typed; what the model reads as <unk> says so."""
    typed = zip(source.tokens(text), ids, strict=True)
    return [f"{UNK} ({token})" if i == source.unk else token for token, i in typed]


def _unknown(source, text: str, ids: Sequence[int]) -> str:
    """A sentence about the words that the model does not know, or nothing."""
    typed = zip(source.tokens(text), ids, strict=True)
    words = list(dict.fromkeys(token for token, i in typed if i == source.unk))
    if not words:
        return ""
    it = "it" if len(words) == 1 else "each of them"
    return f"Not in the model's vocabulary: {', '.join(words)}. It reads {UNK} for {it}."


def _steps(logits: Tensor, reads: list[str], says: list[str], vocabulary) -> list[Step]:
    """What each step reads and says, from logits (Tt, V)."""
    best, ids = logits.softmax(-1).topk(min(CANDIDATES, logits.shape[-1]))
    return [
        Step(read, said, list(zip(_names(vocabulary, row), chances, strict=True)))
        for read, said, row, chances in zip(reads, says, ids.tolist(), best.tolist(), strict=True)
    ]


def layer_scene(layer, tokens: Sequence[str], x: Tensor, mask: Tensor | None = None) -> Scene:
    """The self-attention of one layer over vectors x (T, d) or (1, T, d).

    Raises:
        TypeError, ValueError: layer, tokens, vectors or mask do not fit.
    """
    attention = layer.attention if isinstance(layer, MultiHeadAttention) else layer
    if not isinstance(attention, _Attention):
        raise TypeError(
            f"explore_layer takes a layer of course_utils.models.attention, got "
            f"{type(layer).__name__}"
        )
    tokens = [str(token) for token in tokens]
    x = x.unsqueeze(0) if x.dim() == 2 else x
    if x.dim() != 3 or len(x) != 1 or x.shape[1] != len(tokens) or not tokens:
        raise ValueError(
            f"x must hold one vector for each of the {len(tokens)} tokens, (T, d) or (1, T, d), "
            f"got {tuple(x.shape)}"
        )
    with evaluating(layer), recording([attention]) as (calls,):
        layer(x, x, x, mask)
    return Scene([Family("self", tokens, tokens, "queries", "keys", calls)])
