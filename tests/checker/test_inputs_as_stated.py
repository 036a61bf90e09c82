"""What a text rules out: no input breaks it, and an answer that does it is noticed."""

import math

import pytest
import torch
import torch.nn.functional as F

from course_utils.checker import catalogue, check
from course_utils.checker.widen import widened

EXERCISES = {e.name: e for e in catalogue()}


def _differ(rows):
    return rows.sort(dim=1).values.diff(dim=1).gt(0).all()


def _sum_to_one(weights):
    return (weights.sum(-1) - 1).abs().max() < 1e-3


STATED = {  # in the words of the texts, each relation between arguments that no shape tells
    "one_table": lambda s, t, E, P, enc, dec: len(P) >= max(s.shape[1], t.shape[1]),
    "embed_with_positions": lambda ids, words, places: len(places) >= ids.shape[1],
    "add_positions": lambda x, table, offset: 0 <= offset <= len(table) - x.shape[1],
    "nearest_weights": lambda q, keys, k: (
        1 <= k <= len(keys) and _differ((q[:, None] - keys).abs())
    ),
    "width_for_ratio": lambda near, far, ratio: 0 <= near < far and ratio > 1,
    "next_token_probabilities": lambda z, temperature, k: 1 <= k <= z.shape[1] and temperature > 0,
    "expert_shares": lambda z, k: 1 <= k <= z.shape[1] and _differ(z),
    "weight_back": lambda map, distance: 1 <= distance < map.shape[-1],
    "grouped_attention": lambda q, k, v: q.shape[1] % k.shape[1] == 0,
    "load_balance": lambda p, chosen: _differ(chosen) and chosen.max() < p.shape[1],
    "nucleus": lambda probs, p: 0 < p <= 1 and _sum_to_one(probs),
    "patches_of": lambda x, patch: x.shape[1] % patch == x.shape[2] % patch == 0,
    "neighbours_to_halves": lambda W, heads: W.shape[1] % (2 * heads) == 0,
    "read_the_list": lambda subjects, verdicts, asked, scale: (
        _differ(subjects) and verdicts.abs().eq(1).all()
    ),
    "head_by_hand": lambda kinds, words: words.abs().max() <= 1,
    "read_once": lambda scores: scores.abs().max() <= 2000,
    "word_order": lambda places: sorted(places) == [*range(len(places))],
    "pages_taken": lambda prompt, more, page: all(n >= 1 for n in more),
    "reward_behind": lambda policy, reference, beta: max(policy.max(), reference.max()) <= 0,
    "dpo_of_texts": lambda policy, reference, *_: max(policy.max(), reference.max()) <= 0,
    "corrupt_spans": lambda words, cut, markers: (
        len(words) == len(cut) and len({*markers}) == len(markers)
    ),
    "leaking_pairs": lambda logits_of, target, vocabulary: target.max() < vocabulary,
    "merge_pair": lambda ids, pair, new: new not in {*ids, *pair},
    "hidden_partners": lambda base, loss, allowed: loss.equal(loss.mT),
    "kept_by_bets": lambda weights, budget: (
        budget >= 2 and _sum_to_one(weights) and not weights.triu(1).any()
    ),
    "resized_positions": lambda table, old, new: len(table) == 1 + math.prod(old),
    "mean_readout": lambda encoded, real: real.any(1).all(),
    "longest_text": lambda free, layers, heads, sharing, *_: heads % sharing == 0,
}


@pytest.mark.parametrize("name", STATED)
def test_no_input_breaks_what_its_text_states(name):
    exercise = EXERCISES[name]
    for args in exercise.probes:
        assert STATED[name](*args)
    for words, args in widened(exercise):
        assert STATED[name](*args), words


def test_who_counts_on_what_is_stated_is_right():
    def indexed(source, target, table, positions, encoder, decoder):
        def enter(ids):
            return table[ids] * table.shape[1] ** 0.5 + positions[torch.arange(ids.shape[1])]

        x, y = enter(source), enter(target)
        for block in encoder:
            x = block(x)
        for block in decoder:
            y = block(y, x)
        return y @ table.T

    def marked(probabilities, chosen):
        visits = torch.zeros_like(probabilities).scatter(1, chosen, 1.0)
        shares = visits.sum(0) / visits.sum()
        return probabilities.shape[1] * (shares * probabilities.mean(0)).sum()

    def by_sign(subjects, verdicts, asked, scale):
        weights = (scale * (subjects == asked[:, None]).float()).softmax(1)
        return (weights * (verdicts > 0)).sum(1) - (weights * (verdicts < 0)).sum(1)

    for name, answer in (
        ("one_table", indexed), ("load_balance", marked), ("read_the_list", by_sign),
    ):  # fmt: skip
        assert check(name, answer).status == "right", name


def _running(queries, keys, values, more=0.0):
    q, k = F.elu(queries) + 1, F.elu(keys) + 1
    sums = torch.einsum("td,tv->tdv", k, values).cumsum(0)
    return torch.einsum("td,tdv->tv", q, sums) / ((q * k.cumsum(0)).sum(1, keepdim=True) + more)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("running_attention", lambda q, k, v: _running(q, k, v, 1e-6)),
        ("gaussian_weights", lambda q, k, w: (
            -((q[:, None] - k) ** 2) / (2 * w**2 + 1e-8)).softmax(1)),
        ("effects_of_many", lambda clean, bad, patched: (
            (patched.mean(0) - bad.mean()) / (clean.mean() - bad.mean() + 1e-6))),
    ],
)  # fmt: skip
def test_a_small_number_in_a_divisor_shows(name, answer):
    said = str(check(name, answer))
    assert "where all numbers are" in said


def test_running_sums_without_a_small_number_are_right():
    assert check("running_attention", _running).status == "right"


def _by_map(queries, keys, values):
    weights = ((F.elu(queries) + 1) @ (F.elu(keys) + 1).T).tril()
    return weights / weights.sum(1, keepdim=True) @ values


def _all_tiles(queries, tiles):
    keys, values = map(torch.cat, zip(*[(k.clone(), v.clone()) for k, v in tiles]))
    return F.scaled_dot_product_attention(queries, keys, values)


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("running_attention", _by_map, "it makes a T × T map, which the exercise rules out"),
        ("from_tiles", _all_tiles, "it makes a tensor with all scores, keys or values in it"),
    ],
)
def test_a_tensor_that_the_text_rules_out_is_noticed(name, answer, said):
    result = check(name, answer)
    assert result.status == "wrong"
    assert said in str(result)


def _appended(scores):
    kept = []
    for score in scores:
        kept.append(float(score))
    return math.log(sum(math.exp(x - max(kept)) for x in kept)) + max(kept)


def _listed(scores):
    kept = [float(score) for score in scores]
    return math.log(sum(math.exp(x - max(kept)) for x in kept)) + max(kept)


@pytest.mark.parametrize("answer", [_appended, _listed])
def test_copies_of_scores_are_kept_scores(answer):
    assert check("read_once", answer).mistakes == ("all scores are kept",)


@pytest.mark.parametrize("name", ["lstsq", "eigvals"])
def test_a_c_library_gets_no_nan_and_prints_nothing(name, capfd):
    def answer(k, d_model):
        table = torch.full((d_model, d_model), math.nan)
        return getattr(torch.linalg, name)(*[table] * (2 if name == "lstsq" else 1))

    usual = getattr(torch.linalg, name)
    said = str(check("shift_matrix", answer))
    assert f"torch.linalg.{name} was given NaN or infinite numbers" in said
    assert getattr(torch.linalg, name) is usual
    out, err = capfd.readouterr()
    assert "oneMKL" not in out + err


def test_an_answer_prints_nothing_while_its_change_is_looked_for(capfd):
    def answer(k, d_model):
        print("printed by the answer")
        return torch.eye(d_model) * math.cos(k) ** 2 - 0.3 * k

    check("shift_matrix", answer)
    out, err = capfd.readouterr()
    assert "printed by the answer" not in out + err


def test_an_error_where_two_sizes_differ_names_them():
    def answer(heads, W_o):
        B, h, T, d_head = heads.shape
        out = torch.zeros(B, h, T, h * d_head)
        for i in range(h):
            out[:, i] = heads[:, i] @ W_o[i * d_head : (i + 1) * d_head]
        return out

    assert "stops where `d_model` is not `h * d_head`" in str(check("written_by_heads", answer))


@pytest.mark.parametrize(
    ("name", "answer", "mistakes"),
    [
        ("unsplit_scale", 1 / 8, ("the root is missing, and the factor is turned round",)),
        ("ordered_pool", lambda x, n: torch.stack(
            [(3.0 * torch.arange(k)).softmax(0) @ row[:k] for row, k in zip(x, n.tolist())]),
         ("two places have the same weight, or next to none",)),
        ("nearest_weights", lambda q, keys, k: (lambda near: near / near.sum(1, keepdim=True))(
            ((q[:, None] - keys).abs()
             <= (q[:, None] - keys).abs().topk(k, largest=False).values.max()).float()),
         ("one distance is the limit for all queries",)),
        ("token_loss", lambda z, y, pad: (
            F.cross_entropy(z.reshape(len(z), z.shape[2], -1), y, reduction="none")
            * (y != pad)).sum() / y.numel(),
         ("the sum over real tokens is divided by all positions",
          "the words are brought to the front by a reshape")),
        ("rms_normalise", lambda x, weight, eps: (
            weight * x / (x.square().mean(-1, keepdim=True).sqrt() + eps**0.5)),
         ("eps has a root of its own",)),
        ("normalise_tokens", lambda x, gamma, beta, eps: (
            gamma * (x - x.mean(-1, keepdim=True))
            / (x.std(-1, keepdim=True, correction=0) + eps**0.5) + beta),
         ("eps has a root of its own",)),
        ("safe_fill", lambda scores, mask: scores.masked_fill(~mask, -6e4).softmax(-1) * mask,
         ("the fill value is not low enough",)),
        ("neighbours_to_halves", lambda W, heads: W[:, torch.cat([
            torch.arange(W.shape[1] // heads).view(-1, 2).T.flatten() + h for h in range(heads)])],
         ("each head begins one column behind the last",)),
        ("turn_halves", lambda x, at: (lambda a, u, v: torch.cat(
            [u * a.cos() - v * a.sin(), u * a.cos() + v * a.sin()], -1))(
                at[:, None] * 10000 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1]),
                *x.chunk(2, -1)),
         ("sine and cosine change places in the second part",)),
        ("multi_head", lambda q, k, v, W, h: EXERCISES["multi_head"].solution(
            q, k, v, (W[0], W[1], W[1], W[3]), h),
         ("keys and values share one weight",)),
        ("into_heads", lambda x, h: x.unflatten(-1, (-1, h)),
         ("the number of heads and their size are exchanged, and no axes are swapped",)),
    ],
)  # fmt: skip
def test_slips_of_a_trial_have_a_name(name, answer, mistakes):
    assert check(name, answer).mistakes == mistakes


def test_hidden_scores_lowered_by_too_little_are_seen():
    def answer(scores, mask):
        return (scores - (6e4 * ~mask).to(scores.dtype)).softmax(-1) * mask

    assert check("safe_fill", answer).mistakes == ("the fill value is not low enough",)


def _from_below_0(weights, budget):
    rows = range(len(weights))
    window = torch.stack([weights[t, t - budget + 1 : t + 1].sum() for t in rows])
    first = [weights[t, 0] + weights[t, max(1, t - budget + 2) : t + 1].sum() for t in rows]
    return torch.stack([window.mean(), torch.stack(first).mean()])


def _median(clean, corrupted, patched):
    effects = (patched - corrupted[:, None, None]) / (clean - corrupted).mean()
    return effects.median(0).values


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("kept_by_bets", _from_below_0, "a slice begins or ends elsewhere"),
        ("mean_of_real", lambda x, n: torch.stack([row[:k].mean() for row, k in zip(x, n)]),
         "`row[:k].mean()`, an argument is missing"),
        ("lengths_for_heads", lambda lengths, heads: torch.stack([lengths] * heads, 1).flatten(),
         "an argument is missing"),
        ("effects_of_many", _median, "at `effects.median(0).values`, another function is due"),
    ],
)  # fmt: skip
def test_a_step_over_the_wrong_axes_is_found(name, answer, said):
    assert said in str(check(name, answer))


def test_no_count_of_the_patches_is_a_size_by_chance():
    said = str(check("mean_readout", lambda x, real: (
        (x[:, 1:] * real[..., None]).sum(1) / real.sum() * len(real))))  # fmt: skip
    assert "the sum is not divided" not in said.lower()


def test_what_hardly_moves_beside_large_numbers_is_not_said_to_stand_still():
    def answer(d):
        return 2 * torch.eye(d), torch.full((d,), 1e6), torch.eye(d) / 2, torch.zeros(d)

    said = str(check("absolute_network", answer))
    assert "does not change" not in said
    assert "does not depend" not in said


def test_as_many_markers_as_spans_are_enough():
    def answer(words, cut, markers):
        read, say, used = [], [], 0
        for word, gone in zip(words, cut):
            if gone and (not say or read[-1] != markers[used]):
                read.append(markers[used])
                say.append(markers[used])
            if not gone and read and read[-1] == markers[used]:
                used += 1
            (say if gone else read).append(word)
        return read, say

    assert "only as many markers as spans" in str(check("corrupt_spans", answer))


def test_a_faint_influence_that_a_small_step_misses_has_a_name():
    def answer(layer, x):
        columns = []
        for j in range(len(x)):
            other = x.clone()
            other[j] += 1e-3
            columns.append(((layer(other) - layer(x)).abs() > 1e-4).any(1))
        return torch.stack(columns, 1)

    assert check("influence", answer).mistakes == ("a weak influence is overlooked",)
