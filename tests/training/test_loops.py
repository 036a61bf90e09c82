"""Loss and training loops."""

import copy
import math
import warnings

import d2l.torch as d2l
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.models.recurrent import BahdanauDecoder, GRUDecoder, GRUEncoder, Seq2Seq
from course_utils.models.transformer import Transformer, TransformerConfig
from course_utils.text.batches import Example, encode_pairs, make_batches, number_pairs
from course_utils.text.pairs import Pair
from course_utils.text.vocab import Vocab
from course_utils.training.loops import Trainer, train
from course_utils.training.losses import masked_cross_entropy
from course_utils.training.seeds import set_seed
from course_utils.training.translation import Translator

few = settings(deadline=None, max_examples=30, derandomize=True)
close = torch.testing.assert_close

PAIRS = [
    Pair("Go.", "Va !"),
    Pair("I lost.", "J'ai perdu."),
    Pair("He's calm.", "Il est calme."),
    Pair("I'm home.", "Je suis chez moi."),
    Pair("We are late.", "Nous sommes en retard."),
    Pair("Are you coming?", "Tu viens ?"),
    Pair("I don't see the dog.", "Je ne vois pas le chien."),
    Pair("The dog sees me.", "Le chien me voit."),
]


def padded(lengths, width, high):
    """(B, width) random targets without <pad>, then padded."""
    targets = torch.randint(1, high, (len(lengths), width))
    return targets.masked_fill(torch.arange(width) >= torch.tensor(lengths)[:, None], Vocab.pad)


# ---------------------------------------------------------------- loss


def test_uniform_logits_cost_the_log_of_the_vocabulary_whatever_the_padding():
    targets = padded([1, 10, 100], 100, 26)
    logits = torch.zeros(3, 100, 26)
    assert masked_cross_entropy(logits, targets).item() == pytest.approx(math.log(26), abs=1e-5)
    for i in range(3):
        row = masked_cross_entropy(logits[i : i + 1], targets[i : i + 1])
        assert row.item() == pytest.approx(3.2581, abs=5e-5)


def test_every_real_token_weighs_the_same():
    logits, targets = torch.randn(2, 4, 5), torch.tensor([[1, 0, 0, 0], [4, 3, 2, 1]])
    logs = logits.log_softmax(dim=-1)
    wanted = -(logs[0, 0, 1] + logs[1, 0, 4] + logs[1, 1, 3] + logs[1, 2, 2] + logs[1, 3, 1]) / 5
    close(masked_cross_entropy(logits, targets), wanted)


def test_loss_equals_d2l_once_its_mean_over_padding_is_undone():
    lengths = [2, 5, 3]
    logits, targets = torch.randn(3, 5, 7), padded([2, 5, 3], 5, 7)
    theirs = d2l.MaskedSoftmaxCELoss()(logits, targets, torch.tensor(lengths))  # sum / 5 a row
    close(masked_cross_entropy(logits, targets), theirs.sum() * 5 / sum(lengths))


@few
@given(
    lengths=st.lists(st.integers(0, 6), min_size=1, max_size=4).filter(any),
    extra=st.integers(0, 5),
    smoothing=st.sampled_from([0.0, 0.1, 0.4]),
)
def test_more_padding_changes_neither_loss_nor_gradient(lengths, extra, smoothing):
    targets = padded(lengths, 6, 7)
    longer = F.pad(targets, (0, extra), value=Vocab.pad)
    logits = torch.randn(len(lengths), 6 + extra, 7, dtype=torch.float64, requires_grad=True)
    results = []
    for some, t in ((logits[:, :6], targets), (logits, longer)):
        logits.grad = None
        loss = masked_cross_entropy(some, t, label_smoothing=smoothing)
        loss.backward()
        results.append((loss.detach(), logits.grad))
    close(*results, rtol=0, atol=1e-12)
    assert results[1][1][longer == Vocab.pad].eq(0).all()


def test_label_smoothing_by_hand():
    logits, targets = torch.randn(2, 3, 5), torch.tensor([[1, 2, 0], [4, 0, 0]])
    logs, real = logits.log_softmax(dim=-1), targets != 0
    right = -logs.gather(-1, targets[..., None]).squeeze(-1)
    wanted = (0.9 * right + 0.1 * -logs.mean(dim=-1))[real].mean()
    close(masked_cross_entropy(logits, targets, label_smoothing=0.1), wanted)


def test_another_pad_id_and_inputs_that_are_views():
    logits = torch.randn(5, 2, 3).permute(1, 2, 0)  # (2, 3, 5)
    targets = torch.tensor([[1, 4], [2, 0], [4, 4]]).T
    kept = targets.clone()
    got = masked_cross_entropy(logits, targets, pad=4)
    logs = logits.log_softmax(dim=-1)
    close(got, -(logs[0, 0, 1] + logs[0, 1, 2] + logs[1, 1, 0]) / 3)
    assert targets.equal(kept)


def test_huge_logits_at_padding_do_no_harm():
    logits = torch.randn(1, 3, 5)
    logits[0, 2] = math.nan
    logits.requires_grad_()
    loss = masked_cross_entropy(logits, torch.tensor([[1, 2, 0]]))
    loss.backward()
    assert loss.isfinite()
    assert logits.grad[0, :2].isfinite().all()


def test_targets_that_are_all_padding_are_refused():
    with pytest.raises(ValueError, match="every target is padding"):
        masked_cross_entropy(torch.zeros(2, 3, 5), torch.zeros(2, 3, dtype=torch.long))


# ---------------------------------------------------------------- training loop


def build(kind, dropout=0.0):
    set_seed(0)
    src_vocab, tgt_vocab, _ = number_pairs(PAIRS)
    if kind == "transformer":
        sizes = {"d_model": 32, "num_heads": 4, "d_ff": 64, "dropout": dropout, "max_len": 32}
        model = Transformer(TransformerConfig(len(src_vocab), len(tgt_vocab), **sizes))
    else:
        decoder = {"gru": GRUDecoder, "bahdanau": BahdanauDecoder}[kind]
        model = Seq2Seq(
            GRUEncoder(len(src_vocab), 32, 32, dropout=dropout),
            decoder(len(tgt_vocab), 32, 32, dropout=dropout),
        )
    return Translator(model, src_vocab, tgt_vocab), encode_pairs(PAIRS, src_vocab, tgt_vocab)


@pytest.mark.parametrize("kind", ["transformer", "gru", "bahdanau"])
def test_a_tiny_model_learns_eight_pairs_by_heart_and_translates_them(kind):
    translator, examples = build(kind)
    losses = train(translator.model, examples, epochs=60, batch_size=8, lr=2e-2)
    assert len(losses) == 60
    assert losses[0] > 2
    assert losses[-1] < 0.05
    wanted = [pair.target.lower() for pair in PAIRS]
    assert translator.translate([pair.source for pair in PAIRS]) == wanted
    assert translator.translate([pair.source for pair in PAIRS], beam=3) == wanted


@pytest.mark.parametrize("kind", ["transformer", "bahdanau"])
def test_a_seed_determines_losses_and_weights(kind):
    runs = []
    for seed in (0, 0, 1):
        translator, examples = build(kind, dropout=0.1)
        losses = train(translator.model, examples, epochs=3, batch_size=3, seed=seed)
        runs.append((losses, [p.detach().clone() for p in translator.model.parameters()]))
    assert runs[0][0] == runs[1][0]
    assert all(a.equal(b) for a, b in zip(runs[0][1], runs[1][1], strict=True))
    assert runs[0][0] != runs[2][0]


def test_every_update_is_that_of_adam_with_the_scheduled_rate_and_a_clipped_gradient():
    """Against a plain loop: all eight pairs in one batch, four updates, warm-up of two."""
    translator, examples = build("transformer")
    model = translator.model.double()
    start = {name: p.clone() for name, p in model.state_dict().items()}
    train(model, examples, epochs=4, batch_size=8, lr=1e-2, warmup=0.5, clip=0.3)
    got = {name: p.clone() for name, p in model.state_dict().items()}

    model.load_state_dict(start)
    parameters, batch = list(model.parameters()), next(make_batches(examples, 8))
    optimizer = torch.optim.Adam(parameters, betas=(0.9, 0.98), eps=1e-9)
    for share in (1 / 2, 1, 1, 1 / 2):
        optimizer.param_groups[0]["lr"] = 1e-2 * share
        loss = masked_cross_entropy(model(batch.src, batch.src_lens, batch.tgt_in), batch.tgt_out)
        gradients = torch.autograd.grad(loss, parameters)
        norm = torch.stack([g.square().sum() for g in gradients]).sum().sqrt()
        assert norm > 0.3
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient * 0.3 / norm
        optimizer.step()
    for name, wanted in model.state_dict().items():
        close(got[name], wanted, rtol=0, atol=1e-6)
        assert not torch.allclose(got[name], start[name], atol=1e-4)


def test_the_loss_reported_for_an_epoch_is_the_mean_per_real_token():
    """With a rate of next to nothing the model stands still, so it can be measured again."""
    translator, examples = build("transformer")
    got = train(translator.model, examples, epochs=2, batch_size=3, lr=1e-12)
    total, tokens = 0.0, 0
    for example in examples:
        src, tgt = torch.tensor([example.source]), torch.tensor([example.target])
        logits = translator.model(src, torch.tensor([src.shape[1]]), tgt[:, :-1])
        total += F.cross_entropy(logits[0], tgt[0, 1:], reduction="sum").item()
        tokens += tgt.shape[1] - 1
    assert got == pytest.approx([total / tokens] * 2, abs=1e-5)


@pytest.mark.parametrize(
    ("epochs", "max_steps", "updates", "reported"),
    [(2, None, 6, 2), (2, 4, 4, 2), (2, 3, 3, 1), (5, 1, 1, 1), (1, 100, 3, 1)],
)
def test_epochs_and_max_steps_bound_the_updates(epochs, max_steps, updates, reported):
    translator, examples = build("transformer")  # 8 examples in batches of 3, 3 and 2
    calls = []
    translator.model.register_forward_hook(lambda *_: calls.append(1))
    losses = train(translator.model, examples, epochs=epochs, batch_size=3, max_steps=max_steps)
    assert len(calls) == updates
    assert len(losses) == reported


def test_training_happens_in_training_mode_and_ends_in_eval_mode():
    translator, examples = build("transformer")
    modes = []
    translator.model.eval().register_forward_hook(lambda m, *_: modes.append(m.training))
    train(translator.model, examples, epochs=1)
    assert modes == [True]
    assert not translator.model.training


def test_gradients_are_clipped():
    """With clip next to 0 Adam's eps outweighs the gradient, so the model hardly moves."""
    moved = []
    for clip in (1.0, 1e-14):
        translator, examples = build("transformer")
        before = [p.detach().clone() for p in translator.model.parameters()]
        train(translator.model, examples, epochs=1, clip=clip)
        after = translator.model.parameters()
        moved.append(max((a - b).abs().max().item() for a, b in zip(after, before, strict=True)))
    assert moved[0] > 1e-3
    assert moved[1] < 1e-5


def test_label_smoothing_reaches_the_loss():
    losses = []
    for smoothing in (0.0, 0.3):
        translator, examples = build("transformer")
        losses.append(
            train(translator.model, examples, epochs=25, lr=1e-2, label_smoothing=smoothing)[-1]
        )
    assert losses[1] > losses[0] + 0.3  # a smoothed target can never be met exactly


def test_a_loss_that_is_no_number_stops_training_before_it_reaches_the_weights():
    translator, examples = build("transformer")
    with torch.no_grad():
        translator.model.src_embedding.weight[4:] = math.nan
    kept = translator.model.decoder[0].ffn.hidden.weight.detach().clone()
    with pytest.raises(FloatingPointError, match="loss is nan at update 1, .*lower lr"):
        train(translator.model, examples, epochs=1)
    assert translator.model.decoder[0].ffn.hidden.weight.equal(kept)


def test_a_rate_that_is_far_too_high_is_named():
    translator, examples = build("transformer")
    with pytest.raises(FloatingPointError, match=r"at update \d+, with .*: lower lr"):
        train(translator.model, examples, epochs=30, lr=1e37)


@pytest.mark.parametrize(
    ("count", "options"),
    [
        (0, {"epochs": 1}),
        (8, {"epochs": 0}),
        (8, {"epochs": 1, "batch_size": 0}),
        (8, {"epochs": 1, "max_steps": 0}),
    ],
)
def test_training_on_nothing_is_refused(count, options):
    translator, examples = build("transformer")
    with pytest.raises(ValueError, match="at least one of each.*: 0[,}]"):
        train(translator.model, examples[:count], **options)


def test_a_sentence_longer_than_max_len_is_named():
    translator, _ = build("transformer")
    with pytest.raises(ValueError, match="max_len = 32"):
        train(translator.model, [Example([4] * 40, [1, 4, 2])], epochs=1)


def test_training_gives_no_warning():
    translator, examples = build("transformer")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(translator.model, examples, epochs=1)


def test_a_paused_training_equals_an_unbroken_one():
    translator, examples = build("transformer", dropout=0.1)
    unbroken = copy.deepcopy(translator.model)
    options = {"epochs": 4, "batch_size": 3, "seed": 5}
    set_seed(0)
    expected = train(unbroken, examples, **options)
    set_seed(0)
    trainer = Trainer(translator.model, examples, **options)
    assert trainer.run(1) + trainer.run(2) + trainer.run() == expected
    assert trainer.run() == []  # the schedule has come to its end
    for ours, theirs in zip(translator.model.parameters(), unbroken.parameters(), strict=True):
        assert torch.equal(ours, theirs)


class Infinite(torch.autograd.Function):
    """Gives what it reads, and sends back what is no number."""

    @staticmethod
    def forward(ctx, x, value):
        ctx.value = value
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return torch.full_like(gradient, ctx.value), None


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_gradient_that_is_no_number_reaches_no_weight(value):
    translator, examples = build("transformer")
    model = translator.model
    trainer = Trainer(model, examples, epochs=3, batch_size=3)
    trainer.run(1)
    kept = [p.detach().clone() for p in model.parameters()]
    hook = model.output.register_forward_hook(lambda m, i, out: Infinite.apply(out, value))
    with pytest.raises(FloatingPointError, match="gradient is .* at update 4, .*before it"):
        trainer.run(1)
    assert all(a.equal(b) for a, b in zip(model.parameters(), kept, strict=True))
    assert not model.training
    assert trainer.step == 3
    hook.remove()
    assert len(trainer.run()) == 2
    assert trainer.step == trainer.steps == 9
