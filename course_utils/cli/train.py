"""python -m course_utils train --corpus NAME_OR_TSV --out DIR [--minutes M | --epochs N]"""

import contextlib
import dataclasses
import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch

from course_utils.cli.command import parser, refusing, to_stderr
from course_utils.cli.training_curves import draw_log
from course_utils.models.parameters import count_parameters
from course_utils.models.transformer import Transformer
from course_utils.text.pairs import Pair
from course_utils.text.text import printable
from course_utils.training.metrics import quality
from course_utils.training.runs import processes
from course_utils.training.runs.checkpoint import LAST, check, read_fields
from course_utils.training.runs.data import (
    encode,
    held_out,
    learn_vocabulary,
    positions,
    split_corpus,
)
from course_utils.training.runs.engine import Training
from course_utils.training.runs.files import (
    CannotWrite,
    check_name,
    remove_unfinished,
    write_atomic,
)
from course_utils.training.runs.folder import (
    CONFIG,
    VOCABULARY,
    WEIGHTS,
    check_vocabulary,
    empty_model,
    found,
    load_model,
    read_vocabulary,
    write_config,
    write_vocabulary,
)
from course_utils.training.runs.lines import translate_lines
from course_utils.training.runs.lock import only_writer
from course_utils.training.runs.refusals import Refused
from course_utils.training.runs.settings import (
    add_ends,
    add_options,
    new_settings,
    resumed_settings,
)
from course_utils.training.runs.training_log import LOG
from course_utils.training.translation import load_translator
from course_utils.viz.in_notebook import png_bytes

CURVES = "log.png"
TEST = ("test.en", "test.fr")  # held out for the user; training never looks at them
BEGINNINGS = {CONFIG, VOCABULARY, *TEST}  # what a run killed before its first checkpoint leaves


@refusing(
    "train",
    lower="start anew in another --out with smaller --tokens, then with smaller --d-model, "
    "--layers or --vocab",
)
def main(argv: list[str]) -> int:
    """Train a Transformer to translate, and leave a model folder."""
    command = parser(
        "train",
        "Train a Transformer on sentence pairs, for example: train --corpus small-world "
        "--minutes 3 --out my_model. The weights with the best validation BLEU are kept (chrF2, "
        "where the sentences are too short for BLEU). DIR gets the model, a checkpoint to resume "
        f"from, a log ({LOG}) with its curves ({CURVES}), and held-out sentences ({TEST[0]}, "
        f"{TEST[1]}) for `evaluate`. Also under torchrun: the processes share each batch.",
    )
    add_options(command)
    add_ends(command)
    command.add_argument("--out", required=True, type=Path, metavar="DIR", help="the model folder")
    command.add_argument("--resume", action="store_true", help="go on with the training in DIR")
    given = vars(command.parse_args(argv))
    folder, resume = given.pop("out"), given.pop("resume")
    check_name(folder)
    device = processes.best_device()
    processes.join(device)
    mine = _claimed(folder, resume) if processes.rank() == 0 else contextlib.nullcontext()
    try:
        with mine:
            code = _train(folder, given, device)
    except CannotWrite as error:
        raise Refused(f"{error}; then go on by the same command with --resume") from None
    processes.leave()
    return code


def _train(folder: Path, given: Mapping[str, object], device: torch.device) -> int:
    first = processes.rank() == 0
    processes.wait_for_all()  # the first has made sure of the folder
    fields = read_fields(folder)
    settings = resumed_settings(fields["settings"], given) if fields else new_settings(given)
    split = split_corpus(settings)
    if fields and fields["digest"] != split.digest:
        raise Refused(
            f"the corpus {settings.corpus} is no longer what the training in {folder} began with: "
            "bring it back, or start anew in another --out"
        )
    processes.wait_for_all()  # all have looked into the folder before it changes
    start = None if fields or settings.start_from is None else load_model(settings.start_from)
    if first and not fields:
        write_vocabulary(folder, start[1] if start else learn_vocabulary(split, settings.vocab))
    processes.wait_for_all()
    vocabulary = read_vocabulary(folder, settings.vocab)
    examples = encode(split.train, vocabulary, settings.max_len)
    validation, test = held_out(split, vocabulary, settings.max_len)
    config = settings.model_config(len(vocabulary), positions(examples))
    empty = empty_model(config)
    if fields:
        check(folder, empty)
    elif first:
        _write_test_set(folder, test)
        write_config(folder, config)
    _say(split.summary)
    _say(
        f"{len(examples):,} pairs to train on{_left_out(split.train, examples)}, "
        f"{len(validation):,} to validate{_left_out(split.validation, validation)}, "
        f"{len(test):,} to test{_left_out(split.test, test)}; {len(vocabulary):,} pieces; "
        f"{count_parameters(empty):,} weights on {device}"
    )
    training = Training(folder, settings, vocabulary, examples, validation, split.digest, device)
    if fields:
        if training.best:
            check_vocabulary(folder, vocabulary)
        training.resume(fields)
        if training.validated and training.best is None:
            raise Refused(
                f"{WEIGHTS}, the best weights so far, is gone from {folder}: bring it back, or "
                "start anew in another --out"
            )
        _say(f"going on at update {training.step:,}")
    elif start:
        _begin_with(start[0], training, split.digest)
    drawn = len(training.log)
    signal = training.run()
    if first and len(training.log) > drawn:
        write_atomic(folder / CURVES, png_bytes(draw_log(training.log)))
    if first:
        _conclude(folder, training, test, signal)
    return 128 + signal if signal else 0


def _begin_with(model: Transformer, training: Training, digest: str) -> None:
    """Put the weights of another training into this one, and say what they may have seen."""
    folder, settings = training.settings.start_from, training.settings
    wanted, sizes = training.model.config, model.config
    if dataclasses.replace(sizes, max_len=wanted.max_len, dropout=wanted.dropout) != wanted:
        raise Refused(f"the model in {folder} is none that `train` makes: start from another")
    training.model.load_state_dict(model.float().state_dict())
    before = read_fields(found(folder)) or {"settings": {}, "digest": None}
    split = [before["settings"].get(name) for name in ("seed", "held_out")]
    if before["digest"] != digest or split != [settings.seed, settings.held_out]:
        _say(
            f"the model in {folder} may have learnt from sentences that are held out here: if it "
            "is of the same corpus, take the same --seed and --held-out"
        )


def _say(line: str) -> None:
    if processes.rank() == 0:
        to_stderr(line)


@contextlib.contextmanager
def _claimed(folder: Path, resume: bool) -> Iterator[None]:
    """Make the folder, or find it in a state in which it may be used, and keep others out."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"cannot make the folder {folder}: {error.strerror}") from None
    with only_writer(folder):
        _check_folder(folder, resume)
        stood = {path.name for path in folder.iterdir()}
        try:
            yield
        except Refused:
            if not (folder / LAST).exists():  # as it was found, for the command that is mended
                for name in BEGINNINGS - stood:
                    (folder / name).unlink(missing_ok=True)
            raise


def _check_folder(folder: Path, resume: bool) -> None:
    if resume:
        remove_unfinished(folder)
    found = sorted(path.name for path in folder.iterdir())
    if found and not resume:
        raise Refused(
            f"{folder} is not empty (it holds {', '.join(found[:4])}): name a new folder, or go on "
            "with the training in it by --resume"
        )
    if resume and LAST not in found:
        if strange := [name for name in found if name not in BEGINNINGS]:
            raise Refused(
                f"{folder} holds {strange[0]} but no {LAST} to go on from: name another folder"
            )
        _say(f"there is no {LAST} in {folder} yet: starting from the beginning")


def _write_test_set(folder: Path, pairs: list[Pair]) -> None:
    sides = ([pair.source for pair in pairs], [pair.target for pair in pairs])
    for name, lines in zip(TEST, sides, strict=True):
        write_atomic(folder / name, "".join(f"{line}\n" for line in lines).encode("utf-8"))


def _left_out(before: Sequence, after: Sequence) -> str:
    count = len(before) - len(after)
    return f" ({count:,} longer than --max-len left out)" if count else ""


def _conclude(folder: Path, training: Training, test: Sequence[Pair], signal: int) -> None:
    """Say how good the best weights are on sentences that played no part, or how to go on."""
    if signal:
        quote = shlex.quote if os.name != "nt" else lambda name: subprocess.list2cmdline([name])
        how = f"python -m course_utils train --out {quote(str(folder))} --resume"
        _say(f"stopped after update {training.step:,}; to go on: {how}")
        return
    best = training.best
    translator = load_translator(folder, training.device)
    hypotheses = translate_lines(translator, [pair.source for pair in test])
    score = quality(hypotheses, [pair.target for pair in test], best.measure)
    print(
        f"{printable(str(folder / WEIGHTS))}: test {score.name} {score:.2f} on {len(test)} "
        f"held-out sentences ({score.signature}); best of validation, "
        f"{best.measure} {best.score:.2f}, at update {best.step:,} of {training.step:,}"
    )
