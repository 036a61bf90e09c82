"""Sentences in, sentences out."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.models.parameters import count_parameters
from course_utils.models.recurrent import BahdanauDecoder, GRUDecoder, GRUEncoder, Seq2Seq
from course_utils.models.transformer import Transformer, TransformerConfig
from course_utils.text.batches import number_pairs
from course_utils.text.pairs import Pair
from course_utils.text.text import tokenize
from course_utils.training.seeds import set_seed
from course_utils.training.translation import Translator

PAIRS = [
    Pair("I'm home.", "Je suis chez moi."),
    Pair("Go now, please!", "Va maintenant, s'il te plaît !"),
    Pair("The dog isn't here.", "Le chien n'est pas ici."),
]
KINDS = ["transformer", "gru", "bahdanau"]
every_kind = pytest.mark.parametrize("kind", KINDS)


def build(kind, max_len=256):
    set_seed(0)
    src_vocab, tgt_vocab, _ = number_pairs(PAIRS)
    if kind == "transformer":
        model = Transformer(
            TransformerConfig(len(src_vocab), len(tgt_vocab), d_model=16, num_heads=2, d_ff=16,
                              max_len=max_len)
        )  # fmt: skip
    else:
        decoder = {"gru": GRUDecoder, "bahdanau": BahdanauDecoder}[kind]
        model = Seq2Seq(GRUEncoder(len(src_vocab), 8, 8, 2), decoder(len(tgt_vocab), 8, 8, 2))
    with torch.no_grad():  # logits far apart, so that rounding never changes the winner
        for parameter in model.parameters():
            parameter.mul_(2)
    return Translator(model.double(), src_vocab, tgt_vocab)


words = ["i'm", "home", "go", "now", "please", "the", "dog", "isn't", "here", "xylophone"]
sentences = st.lists(st.sampled_from(words), min_size=0, max_size=8).map(" ".join)


@every_kind
@settings(deadline=None, max_examples=5, derandomize=True)
@given(texts=st.lists(sentences, min_size=1, max_size=6), batch_size=st.integers(1, 4))
def test_a_text_gets_the_same_translation_alone_and_in_any_batch_in_order(kind, texts, batch_size):
    translator = build(kind)
    for beam in (1, 3):
        options = {"beam": beam, "max_len": 8}
        together = translator.translate(texts, batch_size=batch_size, **options)
        assert together == [translator.translate([text], **options)[0] for text in texts]


@pytest.mark.parametrize("beam", [1, 3])
def test_a_text_that_is_too_long_is_cut_and_named_and_the_others_are_not_lost(beam):
    translator = build("transformer", max_len=4)
    texts = ["I'm home.", "Go now, please!", "Go now!"]
    with pytest.warns(UserWarning, match=r"text 1 has 5 tokens, this model takes 3") as caught:
        said = translator.translate(texts, beam=beam)  # by default up to 50 steps
    assert len(caught) == 1
    assert said[0::2] == translator.translate(texts[0::2], beam=beam)
    assert said[1] == translator.translate(["Go now,"], beam=beam)[0]
    assert all(len(translator.target.encode(text)) <= 4 for text in said)


@every_kind
def test_as_many_lines_out_as_in_and_empty_stays_empty(kind):
    texts = ["", "Go now!", "   ", "\u202f", "I'm home."]
    got = build(kind).translate(texts, max_len=5)
    assert [bool(line) for line in got] == [False, True, False, False, True]
    assert build(kind).translate([]) == []
    assert build(kind).translate([""]) == [""]


@every_kind
def test_unknown_words_are_translated_as_unknown_and_not_refused(kind):
    translator = build(kind)
    assert "xylophone" not in translator.source.vocab
    assert translator.translate(["xylophone ."]) == translator.translate(["zither ."])


def test_spelling_variants_of_one_sentence_get_one_translation():
    translator = build("transformer")
    variants = ["I'm home.", "I\u2019m home .", "i'm\u00a0 HOME\u202f."]
    assert len(set(translator.translate(variants))) == 1


@every_kind
def test_the_mode_of_the_model_is_restored(kind):
    translator = build(kind)
    for training in (True, False):
        translator.model.train(training)
        translator.translate(["Go now!"], max_len=3)
        translator.attention_maps("Go now!", "Va !")
        assert translator.model.training is training


def test_a_string_in_place_of_a_list_is_refused():
    with pytest.raises(TypeError, match=r"translate\(\[text\]\)"):
        build("gru").translate("Go now!")


@pytest.mark.parametrize(("options"), [{"beam": 0}, {"max_len": 0}])
def test_limits_below_one_are_refused(options):
    with pytest.raises(ValueError, match="at least 1, got"):
        build("gru").translate(["Go now!"], **options)


def test_translations_are_detokenised_french_without_special_tokens():
    translator = build("transformer")
    vocab = translator.target.vocab
    said = iter(vocab.encode(["s'", "il", "te", "plaît", "!"]) + [vocab.eos])

    class Parrot(torch.nn.Linear):
        def start(self, src, src_lens):
            return self

        def decode(self, tokens, state):
            logits = torch.zeros(1, 1, len(vocab))
            logits[..., next(said)] = 1
            return logits, self

        def select(self, rows):
            return self

    translator.model = Parrot(1, 1)
    assert translator.translate(["Please!"]) == ["s'il te plaît !"]


@every_kind
def test_attention_maps_have_one_row_a_said_token_and_one_column_a_source_token(kind):
    translator = build(kind)
    maps, source, target = translator.attention_maps("I'm home.", "Je suis chez moi.")
    assert source == ["i'm", "home", ".", "<eos>"]
    assert target == ["je", "suis", "chez", "moi", ".", "<eos>"]
    shapes = {family: tuple(weights.shape) for family, weights in maps.items()}
    assert (
        shapes
        == {
            "transformer": {
                "encoder": (2, 2, 4, 4),
                "decoder": (2, 2, 6, 6),
                "cross": (2, 2, 6, 4),
            },
            "gru": {},
            "bahdanau": {"cross": (1, 1, 6, 4)},
        }[kind]
    )
    for weights in maps.values():
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones_like(weights[..., 0]))
        assert not weights.requires_grad


def test_map_rows_belong_to_the_step_that_says_the_token():
    """Another last word changes no row but those after it is read: none, for it is said last."""
    translator = build("transformer")
    a, _, _ = translator.attention_maps("I'm home.", "Je suis moi")
    b, _, _ = translator.attention_maps("I'm home.", "Je suis pas")
    assert a["cross"][:, :, :3].equal(b["cross"][:, :, :3])  # je, suis, and moi or pas
    assert not a["cross"][:, :, 3].equal(b["cross"][:, :, 3])  # <eos> is said after reading it
    assert tokenize("Je suis pas", "fr") == ["je", "suis", "pas"]


def test_shared_parameters_are_counted_once():
    linear = torch.nn.Linear(3, 3, bias=False)
    assert count_parameters(torch.nn.Sequential(linear, torch.nn.Linear(3, 2), linear)) == 9 + 8
    linear.weight.requires_grad_(False)
    assert count_parameters(torch.nn.Sequential(linear, torch.nn.Linear(3, 2))) == 8
