"""The explorer's numbers are the model's own, bit by bit, and its cell shows a picture anywhere."""

import base64
import io
import json
import math
import struct

import pytest
import torch
from explorer_models import ENGLISH, FRENCH, TEXT, recurrent, transformer, unpack
from PIL import Image

from course_utils.cli.notebooks import headless_environment
from course_utils.models.attention import AdditiveAttention, DotProductAttention, MultiHeadAttention
from course_utils.models.masks import causal_mask
from course_utils.models.modes import evaluating
from course_utils.models.recurrent import GRUDecoder
from course_utils.models.transformer import Transformer, TransformerConfig
from course_utils.text.subwords import Subwords
from course_utils.training.decoding import greedy_decode
from course_utils.training.seeds import set_seed
from course_utils.training.translation import Translator
from course_utils.viz.explorer import explore, explore_layer
from course_utils.viz.explorer.arithmetic import recording
from course_utils.viz.explorer.display import NOT_LIVE
from course_utils.viz.explorer.payload import pack, pack_scene
from course_utils.viz.explorer.scenes import layer_scene, layers_of, translation_scene

exact = {"rtol": 0, "atol": 0}


def greedy(translator, text=TEXT):
    """Source ids (1, Ts), lengths, and what the model says of itself, with its end if it came."""
    src = torch.tensor([[*translator.source.encode(text), ENGLISH.eos]])
    lens = torch.tensor([src.shape[1]])
    most = 20 if isinstance(translator.model, Transformer) else 50
    ends = {"bos": FRENCH.bos, "eos": FRENCH.eos, "max_len": most}
    said = greedy_decode(translator.model, src, lens, **ends)[0]
    return src, lens, said + [FRENCH.eos] * (len(said) < most)


MODELS = {"1 head": lambda: transformer(1), "4 heads": transformer, "recurrent": recurrent}
each_model = pytest.mark.parametrize("build", MODELS.values(), ids=MODELS)


def families(scene):
    return {family.name: family for family in scene.families}


@each_model
def test_the_weights_are_those_the_model_returns(build):
    translator = build()
    target = "Je suis chez moi."
    scene = translation_scene(translator, TEXT, target)
    maps, english, french = translator.attention_maps(TEXT, target)
    assert families(scene).keys() == maps.keys()
    for name, family in families(scene).items():
        torch.testing.assert_close(family.weights, maps[name], **exact)
    assert (families(scene)["cross"].keys, families(scene)["cross"].queries) == (english, french)
    assert translator.model.training


@each_model
def test_every_step_of_the_arithmetic_follows_from_the_one_before(build):
    for family in translation_scene(build(), TEXT).families:
        for layer in family.layers:
            check_arithmetic(layer)


def check_arithmetic(layer):
    if "products" in layer:
        d = layer["q"].shape[-1]
        torch.testing.assert_close(layer["q"] @ layer["k"].mT, layer["products"])
        torch.testing.assert_close(layer["products"] / math.sqrt(d), layer["scores"], **exact)
    else:
        summed = layer["q"].unsqueeze(-2) + layer["k"].unsqueeze(-3)
        torch.testing.assert_close(summed.tanh(), layer["features"], **exact)
        torch.testing.assert_close(layer["features"] @ layer["w_v"], layer["scores"])
    masked = layer["scores"].masked_fill(~layer["visible"], -math.inf)
    blind = ~layer["visible"].any(-1)
    torch.testing.assert_close(
        masked.softmax(-1).masked_fill(blind.unsqueeze(-1), 0.0), layer["weights"]
    )
    torch.testing.assert_close(masked.amax(-1)[~blind], layer["peaks"][~blind], **exact)
    assert (layer["exps"][~layer["visible"]] == 0).all()
    shares = layer["exps"] / layer["totals"].unsqueeze(-1)
    torch.testing.assert_close(shares[~blind], layer["weights"][~blind])
    torch.testing.assert_close(layer["weights"] @ layer["v"], layer["output"])


def test_queries_keys_and_values_are_the_projections_of_the_layer():
    set_seed(0)
    layer, x = MultiHeadAttention(8, 4, bias=True).eval(), torch.randn(5, 8)
    (family,) = layer_scene(layer, list("abcde"), x).families
    (steps,) = family.layers
    for name, project in (("q", layer.W_q), ("k", layer.W_k), ("v", layer.W_v)):
        torch.testing.assert_close(steps[name], layer.split_heads(project(x[None]))[0])
    y, weights = layer(x[None], x[None], x[None], return_weights=True)
    torch.testing.assert_close(steps["weights"], weights[0], **exact)
    torch.testing.assert_close(layer.W_o(layer.merge_heads(steps["output"][None])), y)


@each_model
def test_the_steps_are_those_of_greedy_decoding(build):
    translator = build()
    scene = translation_scene(translator, TEXT)
    src, lens, said = greedy(translator)
    french = FRENCH.decode(said)
    assert [step.says for step in scene.steps] == french
    assert [step.reads for step in scene.steps] == ["<bos>", *french[:-1]]
    assert scene.said == translator.target.decode([i for i in said if i != FRENCH.eos])
    for step in scene.steps:
        token, chance = step.candidates[0]
        assert token == step.says
        assert [c for _, c in step.candidates] == sorted((c for _, c in step.candidates))[::-1]
        assert 0 < chance <= 1


@each_model
def test_a_row_is_what_the_model_sees_while_it_decodes_that_token_alone(build):
    translator = build()
    model, maps = translator.model, families(translation_scene(translator, TEXT))
    src, lens, said = greedy(translator)
    layers = layers_of(model)
    with evaluating(model):
        state = model.start(src, lens)
        for t, token in enumerate([FRENCH.bos, *said[:-1]]):
            with recording(layers["cross"] + layers.get("decoder", [])) as calls:
                _, state = model.decode(torch.tensor([[token]]), state)
            rows = [call["weights"][:, 0] for (call,) in calls]  # (h, keys so far) each
            for n, row in enumerate(rows[: len(layers["cross"])]):
                torch.testing.assert_close(maps["cross"].weights[n, :, t], row)
            for n, row in enumerate(rows[len(layers["cross"]) :]):
                torch.testing.assert_close(maps["decoder"].weights[n, :, t, : t + 1], row)
                assert (maps["decoder"].weights[n, :, t, t + 1 :] == 0).all()


def test_a_column_is_what_looks_at_its_key():
    family = families(translation_scene(transformer(), TEXT))["cross"]
    packed = pack_scene(translation_scene(transformer(), TEXT))["families"][0]
    weights = unpack(packed["layers"][1]["weights"])  # (h, Tq, Tk), as the browser reads it
    torch.testing.assert_close(weights[2, :, 3], family.weights[1, 2, :, 3], **exact)
    assert (packed["queries"], packed["keys"]) == (family.queries, family.keys)


def test_padding_and_the_future_are_hidden():
    set_seed(0)
    layer, x = MultiHeadAttention(8, 4), torch.randn(5, 8)
    x[4] = math.nan  # padding may hold anything
    mask = causal_mask(5) & (torch.arange(5) < 4)
    (family,) = layer_scene(layer, [*"abcd", "<pad>"], x, mask).families
    steps = family.layers[0]
    assert (steps["visible"] == mask[0, 0]).all()
    assert (steps["weights"][:, ~mask[0, 0]] == 0).all()
    torch.testing.assert_close(steps["weights"].sum(-1)[:, :4], torch.ones(4, 4))
    nothing = torch.ones(5, 5, dtype=torch.bool)
    nothing[2] = False
    for kind in (DotProductAttention(), AdditiveAttention(8, 8, 6)):
        (blind,) = layer_scene(kind, "abcde", torch.randn(5, 8), nothing).families
        check_arithmetic(blind.layers[0])
        assert (blind.layers[0]["weights"][0, 2] == 0).all()
        assert blind.layers[0]["totals"][0, 2] == 0


def test_listening_changes_nothing_and_ends():
    layer, x = MultiHeadAttention(8, 2), torch.randn(1, 3, 8)
    before = layer(x, x, x)
    with recording([layer.attention]) as (calls,):
        torch.testing.assert_close(layer(x, x, x), before)
    layer(x, x, x)
    assert len(calls) == 1
    assert "attend" not in vars(layer.attention)
    with pytest.raises(RuntimeError), recording([layer.attention]):
        raise RuntimeError
    assert "attend" not in vars(layer.attention)


# ---- what goes to the browser ---------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_packing_changes_no_number(dtype):
    x = torch.randn(2, 3, 4).to(dtype).transpose(0, 2)
    packed = pack(x)
    assert packed["shape"] == [4, 3, 2]
    torch.testing.assert_close(unpack(packed).double(), x.double(), **exact)


def test_packing_is_row_by_row_and_little_endian():
    assert pack(torch.tensor([[1.5, 2.0], [3.0, 4.0]]))["data"] == struct.pack("<4f", 1.5, 2, 3, 4)
    assert pack(torch.tensor([True, False])) == {
        "dtype": "uint8", "shape": [2], "data": b"\x01\x00",
    }  # fmt: skip


def test_all_but_the_numbers_is_text():
    packed = pack_scene(translation_scene(transformer(), TEXT), own_sentences=True)
    text = json.loads(json.dumps(packed, default=lambda data: data.hex()))
    assert text["own_sentences"] is True
    assert text["source"] == TEXT
    assert text["families"][0]["keys"] == ["we", "are", "home", ".", "<eos>"]
    assert [f["grows"] for f in text["families"]] == ["queries", "", "both"]


# ---- sentences of one's own -------------------------------------------------------------------


class Sent(list):
    """Stands in for the line to the browser."""

    def __call__(self, content, buffers=None):
        self.append(content)


def typed(widget, text):
    widget.send = sent = Sent()
    widget._handle_custom_msg({"type": "translate", "text": text}, [])
    return sent


def test_a_sentence_of_ones_own_is_translated():
    translator = transformer()
    widget = explore(translator, TEXT).widget()
    assert typed(widget, "I lost.") == [{"type": "translated"}]
    assert widget.payload == pack_scene(translation_scene(translator, "I lost."), True)
    assert widget.payload["said"] == translator.translate(["I lost."], max_len=20)[0]
    assert widget.payload["notice"] == ""


def test_unknown_words_are_named():
    widget = explore(transformer(), TEXT).widget()
    assert typed(widget, "The xylophone lost.") == [{"type": "translated"}]
    notice = "Not in the model's vocabulary: the, xylophone. It reads <unk> for each of them."
    assert widget.payload["notice"] == notice
    assert widget.payload["families"][0]["keys"][:2] == ["<unk> (the)", "<unk> (xylophone)"]


def test_a_sentence_that_does_not_fit_is_refused_and_the_old_one_stays():
    widget = explore(transformer(), TEXT).widget()
    before = widget.payload
    for text, why in (("  ", "empty"), ("we " * 20, "20 tokens, and at most 19 fit")):
        (answer,) = typed(widget, text)
        assert answer["type"] == "refused"
        assert why in answer["why"]
    assert widget.payload is before
    assert typed(widget, "we " * 18 + ".") == [{"type": "translated"}]
    endless = explore(recurrent(), TEXT).widget()
    assert "at most 99 fit" in typed(endless, "we " * 100)[0]["why"]
    assert typed(endless, "we " * 99) == [{"type": "translated"}]


def test_a_model_of_subwords_shows_its_pieces():
    set_seed(0)
    pieces = Subwords.learn(["we are late", "nous sommes en retard"] * 3, 300)
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 32}
    model = Transformer(TransformerConfig(len(pieces), len(pieces), **sizes)).double()
    scene = translation_scene(Translator(model, pieces, pieces), "we xyz", "nous")
    cross = families(scene)["cross"]
    assert cross.keys == [*pieces.tokens("we xyz"), "<eos>"]
    assert cross.queries == [*pieces.tokens("nous"), "<eos>"]
    assert (scene.notice, scene.said) == ("", "nous")
    assert pack_scene(scene)["families"][0]["layers"][0]["weights"]["dtype"] == "float64"


def test_other_messages_are_left_alone():
    widget = explore(transformer(), TEXT).widget()
    widget.send = sent = Sent()
    widget._handle_custom_msg({"type": "hello"}, [])
    still = explore_layer(MultiHeadAttention(8, 2), "abc", torch.randn(3, 8)).widget()
    assert typed(still, "I lost.") == sent == []
    assert still.payload["own_sentences"] is False


# ---- what is refused at the start --------------------------------------------------------------


def test_what_cannot_be_explored_is_refused():
    translator, layer = transformer(), MultiHeadAttention(8, 2)
    refusals = [
        (TypeError, "write explore", lambda: explore(translator.model, TEXT)),
        (TypeError, "explore_layer", lambda: layers_of(torch.nn.Linear(2, 2))),
        (ValueError, "BahdanauDecoder", lambda: explore(recurrent(GRUDecoder), TEXT)),
        (ValueError, "sentence is empty", lambda: explore(translator, "")),
        (ValueError, "target is empty", lambda: explore(translator, TEXT, "")),
        (ValueError, "target has 20 tokens", lambda: explore(translator, TEXT, "je " * 20)),
        (
            TypeError,
            "course_utils.models.attention",
            lambda: explore_layer(torch.nn.Linear(2, 2), "a", 0),
        ),
        (ValueError, "each of the 2 tokens", lambda: explore_layer(layer, "ab", torch.ones(3, 8))),
        (ValueError, "each of the 0 tokens", lambda: explore_layer(layer, "", torch.ones(0, 8))),
    ]
    for error, text, act in refusals:
        with pytest.raises(error, match=text):
            act()


# ---- the cell's output ---------------------------------------------------------------------------

LIVE = "application/vnd.jupyter.widget-view+json"


def test_where_outputs_are_stored_the_cell_is_a_picture(monkeypatch):
    monkeypatch.setenv(NOT_LIVE, "1")
    data, metadata = explore(transformer(), TEXT)._repr_mimebundle_()
    assert data.keys() == {"text/plain", "image/png"}
    assert data["text/plain"] == (
        "<Explorer, layers x heads: cross-attention (2 x 4), self-attention of the encoder "
        "(1 x 4), self-attention of the decoder (2 x 4)>"
    )
    assert Image.open(io.BytesIO(base64.b64decode(data["image/png"]))).format == "PNG"
    alt = metadata["image/png"]["alt"]
    assert alt.startswith("Heatmaps of cross-attention. layer 1, head 0: ")
    assert "head 3" in alt
    again, _ = explore(transformer(), TEXT)._repr_mimebundle_()
    assert again == data


def test_in_a_running_notebook_the_same_output_is_live_too(monkeypatch):
    monkeypatch.delenv(NOT_LIVE, raising=False)
    explorer = explore(transformer(), TEXT)
    data, metadata = explorer._repr_mimebundle_(include=None, exclude=None)
    monkeypatch.setenv(NOT_LIVE, "1")
    still, still_metadata = explorer._repr_mimebundle_()
    assert data[LIVE]["model_id"]
    assert {kind: data[kind] for kind in still} == still
    assert metadata["image/png"]["alt"] == still_metadata["image/png"]["alt"]
    assert set(still_metadata["image/png"]) == {"alt", "scene"}


def test_runs_that_store_outputs_say_so(tmp_path):
    assert headless_environment(str(tmp_path))[NOT_LIVE]
