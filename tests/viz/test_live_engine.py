"""The JavaScript of the live page computes what the course's Transformer computes.

Translations hide small mistakes, so logits are compared, to 1e-10; mutants show that this tells.
"""

import copy
import math
import random

import pytest
import torch
from live_engine import Engine, engine_script, python_translator

from course_utils.models.attention import DotProductAttention
from course_utils.models.modes import evaluating
from course_utils.text.batches import pad
from course_utils.text.corpora import load_corpus

CLOSE = 1e-10  # two sums of a few hundred products in float64 differ by far less
PLAIN = {"encoder": 1, "decoder": 1, "cross": 1}
NOTHING = {"off": [], "even": [], "temperature": PLAIN, "hidden": [], "hiddenFrom": "decoder",
           "positions": {"source": True, "target": True}}  # fmt: skip
LAYERS = [f"{family}.{layer}" for family in PLAIN for layer in (0, 1)]
HEADS = [f"{layer}.{head}" for layer in LAYERS for head in range(4)]


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    return Engine(tmp_path_factory.mktemp("engine"))


@pytest.fixture(scope="module")
def sentences():
    """English sentences that ship with the course, in an order without meaning."""
    texts = sorted({pair.source for pair in load_corpus("everyday").pairs})
    random.Random(0).shuffle(texts)
    return texts


def odd_texts():
    """Texts that a tokeniser gets wrong first: spaces, marks, scripts, halves of characters."""
    singles = [chr(code) for code in (*range(0x100), 0x2028, 0x3000, 0xFEFF, 0x200B, 0x1F600)]
    words = [
        "<pad>",
        "<eos> <unk>",
        "don't",
        "DON'T 'S 's",
        "it’s",
        "I ʼm",
        "ﬁn",
        "e\u0301te",
        "3.14 12:30",
        "٣٤ ½ Ⅷ",
        "你好。",
        "नमस्ते हिन्दी",
        "ไม่ได้ สָׁ \u0301 \u2764\ufe0f",
        "שלום",
        "👩‍👩‍👧",
        "a\ud800b",
        "\ufeffa",
        "Tu viens\u202f?",
        "a  b\tc\nd",
        "-- … «no»",
        "x" * 300,
        "ab " * 60,
        "",
        " ",
        "\u0085",
    ]
    rng = random.Random(1)
    mixed = [
        "".join(rng.choices("ab '’\t\u00a0\u0085\x1céŒ9٣，!?.你\ufeff", k=12)) for _ in range(200)
    ]
    return [*singles, *(f"a{c}b {c} c{c}" for c in singles), *words, *mixed]


def test_texts_become_the_same_ids_and_come_back(engine, sentences):
    french = [pair.target for pair in load_corpus("everyday").pairs]
    texts = [*sentences, *french, *odd_texts()]
    vocabulary = python_translator().source
    ids = vocabulary.encode_all(texts)
    broken = [random.Random(i).choices(range(len(vocabulary)), k=9) for i in range(300)]
    all_ids = list(range(len(vocabulary)))
    encoded, decoded, labels = engine.ask(
        {"ask": "encode", "texts": texts},
        {"ask": "decode", "lists": [*ids, *broken]},
        {"ask": "labels", "ids": all_ids},
    )
    assert len(texts) > 2_500
    assert encoded == ids
    assert decoded == [vocabulary.decode(each) for each in [*ids, *broken]]
    assert labels == vocabulary.pieces(all_ids)


def with_end(texts):
    vocabulary = python_translator().source
    return [[*vocabulary.encode(text), vocabulary.eos] for text in texts]


def logits_in_python(source, said, translator=None):
    """(len(said) + 1, V): logits of each next token after <bos> and after each token of `said`."""
    translator = translator or python_translator()
    src, src_lens = pad([source])
    with evaluating(translator.model):
        return translator.model(src, src_lens, torch.tensor([[translator.target.bos, *said]]))[0]


def largest_difference(answers, expected):
    return max((torch.tensor(a, dtype=torch.float64) - e).abs().max().item()
               for a, e in zip(answers, expected, strict=True))  # fmt: skip


def test_logits_agree(engine, sentences):
    sources = with_end(sentences[:40])
    said = python_translator().decode([ids[:-1] for ids in sources], 1, 50, 64)
    answers = engine.ask(
        *({"ask": "logits", "source": s, "said": t} for s, t in zip(sources, said, strict=True))
    )
    expected = [logits_in_python(s, t) for s, t in zip(sources, said, strict=True)]
    assert largest_difference(answers, expected) < CLOSE


def test_the_longest_source_fits_and_one_more_is_refused(engine):
    longest = [17] * 104 + [2]
    (answer,) = engine.ask({"ask": "logits", "source": longest, "said": [20] * 60})
    assert largest_difference([answer], [logits_in_python(longest, [20] * 60)]) < CLOSE
    with pytest.raises(AssertionError, match="106 tokens; at most 105 fit"):
        engine.ask({"ask": "logits", "source": [17, *longest], "said": []})


@pytest.mark.deeper
def test_the_same_is_said_greedily_and_by_beam(engine, sentences, request):
    long = request.config.getoption("hypothesis_profile", None) == "long"
    greedy, beam = (sentences[:n] for n in ((1000, 200) if long else (60, 12)))
    translator, answers = python_translator(), []
    for texts, way, width in ((greedy, "greedy", 1), (beam, "beam", 4)):
        sources = with_end(texts)
        (said,) = engine.ask({"ask": "translate", "sources": sources, "options": {"way": way}})
        assert said == translator.decode([ids[:-1] for ids in sources], width, 50, 64)
        answers += said
    assert len({tuple(ids) for ids in answers}) > len(greedy) / 2


# ---- changes: the same model, patched in Python by other means ------------------------------


def attention_of(model, layer):
    """The multi-head attention that the page calls "cross.1"."""
    family, index = layer.split(".")
    if family == "encoder":
        return model.encoder[int(index)].attention
    block = model.decoder[int(index)]
    return block.cross_attention if family == "cross" else block.self_attention


class Even(DotProductAttention):
    """Some heads score all keys alike."""

    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def score(self, queries, keys):
        scores = super().score(queries, keys)
        scores[:, self.heads] = 0.0
        return scores

    def attend(self, queries, keys, values, mask=None, return_weights=True):
        return super().attend(queries, keys, values, mask, True)


def heads_by_layer(names):
    return {layer: [int(n[-1]) for n in names if n.startswith(layer)] for layer in LAYERS}


def patched(change):
    """The shipped translator with this change: columns of W_o zeroed, W_q rescaled, no tables."""
    translator = copy.deepcopy(python_translator())
    model = translator.model
    with torch.no_grad():
        for layer, heads in heads_by_layer(change["off"]).items():
            for head in heads:
                attention_of(model, layer).W_o.weight[:, head * 48 : (head + 1) * 48] = 0.0
        for layer in LAYERS:
            attention_of(model, layer).W_q.weight /= change["temperature"][layer.split(".")[0]]
        for layer, heads in heads_by_layer(change["even"]).items():
            if heads:
                attention_of(model, layer).attention = Even(heads)
        for side, table in (("source", model.src_positions.table),
                            ("target", model.tgt_positions.table)):  # fmt: skip
            if not change["positions"][side]:
                table.zero_()
    return translator


def hide(translator, change, source):
    """Let masks hide source tokens, from the decoder or from both stacks."""
    model, mask = translator.model, torch.ones(1, 1, 1, len(source), dtype=torch.bool)
    mask[..., change["hidden"]] = False
    src, src_lens = pad([source])
    model._source_mask = lambda *_: mask
    if change["hiddenFrom"] == "both":
        return None
    whole = copy.copy(model)
    del whole._source_mask
    return whole.encode(src, src_lens)


def changes():
    """Kinds of changes: each head off and even, whole layers, temperatures, positions, words."""
    yield from ({"off": [head]} for head in HEADS)
    yield from ({"even": [head]} for head in HEADS[1::3])
    yield from ({"off": [h for h in HEADS if h.startswith(layer)]} for layer in LAYERS)
    yield {"off": [h for h in HEADS if h.startswith("cross.1") and h != "cross.1.2"]}
    yield from ({"temperature": {**PLAIN, family: t}} for family in PLAIN
                for t in (1 / math.sqrt(48), 4.0))  # fmt: skip
    yield from ({"positions": {"source": a, "target": b}} for a, b in ((0, 1), (1, 0), (0, 0)))
    yield from ({"hidden": hidden, "hiddenFrom": who} for hidden in ([1], [0, 2])
                for who in ("decoder", "both"))  # fmt: skip
    yield {
        "off": HEADS[:2],
        "even": HEADS[-2:],
        "hidden": [1],
        "hiddenFrom": "both",
        "temperature": {**PLAIN, "cross": 2.0},
        "positions": {"source": True, "target": False},
    }


def test_each_change_does_what_it_says(engine, sentences):
    sources = [ids for ids in with_end(sentences) if 6 <= len(ids) <= 14][:1]
    requests, expected, kinds = [], [], list(changes())
    for change in ({**NOTHING, **each} for each in kinds):
        translator = patched(change)
        for source in sources:
            said = source[:4]
            requests.append({"ask": "logits", "source": source, "said": said, "change": change})
            memory = hide(translator, change, source) if change["hidden"] else None
            src, src_lens = pad([source])
            with torch.no_grad():
                state = translator.model.start(src, src_lens, memory)
                tokens = torch.tensor([[translator.target.bos, *said]])
                expected.append(translator.model.decode(tokens, state)[0][0])
    answers = engine.ask(*requests)
    assert len(kinds) >= 40
    assert largest_difference(answers, expected) < CLOSE
    plain = [logits_in_python(source, source[:4]) for source in sources]
    for i, change in enumerate(kinds):  # none of them changes nothing
        assert largest_difference(answers[i : i + 1], plain) > 1e-3, change


# ---- mutants: slips that the comparison of logits must notice --------------------------------

MUTANTS = {
    "eps": (
        "eps = 1e-5",
        "eps = 1e-6",
    ),
    "table in float64": (
        "Math.fround(i % 2 ?",
        "(i % 2 ?",
    ),
    "subnormal halves as 0": (
        "return sign * fraction * 2 ** -24",
        "return 0",
    ),
    "unbiased variance": (
        "(value - mean) ** 2, 0) / x.length",
        "(value - mean) ** 2, 0) / (x.length - 1)",
    ),
    "float32 activations": (
        "const y = new Float64Array(",
        "const y = new Float32Array(",
    ),
    "GELU": (
        "relu = (x) => x.map((value) => Math.max(value, 0))",
        "relu = (x) => x.map((v) => v / (1 + Math.exp(-1.702 * v)))",
    ),
    "target positions from 1": (
        '"target", state.length',
        '"target", state.length + 1',
    ),
    "source positions from 1": (
        '"source", place',
        '"source", place + 1',
    ),
    "root of d_model": (
        "Math.sqrt(d) * change.temp",
        "Math.sqrt(h * d) * change.temp",
    ),
    "embeddings not scaled": (
        "value * Math.sqrt(d)",
        "value",
    ),
    "no norm at the end": (
        'linear(this.norm(x, "decoder_norm")',
        "linear(x",
    ),
    "no norm of the memory": (
        'this.norm(x, "encoder_norm")',
        "x",
    ),
    "sines and cosines swapped": (
        "Math.cos(angle) : Math.sin(angle)",
        "Math.sin(angle) : Math.cos(angle)",
    ),
    "frequency of each column its own": (
        "-(i - (i % 2)) / d",
        "-i / d",
    ),
    "one key of the past forgotten": (
        "[...target.keys, ...own.keys]",
        "[...target.keys.slice(1), ...own.keys]",
    ),
    "keys as values": (
        "values: this.project(rows, `${layer}.W_v`)",
        "values: this.project(rows, `${layer}.W_k`)",
    ),
    "no residual": (
        "rows.map((row, t) => add(row, more[t]))",
        "more",
    ),
    "tied to the source": (
        'this.weights["tgt_embedding.weight"]);',
        'this.weights["src_embedding.weight"]);',
    ),
}


def test_mutants_are_noticed(engine, sentences):
    (source,) = with_end(sentences[:1])
    said, script, requests = source[:5], engine_script(), []
    for n, (old, new) in enumerate(MUTANTS.values()):
        assert script.count(old) >= 1, old
        engine.add(f"mutant{n}.mjs", script.replace(old, new))
        requests.append({"code": f"mutant{n}.mjs", "ask": "logits", "source": source, "said": said})
    answers, expected = engine.ask(*requests), logits_in_python(source, said)
    noticed = {
        name: answer[0][0] is None or largest_difference([answer], [expected]) > CLOSE
        for name, answer in zip(MUTANTS, answers, strict=True)
    }
    assert all(noticed.values()), noticed
