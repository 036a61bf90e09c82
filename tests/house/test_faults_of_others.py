"""Faults that were reported against other courses and libraries, kept out of this one.

Only those stand here that no other test guards. Each test names the fault, and the public report
where there is one.
"""

import ast
import json
import math
import os
import re
import subprocess
import sys

import pytest
import torch
from torch import nn

from course_utils.environment import ROOT
from course_utils.models import attention
from course_utils.models.attention import (
    AdditiveAttention,
    DotProductAttention,
    MultiHeadAttention,
    masked_softmax,
)
from course_utils.models.classifier import SequenceClassifier
from course_utils.models.fine_tuning import LoRALinear
from course_utils.models.language_model import LanguageModel, generate
from course_utils.models.long_attention import (
    RelativeAttention,
    linear_attention,
    low_rank_attention,
    lsh_attention,
    mean_pooling,
    top_k_attention,
    window_attention,
)
from course_utils.models.masks import causal_mask
from course_utils.models.recurrent import BahdanauDecoder, GRUEncoder, Seq2Seq
from course_utils.models.token_encoder import TokenEncoder
from course_utils.models.transformer import EncoderBlock, Transformer, TransformerConfig
from course_utils.training.decoding import beam_search, greedy_decode
from course_utils.training.losses import masked_cross_entropy
from course_utils.training.schedules import noam, scheduler
from course_utils.training.seeds import set_seed

SOURCES = sorted((ROOT / "course_utils").rglob("*.py"))
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.fixture(autouse=True)
def _seed():
    set_seed(0)


def course_code():
    """(where, source) of every module and of every notebook's code cells."""
    for path in SOURCES:
        yield path.name, path.read_text(encoding="utf-8")
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        for cell in cells:
            if cell["cell_type"] == "code":
                yield path.name, "".join(cell["source"])


def test_course_code_is_found():
    assert len(SOURCES) > 50
    assert len(NOTEBOOKS) > 10
    assert sum(1 for _ in course_code()) > 200


# ---------------------------------------------------------------- masks


CAUSAL = {  # x (B, T, 8) -> (B, T, 8), each position from itself and what stands before it
    "kernel": lambda x: linear_attention(*[x[:, None]] * 3, causal=True)[:, 0],
    "window": lambda x: window_attention(*[x[:, None]] * 3, 2, causal=True)[:, 0],
    "window, global": lambda x: window_attention(*[x[:, None]] * 3, 2, num_global=1, causal=True)[
        :, 0
    ],
    "relative": RelativeAttention(8, 2),
    "encoder block": lambda x: EncoderBlock(8, 2, 16)(x, causal_mask(x.shape[1])),
}


@pytest.mark.parametrize("layer", CAUSAL.values(), ids=CAUSAL)
@torch.no_grad()
def test_a_causal_layer_does_not_see_the_future(layer):
    """Masks of opposite meaning let a "causal" model see it: pytorch/pytorch#21518."""
    x = torch.randn(2, 6, 8)
    changed = x.clone()
    changed[:, -1] += 100.0
    set_seed(1)
    before = layer(x)
    set_seed(1)
    after = layer(changed)
    assert before[:, :-1].equal(after[:, :-1])
    assert not before[:, -1].equal(after[:, -1])


Q = torch.randn(1, 4, 8)
TAKE_MASKS = {
    "additive": lambda mask: AdditiveAttention(8, 8, 4)(Q, Q, Q, mask),
    "dot product": lambda mask: DotProductAttention()(Q, Q, Q, mask),
    "multi-head": lambda mask: MultiHeadAttention(8, 2)(Q, Q, Q, mask),
    "encoder block": lambda mask: EncoderBlock(8, 2, 16)(Q, mask),
    "token encoder": lambda mask: TokenEncoder(9, 8, 2, 16)(torch.tensor([[1, 2, 3, 4]]), mask),
    "kernel": lambda mask: linear_attention(*[Q[:, None]] * 3, mask=mask),
    "window": lambda mask: window_attention(*[Q[:, None]] * 3, 2, mask=mask),
    "relative": lambda mask: RelativeAttention(8, 2)(Q, mask=mask),
}


@pytest.mark.parametrize("call", TAKE_MASKS.values(), ids=TAKE_MASKS)
def test_a_mask_of_numbers_is_refused_and_not_added(call):
    """pytorch/pytorch#120668: a 0/1 mask of floats is added to the scores."""
    with pytest.raises(TypeError, match=r"boolean tensor.*float32: use mask\.bool"):
        call(torch.ones(4, 4).tril())


@pytest.mark.parametrize("call", TAKE_MASKS.values(), ids=TAKE_MASKS)
@pytest.mark.parametrize("lengths", [[2], [1, 2, 3, 4]])
def test_lengths_in_the_place_of_a_mask_are_sent_to_their_own(call, lengths):
    """awslabs/sockeye#282: they are taken for a mask, and made boolean they would hide nothing."""
    with pytest.raises(TypeError, match="numbers of visible keys as valid_lens="):
        call(torch.tensor(lengths))
    with pytest.raises(ValueError, match="lengths as valid_lens="):
        call(torch.tensor(lengths).bool())


def test_a_mask_in_the_place_of_lengths_is_sent_to_its_own():
    """The reverse: `mask.long()`, of the shape (B, Tq), would be read as lengths of 0 and 1."""
    mask = torch.ones(1, 4, dtype=torch.bool)
    with pytest.raises(TypeError, match="give a mask as mask="):
        masked_softmax(torch.randn(1, 4, 4), mask)
    with pytest.raises(TypeError, match="give a mask as mask="):
        MultiHeadAttention(8, 2)(Q, Q, Q, valid_lens=mask)


def test_masked_softmax_reads_no_mask_of_one_axis():
    with pytest.raises(ValueError, match="lengths as valid_lens="):
        masked_softmax(torch.randn(3, 3), mask=torch.tensor([1, 2, 3]).bool())
    assert masked_softmax(torch.zeros(2), mask=torch.tensor([True, False])).tolist() == [1, 0]


@pytest.mark.parametrize("weights", [True, False])
@torch.no_grad()
def test_what_a_later_token_does_to_earlier_ones(weights):
    """Anything finite does nothing; NaN reaches them, and attention.py says so."""
    layer, x, mask = MultiHeadAttention(8, 2), torch.randn(1, 4, 8), causal_mask(4)

    def earlier(last):
        changed = x.clone()
        changed[:, -1] = last
        output = layer(changed, changed, changed, mask, return_weights=weights)
        return (output[0] if weights else output)[:, :-1]

    assert earlier(1e15).equal(earlier(0.0))
    assert earlier(math.nan).isnan().all()
    assert "0 * NaN is NaN" in attention.__doc__


def test_an_all_padding_row_leaves_classifier_and_translator_finite():
    """pytorch/pytorch#103749: a row that sees nothing turns the batch to NaN."""
    model = Transformer(TransformerConfig(9, 9, 8, 2, 16, 1, 1))
    loss = masked_cross_entropy(
        model(torch.ones(2, 3, dtype=torch.long), torch.tensor([0, 3]), torch.tensor([[1, 4]] * 2)),
        torch.tensor([[4, 2], [4, 0]]),
    )
    loss.backward()
    assert loss.isfinite()
    assert all(p.grad.isfinite().all() for p in model.parameters())


# ---------------------------------------------------------------- shapes and modes


LONG = {
    "window": lambda q, k, v: window_attention(q, k, v, 2, num_global=1),
    "kernel": linear_attention,
    "low rank": lambda q, k, v: low_rank_attention(q, k, v, mean_pooling(3, 6)),
    "hashing": lambda q, k, v: lsh_attention(q, v, torch.eye(8)[:, :2], 3),
    "top k": lambda q, k, v: top_k_attention(q, k, v, 2),
}


@pytest.mark.parametrize("attend", LONG.values(), ids=LONG)
@pytest.mark.parametrize("layout", ["time-major", "expanded"])
def test_long_attention_takes_tensors_that_are_not_contiguous(attend, layout):
    """facebookresearch/fairseq#2598: view() after a transposition fails."""
    x = [
        torch.randn(1, 2, 6, 8).expand(3, 2, 6, 8)
        if layout == "expanded"
        else torch.randn(6, 3, 2, 8).permute(1, 2, 0, 3)
        for _ in range(3)
    ]
    assert not any(t.is_contiguous() for t in x)
    torch.testing.assert_close(attend(*x), attend(*(t.contiguous() for t in x)))


@pytest.mark.parametrize("layout", ["time-major", "expanded"])
def test_blocks_and_loss_take_tensors_that_are_not_contiguous(layout):
    """NVIDIA/Megatron-LM#875, at the encoder block and the loss."""
    expanded = layout == "expanded"
    x = torch.randn(1, 5, 8).expand(3, 5, 8) if expanded else torch.randn(5, 3, 8).transpose(0, 1)
    targets = torch.randint(1, 8, (5, 3)).T
    block, lens = EncoderBlock(8, 2, 16), torch.tensor([5, 2, 3])
    torch.testing.assert_close(
        block(x, valid_lens=lens), block(x.contiguous(), valid_lens=lens), rtol=0, atol=1e-6
    )
    torch.testing.assert_close(
        masked_cross_entropy(x, targets), masked_cross_entropy(x.contiguous(), targets)
    )


def test_a_batch_of_padded_columns_keeps_its_shape_in_every_model():
    """pytorch/pytorch#97111: the fast path of evaluation cuts columns that are all padding."""
    encoder = TokenEncoder(9, 8, 2, 16)
    tokens, lens = torch.randint(0, 9, (2, 6)), torch.tensor([3, 2])
    classify = SequenceClassifier(encoder, 3).eval()
    with torch.no_grad():
        assert encoder(tokens, valid_lens=lens).shape == (2, 6, 8)
        torch.testing.assert_close(classify(tokens, lens), classify(tokens[:, :3], lens))


@pytest.mark.parametrize("search", [greedy_decode, beam_search])
def test_a_padded_source_is_translated_like_one_without(search):
    """pytorch/tutorials#3643: the encoder's state is taken after the padding."""
    model = Seq2Seq(GRUEncoder(9, 8, 8), BahdanauDecoder(9, 8, 8)).eval()
    sentence, lens = torch.tensor([[4, 5, 6]]), torch.tensor([3])
    outputs = []
    for width in (3, 5, 9):
        src = nn.functional.pad(sentence, (0, width - 3))
        maps = model.attention_maps(src, lens, torch.tensor([[1, 4, 5]]))["cross"]
        assert maps[..., 3:].eq(0).all()
        said = search(model, src, lens, bos=1, eos=2, max_len=6)
        outputs.append((said, model.start(src, lens).hidden, maps[..., :3]))
    for said, hidden, maps in outputs[1:]:
        assert said == outputs[0][0]
        torch.testing.assert_close((hidden, maps), outputs[0][1:])


def test_losses_leave_their_inputs_alone():
    """A sequence mask that writes into the tensor it was given."""
    logits, targets = torch.randn(2, 3, 5), torch.tensor([[1, 2, 0], [4, 0, 0]])
    kept = logits.clone(), targets.clone()
    masked_cross_entropy(logits, targets, label_smoothing=0.1)
    assert logits.equal(kept[0])
    assert targets.equal(kept[1])


# ---------------------------------------------------------------- training


def test_the_rates_of_the_paper_reach_the_optimiser_once():
    """tugstugi/pytorch-saltnet#7, lhoyer/MIC#60: step 0, and a rate multiplied twice."""
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = scheduler(optimizer, lambda step: noam(step, d_model=512, warmup=4000))
    rates = []
    for _ in range(8000):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    got = [rates[update - 1] for update in (1, 2, 4000, 8000)]
    assert got == pytest.approx([1.747e-7, 3.494e-7, 6.988e-4, 4.941e-4], rel=3e-4)


def test_lora_divides_alpha_by_the_rank():
    """rasbt/LLMs-from-scratch#821: unnoticed where alpha equals the rank."""
    layer, x = LoRALinear(nn.Linear(7, 5), rank=4, alpha=8.0), torch.randn(3, 7)
    assert layer(x).equal(layer.base(x))
    nn.init.normal_(layer.B)
    torch.testing.assert_close(layer(x) - layer.base(x), 2 * x @ layer.A.T @ layer.B.T)


def test_files_of_weights_are_read_without_pickle():
    """dvgodoy/PyTorchStepByStep#61: torch.load of whole objects fails, or runs what it reads."""
    for where, source in course_code():
        assert not re.search(r"weights_only\s*=\s*False|^\s*import pickle", source, re.M), where
        if where.endswith(".ipynb"):
            assert all(
                "weights_only=True" in c for c in re.findall(r"torch\.load\([^)]*", source)
            ), where
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.load":
                assert "weights_only" in {k.arg for k in node.keywords}, where


# ---------------------------------------------------------------- sampling


def test_generating_at_temperature_zero_repeats():
    """karpathy/nanoGPT#738: a division by zero."""
    model = LanguageModel(TokenEncoder(9, 8, 2, 16))
    runs = [generate(model, torch.tensor([[1, 2]]), 8, context=4, temperature=0) for _ in range(3)]
    assert runs[0].equal(runs[1])
    assert runs[0].equal(runs[2])
    one = generate(model, torch.tensor([[1, 2]]), 8, context=4, top_k=1)
    assert one.equal(runs[0])  # the best token alone


@pytest.mark.parametrize("top_k", [-1, 0, 10, 10**6])
def test_a_top_k_that_makes_no_sense_is_refused_with_the_range(top_k):
    """karpathy/nanochat#466: a crash deep inside topk."""
    model = LanguageModel(TokenEncoder(9, 8, 2, 16))
    with pytest.raises(ValueError, match=rf"top_k must lie in 1\.\.9, .*got {top_k}"):
        generate(model, torch.tensor([[1]]), 2, context=4, top_k=top_k)


# ---------------------------------------------------------------- texts, packages, notebooks


def test_every_file_is_opened_with_its_encoding():
    """d2l-ai/d2l-en#2287: garbage or a crash under another default encoding."""
    rule = ["--isolated", "--no-cache", "--preview", "--select", "PLW1514"]
    folders = [str(ROOT / name) for name in ("course_utils", "tests", "notebooks")]
    run = subprocess.run(
        [sys.executable, "-m", "ruff", "check", *rule, *folders],
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert run.returncode == 0, run.stdout + run.stderr


READ_EVERYTHING = """
import tempfile
import warnings
from pathlib import Path
from course_utils.text.corpora import load_corpus
from course_utils.text.prose import load_text
from course_utils.text.subwords import Subwords
from course_utils.training.runs.folder import read_vocabulary, write_vocabulary
warnings.filterwarnings("error", category=EncodingWarning, module="course_utils")
pairs = load_corpus("everyday", 50).pairs
with tempfile.TemporaryDirectory() as folder:
    write_vocabulary(Path(folder), Subwords.learn([pair.target for pair in pairs], 300))
    vocabulary = read_vocabulary(Path(folder))
print(ascii([load_text(size=500), pairs, [vocabulary.tokens(pair.target) for pair in pairs]]))
"""


def test_texts_are_read_alike_under_any_default_encoding():
    """d2l-ai/d2l-zh#401, beyond the corpora."""
    outputs = set()
    for settings in ({"PYTHONUTF8": "0", "LC_ALL": "C"}, {"PYTHONUTF8": "1"}):
        run = subprocess.run(
            [sys.executable, "-X", "warn_default_encoding", "-c", READ_EVERYTHING],
            env={**os.environ, **settings, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            encoding="utf-8",
        )
        assert run.returncode == 0, run.stderr
        outputs.add(run.stdout)
    assert len(outputs) == 1


def test_requirements_are_ranges_with_two_ends():
    """d2l-ai/d2l-en#2608: exact old pins cannot be installed on a newer Python."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    needs = [line for line in lines if line and not line.startswith("#")]
    extras = (ROOT / "pyproject.toml").read_text(encoding="utf-8").split("[project.optional")[1]
    needs += re.findall(r'"([\w-]+[=<>][^"]*)"', extras.split("\n[")[0])
    exact = {line.split("==")[0] for line in needs if "==" in line}
    assert exact <= {"d2l", "nbval"}  # pure Python, and why they are exact stands in the file
    for need in set(needs) - {line for line in needs if "==" in line}:
        assert re.fullmatch(r"[\w-]+>=\d[\d.]*,<\d[\d.]*", need), need


REMOVED = (
    r"set_matplotlib_formats|IPython\.core\.display import|IPython\.display import set_matplotlib"
    r"|matplotlib\.cm\.get_cmap|plt\.cm\.get_cmap|torch\.qr\(|np\.(float|int|bool|object)\b[^_\d]"
)


def test_nothing_that_newer_releases_removed_is_called():
    """d2l-ai/d2l-en#1926, ipython/ipython#14658."""
    for where, source in course_code():
        found = re.search(REMOVED, source)
        assert not found, f"{where}: {found}"
