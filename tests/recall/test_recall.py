"""The learner's side of recall: asking, answering, and a schedule that survives everything."""

import json
from datetime import datetime, timedelta, timezone

import pytest
import torch

from course_utils.checker import check, log, progress
from course_utils.recall import answer, ask, deck, flip, forget, overview, reveal, schedule
from course_utils.recall.clock import now, read, span
from course_utils.recall.deck import select
from course_utils.recall.simulation import chance_over_time, intervals, workload

MORNING = datetime(2026, 1, 5, 9, tzinfo=timezone.utc)
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
ALWAYS = MORNING + 5000 * DAY  # after all reviews of these tests


@pytest.fixture(autouse=True)
def file(tmp_path, monkeypatch):
    path = tmp_path / "progress.jsonl"
    monkeypatch.setenv("COURSE_PROGRESS", str(path))
    monkeypatch.setenv("COURSE_CLOCK", MORNING.isoformat())
    return path


def ids(**words):
    return [card.id for card in ask(**words).cards]


def due(name):
    return schedule.histories(ALWAYS)[name].due


def no_scale(q, k, v):
    weights = torch.softmax(q @ k.mT, -1)
    return weights @ v, weights


def test_new_cards_come_in_order_and_are_few():
    assert ids() == list(deck())[:5]
    assert ids(new=2) == list(deck())[:2]
    assert ids(new=0) == ids(new=-1) == []
    assert len(ids(new=100)) == 12
    assert len(ids(new=500, count=500)) == len(select())
    assert {deck()[name].part for name in ids(part="heads")} == {"heads"}
    assert {deck()[name].tag for name in ids(tag="scale", new=9)} == {"scale"}


def test_a_right_answer_sends_a_card_away_and_a_wrong_one_brings_it_back():
    assert answer("head-size", 64)
    assert not answer("crossover", 512)
    assert ids(chapter=6, new=0) == []
    assert ids(new=0, now=MORNING + 11 * MINUTE) == ["crossover"]
    assert ids(new=0, now=MORNING + 2 * DAY) == ["crossover", "head-size"]


def test_what_waits_longest_comes_first():
    answer("head-size", 64, now=MORNING + 2 * MINUTE)
    answer("decoder-calls", 12)
    answer("crossover", 3072, now=MORNING + MINUTE)
    assert ids(new=0, now=MORNING + 5 * DAY) == ["decoder-calls", "crossover", "head-size"]


def test_mistakes_in_exercises_bring_their_cards_first():
    answer("head-size", 64)
    answer("root-of-scale", 8, now=MORNING + MINUTE)
    assert ids(now=MORNING + 3 * DAY)[:2] == ["head-size", "root-of-scale"]
    check("scaled_attention", no_scale)
    asked = ask(now=MORNING + 3 * DAY)
    assert [card.id for card in asked.cards][:3] == [
        "root-of-scale", "head-size", "attention-formula",
    ]  # fmt: skip
    assert "1 mistake in exercises: scale" in str(asked)
    assert overview().tags[0][0] == "scale"


def test_ratings_by_correctness_and_tries(file):
    answer("head-size", 8)
    answer("head-size", 64)
    answer("crossover", 3072)
    answer("decoder-calls", 11)
    answer("decoder-calls", 12, now=MORNING + DAY)
    ratings = {name: h.ratings for name, h in schedule.histories(ALWAYS).items()}
    assert ratings == {
        "head-size": ["again", "hard"],
        "crossover": ["good"],
        "decoder-calls": ["again", "good"],
    }
    entries = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert {entry["event"] for entry in entries} == {"review"}
    assert entries[0] == {
        "time": MORNING.isoformat(), "event": "review", "card": "head-size", "rating": "again",
    }  # fmt: skip


@pytest.mark.parametrize("ahead", [2 * DAY, 1400 * DAY])
def test_a_review_noted_by_a_clock_that_was_ahead_keeps_no_card_away(ahead):
    answer({"head-size": 64, "crossover": 3072}, now=MORNING + ahead)
    assert set(ids(new=999, count=999)) >= {"head-size", "crossover"}
    assert overview().headline.startswith(f"{len(deck())} cards: {len(deck())} new")
    assert "Comes back in 2 days" in str(answer("head-size", 64))
    assert "not due yet" in str(answer("head-size", 64, now=MORNING + DAY))


def test_a_right_answer_that_comes_too_early_does_not_count(file):
    answer("head-size", 64)
    before = file.read_bytes()
    result = answer("head-size", 64, now=MORNING + DAY)
    assert result
    assert "not due yet" in str(result)
    assert file.read_bytes() == before
    assert not answer("head-size", 8, now=MORNING + DAY)  # forgotten: that always counts
    assert due("head-size") < MORNING + 2 * DAY


def test_the_answer_is_shown_after_the_second_wrong_try():
    first, second = answer("head-size", 8), answer("head-size", 512)
    assert "That is the number of heads." in str(first)
    assert "d_k = d_model / h" not in str(first)
    assert "d_k = d_model / h" in str(second)


def test_reveal_shows_the_answer_and_counts_as_not_known():
    assert "64. d_k = d_model / h." in reveal("head-size")
    assert schedule.histories(ALWAYS)["head-size"].ratings == ["again"]


def test_what_cannot_be_read_or_is_not_given_is_not_rated(file):
    for result in (
        answer("head-size", ...),
        answer("head-size"),
        answer("head-size", "many"),
        answer("head-sise", 64),
        answer(["x"], 64),
        answer("head-size", None),
    ):
        assert result.state in ("open", "unread")
    assert answer("head-size", ...).state == "open"
    assert "Did you mean head-size" in str(answer("head-sise", 64))
    assert not file.exists()


def test_an_answer_can_be_tried_without_a_trace(file):
    assert answer("head-size", 64, save=False)
    assert not answer("head-size", 8, save=False)
    assert not file.exists()


def test_several_answers_at_once():
    result = answer({"head-size": 64, "crossover": ..., "decoder-calls": 11})
    assert [marked.state for marked in result] == ["right", "open", "wrong"]
    assert not result
    assert answer({"head-size": 64, "crossover": 3072}, save=False)
    assert str(result).count("\n") >= 4
    assert result._repr_html_().count('role="group"') == 3


def test_intervals_grow_with_success_and_shrink_with_failure():
    grown = intervals(["good"] * 5)
    assert grown == sorted(grown)
    assert grown[0] >= 1
    assert grown[4] > 10 * grown[1]
    failed = intervals(["good", "good", "good", "again", "good", "good"])
    assert failed[:3] == grown[:3]
    assert failed[3] < 0.1
    assert failed[4] < failed[2]
    assert failed[5] > failed[4]
    hard = intervals(["good", "hard", "good"])
    assert hard[1] < grown[1]


def test_the_schedule_is_kept_by_the_log_alone(file):
    answer("head-size", 64)
    answer("head-size", 64, now=MORNING + 2 * DAY)
    before = due("head-size")
    assert before > MORNING + 5 * DAY
    lines = file.read_bytes()
    file.write_bytes(b'{"event": "review", "card": "head-si\n' + lines + b"\xff\xfe\n[1]\n")
    assert due("head-size") == before
    for broken in (
        {"card": "head-size"},
        {"card": "head-size", "rating": "great"},
        {"card": "head-size", "rating": "good", "time": "noon"},
        {"rating": "good"},
    ):
        log.write("review", **broken)
    with file.open("ab") as text:
        text.write(b'{"event": "review", "card": "head-size", "rating": "again"')  # cut short
    assert due("head-size") == before
    log.write("review", card="a-card-that-is-gone", rating="good")
    assert "a-card-that-is-gone" not in ids(new=0, now=MORNING + 900 * DAY)
    assert overview().headline.startswith(f"{len(deck())} cards")


def test_exercises_and_cards_share_the_log_in_peace():
    answer("head-size", 8)
    check("dot_product_variance", 64)
    assert progress().solved == 1
    assert log.attempts() == {"dot_product_variance": 1}
    assert log.solved() == {"dot_product_variance"}
    assert log.tags() == {}
    log.write("reset")
    assert schedule.histories(ALWAYS)["head-size"].ratings == ["again"]


def test_forget_starts_a_card_or_all_anew():
    answer({"head-size": 64, "crossover": 3072})
    assert forget("head-size") == "head-size starts anew."
    assert set(schedule.histories(ALWAYS)) == {"crossover"}
    forget()
    assert schedule.histories(ALWAYS) == {}
    assert "no card" in forget("x")


def test_a_log_that_cannot_be_written_costs_one_line(file, monkeypatch):
    file.write_text("")
    monkeypatch.setenv("COURSE_PROGRESS", str(file / "below" / "a.jsonl"))
    result = answer("head-size", 64)
    assert result
    assert str(result).count("Progress is not saved") == 1


def test_the_overview_counts_by_chapter_and_tag():
    answer({"head-size": 64, "crossover": 512})
    week = overview(now=MORNING + DAY)
    rows = {name: counts for name, *counts in week.chapters}
    total = len([c for c in deck().values() if c.notebook == "13_long_sequences"])
    assert rows["13_long_sequences"] == [total, total - 1, 1, 0, 0]
    assert rows["06_multi_head_attention"][1:] == [rows["06_multi_head_attention"][0] - 1, 0, 1, 0]
    assert sum(counts[0] for counts in rows.values()) == len(deck())
    answer("head-size", 64, now=MORNING + 3 * DAY)
    later = {name: counts for name, *counts in overview(now=MORNING + 3 * DAY).chapters}
    assert later["06_multi_head_attention"][-1] == 1
    assert "1 due now" in week.headline
    assert week._repr_html_().count("<table>") == 2


def test_everything_is_shown_as_text_and_as_html():
    for shown in (ask(), answer("head-size", 8), answer("head-size", 64), overview(), ask(new=0)):
        assert "<" not in str(shown).replace("<eos>", "").replace("<bos>", "")
        html = shown._repr_html_()
        assert html.count("<td") == html.count("</td>")
        assert html.count("<p>") == html.count("</p>")
    assert "<eos>" not in ask(new=99, count=99)._repr_html_()


@pytest.mark.parametrize(
    "bad",
    [None, "", [], {}, 3.5, True, b"x", float("nan"), 10**400, 1j, object(), "x" * 999,
     torch.randn(3), (1, (2, 3)), lambda: 1],
)  # fmt: skip
def test_nothing_is_raised_for_wrong_input(bad):
    for name in deck():
        assert answer(name, bad, save=False).state in ("right", "partly", "wrong", "unread")
    for say in (reveal, forget, answer):
        str(say(bad, 3) if say is answer else say(bad))
    for words in ({"part": bad}, {"chapter": bad}, {"tag": bad}, {"now": bad}):
        str(ask(**words))


def test_the_clock_can_be_stopped(monkeypatch):
    assert now() == MORNING
    monkeypatch.setenv("COURSE_CLOCK", "no time at all")
    assert abs(now() - datetime.now(timezone.utc)) < MINUTE
    assert read("2026-01-05T10:00:00+01:00") == MORNING
    assert read(MORNING) is not None
    assert read(7) is None
    spans = [span(MORNING, MORNING + t) for t in (MINUTE / 2, MINUTE, 90 * MINUTE, 1.4 * DAY, -DAY)]
    assert spans == ["less than a minute", "1 minute", "2 hours", "1 day", "less than a minute"]


def test_the_learners_numbers_are_not_disturbed():
    torch.manual_seed(7)
    expected = torch.randn(2)
    torch.manual_seed(7)
    answer("encoder-calls", 1)
    assert torch.equal(torch.randn(2), expected)


def test_the_simulated_learner():
    load = workload(cards=100, days=60, new=5)
    assert sum(load["new"]) == 100
    assert load == workload(cards=100, days=60, new=5)
    assert sum(load["again asked"][50:]) < sum(load["again asked"][15:25])
    spaced, massed = chance_over_time([0, 2, 13], 60), chance_over_time([0, 0, 0], 60)
    assert all(0 <= chance <= 1 for chance in spaced + massed)
    assert spaced[-1] > massed[-1] + 0.1


def test_an_exercise_against_the_same_mistakes_goes_with_the_cards():
    assert "An exercise against" not in repr(ask())
    check("scaled_attention", no_scale)
    assert "An exercise against the same mistakes: scaled_attention in 03_" in repr(
        ask(tag="scale")
    )
    assert "An exercise against" not in repr(ask(tag="cache"))


def test_cards_are_turned_over_without_being_noted():
    shown = flip("say-scale", "head-size")
    for card in (deck()["say-scale"], deck()["head-size"]):
        assert f"{card.question}\n  {card.lesson}" in str(shown)
    assert shown._repr_html_().count("<details><summary>") == 2
    assert "There is no card 'say-scales'. Did you mean say-scale" in str(flip("say-scales"))
    assert schedule.histories(ALWAYS) == {}


def test_spoken_answers_are_told_what_is_missing():
    half = answer("say-cross-attention", "Q 来自解码器。", save=False)
    assert not half
    assert str(half).splitlines()[:2] == [
        "◐ say-cross-attention: partly right",
        "  Said: queries from the decoder. Not said yet: keys and values from the encoder.",
    ]
    nothing = answer("say-cross-attention", "不知道。", save=False)
    assert nothing.state == "wrong"
    assert "Said" not in str(nothing)
    full = "Queries come from the decoder, keys and values from the encoder."
    assert deck()["say-cross-attention"].answer.right in str(
        answer("say-cross-attention", full, save=False)
    )


def test_half_an_answer_counts_as_not_yet_known():
    assert answer("say-cross-attention", "Q 来自解码器。").state == "partly"
    assert schedule.histories(ALWAYS)["say-cross-attention"].ratings == ["again"]
    second = answer("say-cross-attention", "Q 来自解码器。")
    assert second.state == "partly"
    assert deck()["say-cross-attention"].answer.right in str(second)
