"""python -m course_utils train --corpus NAME_OR_TSV --out DIR [--minutes M | --epochs N]"""

import sys
from collections.abc import Mapping
from pathlib import Path

import torch

from course_utils.data.pairs import Pair
from course_utils.engine import processes
from course_utils.engine.checkpoint import LAST, check, read_fields
from course_utils.engine.command import Refused, parser, refusing
from course_utils.engine.data import Split, encode, learn_vocabulary, positions, split_corpus
from course_utils.engine.files import CannotWrite, remove_unfinished, write_atomic
from course_utils.engine.folder import (
    CONFIG,
    VOCABULARY,
    WEIGHTS,
    empty_model,
    load_translator,
    read_vocabulary,
    write_config,
    write_vocabulary,
)
from course_utils.engine.loop import Training
from course_utils.engine.scores import bleu
from course_utils.engine.sentences import translate_lines
from course_utils.engine.settings import add_options, new_settings, resumed_settings
from course_utils.translation import count_parameters

TEST = ("test.en", "test.fr")  # held out for the user; training never looks at them
BEGINNINGS = {CONFIG, VOCABULARY, *TEST}  # what a run killed before its first checkpoint leaves


@refusing(
    "train",
    lower="start anew in another --out with smaller --tokens, then with smaller --d-model, "
    "--layers or --vocab",
)
def main(argv: list[str]) -> int:
    """Train a Transformer to translate, and leave a model folder."""
    own = parser(
        "train",
        "Train a Transformer on sentence pairs and keep the weights with the best validation BLEU. "
        f"DIR gets the model, a checkpoint to resume from, and held-out sentences ({TEST[0]}, "
        f"{TEST[1]}) for `evaluate`. Also under torchrun: the processes share each batch.",
    )
    add_options(own)
    own.add_argument("--out", required=True, type=Path, metavar="DIR", help="the model folder")
    own.add_argument("--resume", action="store_true", help="go on with the training in DIR")
    given = vars(own.parse_args(argv))
    folder, resume = given.pop("out"), given.pop("resume")
    device = processes.best_device()
    processes.join(device)
    try:
        code = _train(folder, given, resume, device)
    except CannotWrite as error:
        raise Refused(f"{error}; then go on by the same command with --resume") from None
    processes.leave()
    return code


def _train(folder: Path, given: Mapping[str, object], resume: bool, device: torch.device) -> int:
    first = processes.rank() == 0
    if first:
        _claim(folder, resume)
    processes.wait_for_all()
    fields = read_fields(folder)
    settings = resumed_settings(fields["settings"], given) if fields else new_settings(given)
    split = split_corpus(settings)
    if fields and fields["digest"] != split.digest:
        raise Refused(
            f"the corpus {settings.corpus} is no longer what the training in {folder} began with: "
            "bring it back, or start anew in another --out"
        )
    processes.wait_for_all()  # all have looked into the folder before it changes
    if first and not fields:
        write_vocabulary(folder, learn_vocabulary(split, settings.vocab))
        _write_test_set(folder, split.test)
    processes.wait_for_all()
    vocabulary = read_vocabulary(folder)
    examples = encode(split.train, vocabulary, settings.max_len)
    config = settings.model_config(len(vocabulary), positions(examples))
    try:
        empty = empty_model(config)
    except ValueError as error:
        raise Refused(f"these sizes do not go together: {error}") from None
    if fields:
        check(folder, empty)
    if first:
        if not fields:
            write_config(folder, config)
        _introduce(split, len(examples), len(vocabulary), count_parameters(empty), device)
    training = Training(
        folder, settings, vocabulary, examples, split.validation, split.digest, device
    )
    if fields:
        training.resume(fields)
        if training.validated and training.best is None:
            raise Refused(
                f"{WEIGHTS}, the best weights so far, is gone from {folder}: bring it back, or "
                "start anew in another --out"
            )
        _say(f"going on at update {training.step:,}")
    signal = training.run()
    if first:
        _conclude(folder, training, split, signal)
    return 128 + signal if signal else 0


def _say(line: str) -> None:
    if processes.rank() == 0:
        print(line, file=sys.stderr)


def _claim(folder: Path, resume: bool) -> None:
    """Make the folder, or find it in a state in which it may be used."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"cannot make the folder {folder}: {error.strerror}") from None
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


def _introduce(split: Split, kept: int, pieces: int, size: int, device: torch.device) -> None:
    _say(split.summary)
    text = f"{kept:,} pairs to train on"
    if left_out := len(split.train) - kept:
        text += f" ({left_out:,} longer than --max-len left out)"
    _say(
        f"{text}, {len(split.validation):,} to validate, {len(split.test):,} to test; "
        f"{pieces:,} pieces; {size:,} weights on {device}"
    )


def _conclude(folder: Path, training: Training, split: Split, signal: int) -> None:
    """Say how good the best weights are on sentences that played no part, or how to go on."""
    if signal:
        how = f"python -m course_utils train --out {folder} --resume"
        _say(f"stopped after update {training.step:,}; to go on: {how}")
        return
    validation, step = training.best
    translator = load_translator(folder, training.device)
    hypotheses = translate_lines(translator, [pair.source for pair in split.test])
    score, signature = bleu(hypotheses, [pair.target for pair in split.test])
    print(
        f"{folder / WEIGHTS}: test BLEU {score:.2f} on {len(split.test)} held-out sentences "
        f"({signature}); best of validation, {validation:.2f}, at update {step:,} of "
        f"{training.step:,}"
    )
