"""Greedy and beam search: bounds, ends, modes, and a brute-force optimum."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.models.modes import evaluating
from course_utils.models.recurrent import BahdanauDecoder, GRUDecoder, GRUEncoder, Seq2Seq
from course_utils.models.transformer import Transformer, TransformerConfig
from course_utils.training.decoding import beam_search, greedy_decode

few = settings(deadline=None, max_examples=8, derandomize=True)
BOS, EOS = 1, 2
ENDS = {"bos": BOS, "eos": EOS}


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


class TableState:
    """What `TableModel` remembers: the tokens read so far, one row a sentence."""

    def __init__(self, sources, tokens):
        self.sources, self.tokens = sources, tokens

    def select(self, rows):
        return TableState(self.sources[rows], self.tokens[rows])


class TableModel(torch.nn.Module):
    """Logits are a function of the source's first id and of the tokens read so far."""

    def __init__(self, logits_of):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))  # so that a graph could be kept
        self.logits_of, self.calls, self.rows = logits_of, 0, []

    def start(self, src, src_lens):
        return TableState(src[:, 0], torch.zeros(len(src), 0, dtype=torch.long))

    def decode(self, tokens, state):
        assert tokens.shape == (len(state.tokens), 1)
        self.calls += 1
        self.rows.append(len(tokens))
        read = torch.cat([state.tokens, tokens], dim=1)
        rows = [
            self.logits_of(int(source), tuple(row[1:]))
            for source, row in zip(state.sources, read.tolist(), strict=True)
        ]
        assert all(row[0] == BOS for row in read.tolist())
        logits = torch.tensor(rows).unsqueeze(1) + self.weight
        return logits, TableState(state.sources, read)


def sources(*ids):
    return torch.tensor(ids)[:, None], torch.ones(len(ids), dtype=torch.long)


def peak(token, size=6):
    """Logits that clearly prefer one token."""
    return [5.0 if i == token else 0.1 * i for i in range(size)]


def real_models():
    config = TransformerConfig(9, 7, d_model=8, num_heads=2, d_ff=8, dropout=0.3, max_len=30)
    yield Transformer(config)
    for decoder in (GRUDecoder, BahdanauDecoder):
        yield Seq2Seq(GRUEncoder(9, 5, 8, 2, 0.3), decoder(7, 5, 8, 2, 0.3))


def random_model(kind):
    """A model whose logits are far apart, so that equal sums in another order choose alike."""
    model = list(real_models())[kind].double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    return model


every_model = pytest.mark.parametrize("kind", range(3), ids=["transformer", "gru", "bahdanau"])
searches = pytest.mark.parametrize(
    "search",
    [greedy_decode, beam_search, lambda *a, **k: beam_search(*a, **k, beam=1)],
    ids=["greedy", "beam of 4", "beam of 1"],
)


# ---------------------------------------------------------------- ends and bounds


@searches
@pytest.mark.parametrize("max_len", [1, 7])
def test_a_model_that_never_ends_gives_exactly_max_len_tokens(search, max_len):
    model = TableModel(lambda source, read: peak(3)[:2] + [-math.inf] + peak(3)[3:])
    src, lens = sources(0, 0)
    assert search(model, src, lens, **ENDS, max_len=max_len) == [[3] * max_len] * 2


@searches
def test_a_sentence_is_cut_at_its_first_end_and_does_not_hold_it(search):
    model = TableModel(lambda source, read: peak((4, EOS, 5, 5)[min(len(read), 3)]))
    assert search(model, *sources(0), **ENDS, max_len=10) == [[4]]


@searches
def test_a_model_that_ends_at_once_gives_an_empty_sentence(search):
    assert search(TableModel(lambda *_: peak(EOS)), *sources(0, 1), **ENDS) == [[], []]


@searches
def test_every_sentence_of_a_batch_ends_on_its_own_and_order_is_kept(search):
    model = TableModel(lambda source, read: peak(EOS if len(read) == source else 3))
    lengths = [4, 0, 2, 6, 2]
    got = search(model, *sources(*lengths), **ENDS, max_len=5)
    assert got == [[3] * min(n, 5) for n in lengths]


def test_finished_sentences_leave_the_batch():
    model = TableModel(lambda source, read: peak(EOS if len(read) == source else 3))
    greedy_decode(model, *sources(0, 3, 1), **ENDS, max_len=50)
    assert model.rows == [3, 2, 1, 1]


def test_no_sentences_give_no_translations():
    model = TableModel(lambda *_: peak(3))
    src, lens = torch.zeros(0, 3, dtype=torch.long), torch.zeros(0, dtype=torch.long)
    assert greedy_decode(model, src, lens, **ENDS) == []
    assert beam_search(model, src, lens, **ENDS) == []


@searches
@every_model
def test_no_model_is_asked_about_no_sentences(search, kind):
    src, lens = torch.zeros(0, 3, dtype=torch.long), torch.zeros(0, dtype=torch.long)
    assert search(random_model(kind), src, lens, **ENDS) == []


@pytest.mark.parametrize(("max_len", "beam"), [(0, 1), (-1, 1), (3, 0)])
def test_limits_below_one_are_refused(max_len, beam):
    model = TableModel(lambda *_: peak(3))
    with pytest.raises(ValueError, match=f"at least 1, got {max_len} and {beam}"):
        beam_search(model, *sources(0), **ENDS, max_len=max_len, beam=beam)
    if max_len < 1:
        with pytest.raises(ValueError, match=f"at least 1, got {max_len}"):
            greedy_decode(model, *sources(0), **ENDS, max_len=max_len)


# ---------------------------------------------------------------- modes and gradients


@searches
@every_model
@pytest.mark.parametrize("training", [True, False])
def test_the_mode_is_restored_and_translations_repeat(search, kind, training):
    model = random_model(kind).train(training)
    src, lens = torch.randint(1, 9, (3, 5)), torch.tensor([5, 2, 4])
    first = search(model, src, lens, **ENDS, max_len=6)
    assert all(search(model, src, lens, **ENDS, max_len=6) == first for _ in range(4))
    assert all(module.training is training for module in model.modules())


@searches
def test_decoding_runs_in_eval_mode_without_a_graph(search):
    seen = []

    def logits_of(source, read):
        seen.append((model.training, torch.is_grad_enabled()))
        return peak(EOS)

    model = TableModel(logits_of).train()
    search(model, *sources(0), **ENDS)
    assert set(seen) == {(False, False)}
    assert torch.is_grad_enabled()


def test_the_mode_is_restored_after_an_error():
    model = torch.nn.Dropout(0.5).train()
    with pytest.raises(RuntimeError, match="stop"), evaluating(model):
        assert not model.training
        raise RuntimeError("stop")
    assert model.training


# ---------------------------------------------------------------- what is found


@every_model
@few
@given(lens=st.lists(st.integers(1, 6), min_size=1, max_size=4))
def test_greedy_takes_the_best_token_at_every_step(kind, lens):
    """Against the plain loop: the whole prefix anew at every step, one sentence at a time."""
    model = random_model(kind)
    src, lens = torch.randint(1, 9, (len(lens), 6)), torch.tensor(lens)
    got = greedy_decode(model, src, lens, **ENDS, max_len=7)
    model.eval()
    for i, n in enumerate(lens.tolist()):
        tokens = [BOS]
        while len(tokens) <= 7 and tokens[-1] != EOS:
            logits = model(src[i : i + 1, :n], torch.tensor([n]), torch.tensor([tokens]))
            tokens.append(int(logits[0, -1].argmax()))
        assert got[i] == [t for t in tokens[1:] if t != EOS]


@every_model
@few
@given(lens=st.lists(st.integers(1, 6), min_size=2, max_size=5), beam=st.integers(1, 4))
def test_batched_and_single_decoding_agree_and_a_beam_of_one_is_greedy(kind, lens, beam):
    model = random_model(kind)
    src, lens = torch.randint(1, 9, (len(lens), 6)), torch.tensor(lens)
    greedy = greedy_decode(model, src, lens, **ENDS, max_len=7)
    together = beam_search(model, src, lens, **ENDS, beam=beam, max_len=7)
    for i, n in enumerate(lens.tolist()):
        one = src[i : i + 1, :n], lens[i : i + 1]
        assert greedy_decode(model, *one, **ENDS, max_len=7) == [greedy[i]]
        assert beam_search(model, *one, **ENDS, beam=1, max_len=7) == [greedy[i]]
        assert beam_search(model, *one, **ENDS, beam=beam, max_len=7) == [together[i]]


def test_of_equal_words_a_beam_of_one_takes_what_greedy_takes():
    """Four words are equally likely at each step, and then the end is among three."""

    def logits_of(source, read):
        return [0.0, 0.0, 1.0 if len(read) == 2 else 0.0, 1.0, 1.0, 1.0]

    for source in range(3):
        options = {**ENDS, "max_len": 4}
        greedy = greedy_decode(TableModel(logits_of), *sources(source), **options)
        assert beam_search(TableModel(logits_of), *sources(source), **options, beam=1) == greedy


def log_probabilities(model, src, lens, sentences, max_len):
    """Of sentences for one source, with their end unless they fill max_len; and the lengths."""
    words = [[*s, EOS] if len(s) < max_len else list(s) for s in sentences]
    rows, longest = len(words), max(map(len, words))
    tgt = torch.tensor([[BOS, *w, *[EOS] * (longest - len(w))] for w in words])
    with evaluating(model):
        logs = model(src.expand(rows, -1), lens.expand(rows), tgt[:, :-1]).log_softmax(dim=-1)
    lengths = torch.tensor([len(w) for w in words])
    said = logs.gather(-1, tgt[:, 1:, None]).squeeze(-1)  # (rows, longest)
    real = torch.arange(longest) < lengths[:, None]
    return said.where(real, 0.0).sum(dim=1), lengths


@every_model
@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0])
def test_a_wide_enough_beam_finds_the_optimum(kind, length_penalty):
    """All sentences of up to 3 tokens over 7 words, by brute force."""
    max_len, model = 3, random_model(kind)
    words = [w for w in range(7) if w != EOS]
    sentences = [
        s for n in range(max_len + 1) for s in itertools.product(words, repeat=n)
    ]  # 1 + 6 + 36 + 216
    for _ in range(2):
        src, lens = torch.randint(1, 9, (1, 5)), torch.tensor([5])

        totals, lengths = log_probabilities(model, src, lens, sentences, max_len)
        best = sentences[int((totals / lengths**length_penalty).argmax())]
        got = beam_search(
            model, src, lens, **ENDS, beam=400, max_len=max_len, length_penalty=length_penalty
        )
        assert got == [list(best)]


@every_model
def test_beam_search_finds_sentences_at_least_as_probable_as_greedy_on_average(kind):
    model = random_model(kind)
    src, lens = torch.randint(1, 9, (20, 6)), torch.randint(1, 7, (20,))
    options = {**ENDS, "max_len": 8}
    greedy = greedy_decode(model, src, lens, **options)
    beam = beam_search(model, src, lens, **options, beam=5, length_penalty=0.0)
    gains = []
    for i, both in enumerate(zip(greedy, beam, strict=True)):
        totals, _ = log_probabilities(model, src[i : i + 1], lens[i : i + 1], both, max_len=8)
        gains.append((totals[1] - totals[0]).item())
    assert sum(gains) > 0.1  # and the searches differ somewhere


def test_beam_search_escapes_the_trap_that_greedy_falls_into():
    """The likelier first word (4) leads to even odds, the other (3) to a sure end."""

    def logits_of(source, read):
        odds = {(): {3: 0.45, 4: 0.55}, (3,): {EOS: 1.0}, (4,): {3: 0.5, 5: 0.5}}
        p = odds.get(read, {EOS: 1.0})
        return [math.log(p.get(token, 1e-9)) for token in range(6)]

    options = {**ENDS, "max_len": 5}
    assert greedy_decode(TableModel(logits_of), *sources(0), **options)[0][0] == 4
    found = beam_search(TableModel(logits_of), *sources(0), **options, beam=2, length_penalty=0)
    assert found == [[3]]


def test_short_sentences_that_end_first_do_not_stop_a_better_one():
    """Three poor sentences are finished before the sure one of five words is."""

    def logits_of(source, read):
        if read == (3,) * len(read):
            p = {3: 0.97, EOS: 0.01, 4: 0.01, 5: 0.01} if len(read) < 5 else {EOS: 1.0}
        else:
            p = {EOS: 1.0}
        return [math.log(p.get(token, 1e-9)) for token in range(6)]

    assert beam_search(TableModel(logits_of), *sources(0), **ENDS, beam=3) == [[3] * 5]


def test_length_penalty_weighs_a_long_sentence_against_a_short_one():
    """[] has probability 0.45 in one step; [3] has 0.55 * 0.6 in two."""

    def logits_of(source, read):
        p = {EOS: 0.45, 3: 0.55} if not read else {EOS: 0.6, 3: 0.4}
        return [math.log(p.get(token, 1e-9)) for token in range(6)]

    def found(length_penalty):
        options = {"beam": 2, "max_len": 2, "length_penalty": length_penalty}
        return beam_search(TableModel(logits_of), *sources(0), **ENDS, **options)

    assert math.log(0.45) > math.log(0.55 * 0.6)
    assert math.log(0.45) < math.log(0.55 * 0.6) / 2
    assert found(0.0) == [[]]
    assert found(1.0) == [[3]]


def test_a_finished_beam_is_never_extended():
    prefixes = []

    def logits_of(source, read):
        prefixes.append(read)
        return [-9.0, -9.0, 2.0, 1.5, 1.0, 0.5]

    beam_search(TableModel(logits_of), *sources(0), **ENDS, beam=4, max_len=4)
    assert all(EOS not in read for read in prefixes)
    assert len(prefixes) > 1


def test_sentences_share_a_batch_and_leave_it_when_their_search_is_done():
    """Sentence n says n words and is then sure to end: rows are at most two beams each."""

    def logits_of(source, read):
        p = {3: 0.98} if len(read) < source else {EOS: 0.98}
        return [math.log(p.get(token, 1e-3)) for token in range(6)]

    model = TableModel(logits_of)
    found = beam_search(model, *sources(1, 2, 4), **ENDS, beam=2, max_len=6)
    assert found == [[3], [3] * 2, [3] * 4]
    assert model.rows[0] == 3  # one call for all three
    assert max(model.rows) <= 6
    assert model.rows[-1] <= 2  # the last sentence is alone


def test_each_part_gets_its_own_mode_back():
    model = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Sequential(torch.nn.Dropout(0.5)))
    model.train()[0].eval()
    before = [part.training for part in model.modules()]
    with evaluating(model):
        assert not any(part.training for part in model.modules())
    assert [part.training for part in model.modules()] == before == [True, False, True, True]
