"""The commands that use a trained model: translate, evaluate, heatmap."""

import doctest
import io
import sys
import time
import types

import pytest
import sacrebleu
import torch
from engine_runs import talking_folder, translate_bytes
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from course_utils.__main__ import run
from course_utils.cli import command, evaluate, heatmap, translate
from course_utils.text.batches import pad
from course_utils.text.corpora import load_corpus
from course_utils.text.subwords import Subwords
from course_utils.text.text import normalise
from course_utils.training.decoding import greedy_decode
from course_utils.training.runs import parts
from course_utils.training.runs.candidates import candidates
from course_utils.training.runs.folder import read_vocabulary
from course_utils.training.runs.lines import read_lines, translate_lines, translate_texts
from course_utils.training.runs.parts import cut, joined, sentences
from course_utils.training.runs.refusals import Refused
from course_utils.training.translation import load_translator

SENTENCES = [pair.source for pair in load_corpus("everyday").pairs[::60]]
nasty = st.sampled_from(
    ["", " ", "\u2028", "\x85", "\r", "\x0b\x0c", "\x00", "<eos>", "<pad>", "\U0001f600", "\ufeff"]
)
lines_of_bytes = st.one_of(
    nasty.map(lambda text: text.encode("utf-8")),
    st.text(max_size=12).map(lambda text: text.encode("utf-8", "replace").replace(b"\n", b"")),
    st.binary(max_size=8).map(lambda data: data.replace(b"\n", b"")),
)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(lines_of_bytes, max_size=5), st.booleans())
@example([b"a" * 300, b"", b"word " * 80], True)
@example([b"\xff\xfe", "\u2028".encode(), b"\x00", b"a\rb"], False)
def test_as_many_lines_come_out_as_go_in(monkeypatch, lines, ended):
    data = b"\n".join(lines) + (b"\n" if ended and lines else b"")
    count = data.count(b"\n") + (not data.endswith(b"\n") and data != b"")
    out = translate_bytes(monkeypatch, data).decode("utf-8")
    assert out.count("\n") == count
    assert out == "" or out.endswith("\n")
    # no other rule for what a line is finds another number
    assert len(out.splitlines()) == count


def test_an_empty_line_is_answered_by_an_empty_line(monkeypatch):
    out = translate_bytes(monkeypatch, b"\n \t \nGo.\n\n").decode("utf-8").split("\n")
    assert [bool(line) for line in out] == [False, False, True, False, False]


def test_a_translation_never_holds_a_line_break(monkeypatch):
    translator = load_translator(talking_folder())
    breaks = translator.target.encode_all(["a"])[0]
    line_feed = next(i for i in range(4, 260) if translator.target._tokenizer.id_to_token(i) == "Ċ")
    assert translator.target.decode([*breaks, line_feed, *breaks]) == "a\n a"

    def says_breaks(sources, beam, max_len, batch_size):
        return [[*breaks, line_feed, *breaks] for _ in sources]

    monkeypatch.setattr(translator, "decode", says_breaks)
    assert translate_lines(translator, ["Go."]) == ["a a"]


@pytest.mark.parametrize("beam", [1, 3])
def test_lines_of_like_length_share_a_batch_whatever_their_limits(monkeypatch, beam):
    translator = load_translator(talking_folder())
    shared = []

    def decode(sources, *args):
        shared.append([len(ids) for ids in sources])
        return [[] for _ in sources]

    monkeypatch.setattr(translator, "decode", decode)
    lines = ["a" * (1 + 7 * i % 29) for i in range(29)]  # most of them may be answered by 32 ids
    translate_lines(translator, lines, beam=beam, batch_size=4)
    lengths = [length for batch in shared for length in batch]
    assert len(lengths) == 29
    assert lengths == sorted(lengths)
    assert len(set(lengths)) > 10


@pytest.mark.parametrize("beam", ["1", "3"])
def test_the_batch_size_changes_nothing(monkeypatch, beam):
    data = "\n".join(SENTENCES[:: 1 if beam == "1" else 4]).encode("utf-8")
    alone, few, many = (
        translate_bytes(monkeypatch, data, "--beam", beam, "--batch-size", size)
        for size in ("1", "3", "64")
    )
    assert alone == few == many
    assert len(set(alone.split(b"\n"))) > 3


def test_a_line_is_translated_as_it_would_be_alone(monkeypatch):
    data = [line.encode("utf-8") for line in SENTENCES[:8]]
    together = translate_bytes(monkeypatch, b"\n".join(data))
    assert together == b"".join(translate_bytes(monkeypatch, line) for line in data)


def test_a_beam_of_one_is_greedy_decoding(monkeypatch):
    translator = load_translator(talking_folder())
    vocabulary = translator.source
    for text in SENTENCES[:6]:
        ids = vocabulary.encode(text)
        src, src_lens = pad([[*ids, vocabulary.eos]])
        ends = {"bos": vocabulary.bos, "eos": vocabulary.eos}
        limit = min(translator.model.config.max_len, 2 * len(ids) + 20)
        said = greedy_decode(translator.model, src, src_lens, max_len=limit, **ends)
        wanted = " ".join(vocabulary.decode(said[0]).split())
        out = translate_bytes(monkeypatch, text.encode("utf-8"), "--beam", "1").decode("utf-8")
        assert out == wanted + "\n"


def test_what_had_to_be_changed_is_said(monkeypatch, capsys):
    translate_bytes(monkeypatch, b"Go.\n\xff\n" + b"word " * 50 + b"\n")
    err = capsys.readouterr().err
    assert "translate: line 2 is not UTF-8 (invalid start byte): the bytes at fault" in err
    assert "translate: line 3 is longer than anything the model was trained on" in err


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), IsADirectoryError(21, "is")])
def test_input_that_cannot_be_read_is_refused(monkeypatch, capsys, error):
    class Broken(io.BytesIO):
        def __next__(self):
            raise error

    stdin = types.SimpleNamespace(buffer=Broken(), isatty=lambda: False)
    for stream, message in ((stdin, f"cannot read standard input: {error.strerror}"),
                            (None, "standard input is closed")):  # fmt: skip
        monkeypatch.setattr(sys, "stdin", stream)
        assert translate.main(["--model", str(talking_folder())]) == 1
        assert message in capsys.readouterr().err


def test_at_a_terminal_each_line_is_answered_at_once(monkeypatch):
    written = []

    class Terminal:
        buffer = iter([b"Go.\n", b"Stop.\n"])

        def isatty(self):
            return True

    class Out:
        class buffer:
            write = written.append

            @staticmethod
            def flush():
                written.append("flush")

    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(sys, "stdout", Out())
    assert translate.main(["--model", str(talking_folder())]) == 0
    assert [part == "flush" for part in written] == [False, True, False, True]


def test_a_byte_order_mark_is_no_text():
    assert list(read_lines([b"\xef\xbb\xbfGo.\n", b"Stop."], print)) == ["Go.", "Stop."]


@given(st.text(st.sampled_from("ab .,!\u00e9\u4e2d\u3002\uff0c"), max_size=60), st.integers(2, 9))
def test_a_line_is_cut_without_losing_anything(text, limit):
    vocabulary = read_vocabulary(talking_folder())
    found = cut(text, vocabulary, limit)
    assert [i for part in found for i in part] == vocabulary.encode(text)
    assert all(len(part) <= limit for part in found)


def test_a_line_is_cut_at_the_ends_of_sentences_then_clauses_then_words():
    vocabulary = read_vocabulary(talking_folder())
    for text, wanted in (
        ("Go on. Well, we can", ["Go on.", "Well, we can"]),
        ("Go on, we can all", ["Go on,", "we can all"]),
        ("We can all go on", ["We can all go", "on"]),
    ):
        limit = len(vocabulary.encode(text)) - 1
        assert [vocabulary.decode(part) for part in cut(text, vocabulary, limit)] == wanted


@pytest.mark.parametrize(
    "wanted",
    [
        ["我在家。", "他很累，真的。"],
        ["我在家，", "他很累真的很累。"],
        ["私は家です。", "彼は疲れました。"],
        ["هل أنت هنا؟", " أنا هنا الآن."],
        ["मैं घर पर हूँ।", " वह थका है।"],
    ],
)
def test_a_line_of_any_script_is_cut_at_its_own_marks(wanted):
    text = "".join(wanted)
    vocabulary = Subwords.learn([text], 260)
    limit = max(len(vocabulary.encode(text)) - 2, 1)
    assert [vocabulary.decode(p) for p in cut(text, vocabulary, limit)] == [
        part.strip() for part in wanted
    ]


def test_a_line_without_marks_or_spaces_is_cut_between_characters():
    text = "我说中文" * 9
    vocabulary = Subwords.learn([text], 262)
    for limit in range(3, 30):
        found = [vocabulary.decode(part) for part in cut(text, vocabulary, limit)]
        assert "".join(found) == text, limit


def test_nbest_shows_different_translations_the_best_first_with_scores_and_links(monkeypatch):
    text = b"You are tired. I am here.\n\nWhere is the dog?\n"
    out = translate_bytes(monkeypatch, text, "--nbest", "3", folder="fra-eng").decode("utf-8")
    rows = [line.split("\t") for line in out.split("\n")[:-1]]
    assert [row[0] for row in rows] == ["1"] * 6 + ["3"] * 3
    best = translate_bytes(monkeypatch, text, "--beam", "3", folder="fra-eng").decode("utf-8")
    assert [f"{rows[0][2]} {rows[3][2]}", "", rows[6][2]] == best.split("\n")[:-1]
    for first in (0, 3, 6):
        scores = [float(row[1]) for row in rows[first : first + 3]]
        assert 0 >= scores[0] >= scores[1] >= scores[2]
        assert len({row[2] for row in rows[first : first + 3]}) == 3
    one = translate_bytes(monkeypatch, text, "--nbest", "3", "--batch-size", "1", folder="fra-eng")
    assert one.decode("utf-8") == out


def test_the_links_of_a_plain_sentence_are_those_of_its_words():
    (best,) = candidates(load_translator("fra-eng"), ["The black cat is sleeping."], 1)[0]
    assert best.text.startswith("Le chat noir ")
    assert {(2, 1), (1, 2)} <= set(best.links)  # cat - chat, black - noir
    words = len(best.text.split())
    assert [target for _, target in sorted(best.links, key=lambda link: link[1])] == [*range(words)]
    assert all(0 <= source < 5 for source, _ in best.links)


def test_the_score_of_a_translation_is_its_log_probability_per_piece():
    translator = load_translator("fra-eng")
    for best in candidates(translator, ["Where is the dog?"], 3)[0]:
        source = [*translator.source.encode("Where is the dog?"), 2]
        said = translator.target.encode(best.text)
        logits = translator.model(torch.tensor([source]), torch.tensor([len(source)]),
                                  torch.tensor([[1, *said]]))  # fmt: skip
        picked = logits.log_softmax(-1)[0].gather(1, torch.tensor([*said, 2])[:, None])
        assert best.score == pytest.approx(picked.mean().item())


def test_nbest_of_what_is_empty_or_too_long(monkeypatch, capsys):
    translator, cuts = load_translator(talking_folder()), []
    found = candidates(translator, ["", "word " * 80], 2, on_cut=lambda *cut: cuts.append(cut))
    assert found[0] == []
    assert 1 <= len(found[1]) <= 2
    assert [index for index, _ in cuts] == [1]
    translate_bytes(monkeypatch, b"word " * 80, "--nbest", "1")
    assert "translated as far as it fits, the first of" in capsys.readouterr().err


def test_evaluate_gives_sacrebleus_own_numbers(monkeypatch, tmp_path, capsys):
    pairs = load_corpus("everyday").pairs[::90]
    source, reference = tmp_path / "en.txt", tmp_path / "fr.txt"
    source.write_text("".join(f"{p.source}\n" for p in pairs), encoding="utf-8")
    reference.write_text("".join(f"{p.target}\n" for p in pairs), encoding="utf-8")
    translated = translate_bytes(monkeypatch, source.read_bytes()).decode("utf-8").split("\n")[:-1]
    # right for most lines, so that the scores are not 0
    translated[4:] = [pair.target for pair in pairs[4:]]
    monkeypatch.setattr(evaluate, "translate_texts", lambda *args, **options: translated)
    options = ["--model", str(talking_folder()), "--src", str(source), "--ref", str(reference)]
    capsys.readouterr()
    assert evaluate.main(options) == 0
    bleu = sacrebleu.corpus_bleu(translated, [[pair.target for pair in pairs]])
    chrf = sacrebleu.corpus_chrf(translated, [[pair.target for pair in pairs]])
    assert bleu.score > 10
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"BLEU {bleu.score:.2f}  nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|")
    assert second.startswith(f"chrF2 {chrf.score:.2f}  nrefs:1|case:mixed|eff:yes|nc:6|nw:0|")


def test_evaluate_says_what_its_scores_leave_out(monkeypatch, tmp_path, capsys):
    """An empty reference: chrF2 says 100 of the rest. Short ones: BLEU says 0 of all."""
    source, reference = tmp_path / "en.txt", tmp_path / "fr.txt"
    source.write_text("a\n" * 3, encoding="utf-8")
    monkeypatch.setattr(evaluate, "translate_texts", lambda *args, **options: ["un", "x", "y"])

    def evaluated(*references):
        reference.write_text("".join(f"{line}\n" for line in references), encoding="utf-8")
        options = ["--model", "fra-eng", "--src", str(source), "--ref", str(reference)]
        assert evaluate.main(options) == 0
        return capsys.readouterr()

    said = evaluated("un", "", " \t")
    assert "fr.txt is empty in line 2, 3: chrF2 leaves such lines out" in said.err
    assert "chrF2 100.00" in said.out
    assert "no line of the reference has four words, so BLEU is 0" in evaluated("un", "x", "z").err
    assert evaluated("un", "x", "y y y y .").err == ""


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("l\u2019\u00e9t\u00e9", True),
        ("l'e\u0301te\u0301", True),
        ("l'\u00e9t\u00e9\u202f! ", False),
    ],
)
def test_evaluate_says_when_the_reference_is_spelt_as_no_model_spells(tmp_path, capsys, line, told):
    source, reference = tmp_path / "a.en", tmp_path / "a.fr"
    source.write_text("Go.\n", encoding="utf-8")
    reference.write_text(f"{line}\n", encoding="utf-8")
    options = ["--model", str(talking_folder()), "--src", str(source), "--ref", str(reference)]
    assert evaluate.main(options) == 0
    assert ("1 of the lines" in capsys.readouterr().err) is told


def test_evaluate_scores_what_translate_says_of_several_sentences(monkeypatch, tmp_path, capsys):
    """marian-nmt/marian#389: translate splits a line, so what is scored is split too."""
    text = "I am home. He is tired. Where are you?\n"
    said = translate_bytes(monkeypatch, text.encode(), folder="fra-eng").decode("utf-8")
    (tmp_path / "en").write_text(text, encoding="utf-8")
    (tmp_path / "fr").write_text(said, encoding="utf-8")
    options = ["--src", str(tmp_path / "en"), "--ref", str(tmp_path / "fr")]
    assert evaluate.main(options) == 0
    assert "BLEU 100.00" in capsys.readouterr().out


def test_evaluate_translates_what_it_scores(capsys):
    folder = talking_folder()
    options = ["--src", str(folder / "test.en"), "--ref", str(folder / "test.fr")]
    assert evaluate.main(["--model", str(folder), *options]) == 0
    lines = (folder / "test.en").read_text(encoding="utf-8").splitlines()
    hypotheses = translate_texts(load_translator(folder), lines)
    wanted = sacrebleu.corpus_chrf(
        hypotheses, [(folder / "test.fr").read_text(encoding="utf-8").splitlines()]
    )
    assert f"chrF2 {wanted.score:.2f} " in capsys.readouterr().out


def test_evaluate_refuses_files_that_do_not_match(tmp_path, capsys):
    two, three, empty = (tmp_path / name for name in ("two", "three", "empty"))
    two.write_text("a\nb\n", encoding="utf-8")
    three.write_text("a\nb\nc", encoding="utf-8")
    empty.write_text("", encoding="utf-8")

    def refusal(source, reference):
        options = ["--model", str(talking_folder()), "--src", str(source), "--ref", str(reference)]
        assert evaluate.main(options) == 1
        return capsys.readouterr().err

    assert f"{two} has 2 lines and {three} has 3" in refusal(two, three)
    assert "at least one" in refusal(empty, empty)
    assert "cannot read" in refusal(two, tmp_path / "none")


def draw(capsys, path, *options):
    code = heatmap.main(["--model", str(talking_folder()), "--out", str(path), *options])
    return code, *capsys.readouterr()


def test_heatmap_writes_a_picture_and_reads_it_out(tmp_path, capsys):
    path = tmp_path / "map.png"
    code, out, err = draw(capsys, path, "--text", "I'm $5.", "--target", "$5 et $6 \u4e2d.")
    assert (code, err) == (0, f"heatmap: wrote {path}\n")
    assert path.read_bytes().startswith(b"\x89PNG\r\n")
    assert out.count("\n") == 1
    assert " looks " in out or " spreads " in out or " splits " in out


def test_heatmap_reads_a_command_line_that_is_not_utf_8(tmp_path, capsys):
    odd = draw(capsys, tmp_path / "odd.png", "--text", "caf\udce9", "--target", "\ud800 !")
    wanted = draw(capsys, tmp_path / "map.png", "--text", "caf\ufffd", "--target", "\ufffd !")
    assert odd[0] == 0
    assert odd[:2] == wanted[:2]
    assert (tmp_path / "odd.png").read_bytes() == (tmp_path / "map.png").read_bytes()


def test_heatmap_shows_the_models_own_translation(tmp_path, capsys, monkeypatch):
    seen = {}
    original = heatmap.show_heatmaps

    def recorded(weights, **options):
        seen.update(options, weights=weights)
        return original(weights, **options)

    monkeypatch.setattr(heatmap, "show_heatmaps", recorded)
    assert draw(capsys, tmp_path / "map.png", "--text", "I lost.", "--head", "1")[0] == 0
    translator = load_translator(talking_folder())
    said = translate_lines(translator, ["I lost."])[0]
    assert seen["yticklabels"] == [*translator.target.tokens(said), "<eos>"]
    assert seen["xticklabels"] == [*translator.source.tokens("I lost."), "<eos>"]
    assert seen["titles"] == ["Cross-attention: layer 0, head 1"]
    maps = translator.attention_maps("I lost.", said)[0]["cross"]
    torch.testing.assert_close(seen["weights"], maps[0, 1])


def test_the_choice_of_layer_and_head_is_said():
    weights = torch.rand(3, 2, 4, 5)
    for layer, head, wanted, title in (
        (None, None, weights.mean((0, 1)), "mean of 3 layers, mean of 2 heads"),
        (1, None, weights[1].mean(0), "layer 1, mean of 2 heads"),
        (None, 0, weights[:, 0].mean(0), "mean of 3 layers, head 0"),
        (2, 1, weights[2, 1], "layer 2, head 1"),
    ):
        chosen, said = heatmap.choose(weights, layer, head)
        torch.testing.assert_close(chosen, wanted)
        assert said == f"Cross-attention: {title}"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--text", "Go.", "--layer", "1"], "--layer must lie in 0..0 for this model, got 1"),
        (["--text", "Go.", "--target", "Va !", "--head", "2"], "--head must lie in 0..1"),
        (["--text", " "], "--text has 0 pieces, this model takes 1..31"),
        (["--text", "a b c " * 20], "this model takes 1..31"),
        (["--text", "Go.", "--target", "x" * 90], "the target has"),
        (["--text", "Go.", "--out", "map.jpg"], "--out must end in .png, got 'map.jpg'"),
        (["--text", "Go.", "--target", "Va", "--out", "no/where/map.png"], "make its folder first"),
    ],
)
def test_heatmap_refuses_what_it_cannot_draw(tmp_path, capsys, options, message):
    code, out, err = draw(capsys, tmp_path / "map.png", *options)
    assert (code, out) == (1, "")
    assert message in err
    assert not (tmp_path / "map.png").exists()


def test_a_text_may_stand_on_the_command_line(monkeypatch):
    given = translate_bytes(monkeypatch, b"", "Go", "now.")
    assert given == translate_bytes(monkeypatch, b"Go now.\n")
    assert given.strip()


def test_the_model_that_ships_translates_by_default():
    parse = command.parser("any", "")
    command.add_decoding_options(parse)
    assert parse.parse_args([]).model == "fra-eng"


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("Hello. How are you? Fine!", ["Hello.", "How are you?", "Fine!"]),
        ('"Stop!" He ran. "Why?" Nobody knew.', ['"Stop!"', "He ran.", '"Why?"', "Nobody knew."]),
        ("Mr. Smith met Dr. J. Brown. They left.", ["Mr. Smith met Dr. J. Brown.", "They left."]),
        ("It costs 3.50 euros. \u00c9mile paid.", ["It costs 3.50 euros.", "\u00c9mile paid."]),
        ("wait... what? no", ["wait... what? no"]),
        ("", [""]),
        ("我在家。你呢？好！", ["我在家。", "你呢？", "好！"]),
        ("何！？本当。。。はい。", ["何！？", "本当。。。", "はい。"]),
        ("「行く。来い。」と彼は言った。寒い。", ["「行く。来い。」と彼は言った。", "寒い。"]),
        ("他说：“我累了。你呢？”她走了。", ["他说：“我累了。你呢？”她走了。"]),
        ("هل أنت هنا؟ أنا هنا.", ["هل أنت هنا؟", "أنا هنا."]),
        ("मैं घर पर हूँ। वह थका है।", ["मैं घर पर हूँ।", "वह थका है।"]),
    ],
)
def test_a_line_is_split_at_the_ends_of_its_sentences(line, wanted):
    assert sentences(line) == wanted


@given(st.text(st.sampled_from("aA .!?\"')\u4e2d\u3002\u300c\u300d"), max_size=40))
def test_sentences_lose_nothing(line):
    assert "".join(sentences(line)).replace(" ", "") == normalise(line).replace(" ", "")
    if "\u3002" not in line:
        assert " ".join(sentences(line)) == normalise(line)


def test_translations_of_parts_are_joined_as_their_script_is_written():
    assert joined(["Hello.", "", "Fine."]) == "Hello. Fine."
    assert joined(["我在家。", "你呢？"]) == "我在家。你呢？"
    assert joined(["그는 왔다.", "나는 갔다."]) == "그는 왔다. 나는 갔다."
    assert joined([]) == joined([""]) == ""
    assert doctest.testmod(parts).failed == 0


def test_the_time_to_split_a_line_grows_like_its_length():
    def seconds(count: int) -> float:
        began = time.process_time()
        assert len(sentences("我。" * count)) == count
        return time.process_time() - began

    seconds(1_000)
    assert seconds(40_000) < 80 * max(seconds(2_000), 0.005)  # 20 times if linear, 400 if square


def test_sentences_of_a_line_are_translated_one_by_one(monkeypatch):
    apart = translate_bytes(monkeypatch, b"Go now.\nStop here!\n").decode("utf-8").splitlines()
    assert translate_bytes(monkeypatch, b"Go now. Stop here!").decode("utf-8") == (
        " ".join(apart) + "\n"
    )


def test_letters_that_the_model_never_saw_are_named(monkeypatch, capsys):
    translate_bytes(monkeypatch, "Go.\n\u4f60\u597d \u4f60\n".encode())
    assert "translate: line 2: the model has rarely or never seen \u4f60\u597d, and guesses\n" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_refused_by_its_name(encoding):
    with pytest.raises(Refused, match="UTF-16: save it as UTF-8"):
        list(read_lines(io.BytesIO("Go now.\nStop.\n".encode(encoding)), print))


def test_a_short_line_that_holds_a_nul_is_no_utf_16():
    assert list(read_lines([b"a\0\n", b"\0\0\0"], print)) == ["a\0", "\0\0\0"]


def test_misspelt_commands_and_options_are_answered_by_the_nearest(capsys):
    for argv, meant in ((["translat"], "translate"), (["translate", "--modle", "x"], "--model"),
                        (["train", "--epoch-s", "3"], "--epochs")):  # fmt: skip
        with pytest.raises(SystemExit):
            run(argv)
        assert f"did you mean {meant}?" in capsys.readouterr().err
