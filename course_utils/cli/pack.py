"""python -m course_utils pack --model DIR --out SMALLER"""

from pathlib import Path

import pooch

from course_utils.cli.command import parser, refusing
from course_utils.text.text import printable
from course_utils.training.runs.files import all_finite, new_folder, read_tensors
from course_utils.training.runs.folder import (
    WEIGHTS,
    check_vocabulary,
    empty_model,
    read_best,
    read_config,
    read_vocabulary,
    weights_of,
    write_config,
    write_vocabulary,
    write_weights,
)
from course_utils.training.runs.refusals import Refused


@refusing("pack", lower="close other programs")
def main(argv: list[str]) -> None:
    """Copy a model folder in half precision, without what only training needs."""
    command = parser(
        "pack",
        "Copy a model folder to hand it on: weights in half precision, no checkpoint, no test "
        "sentences. Prints the size and the SHA-256 of the weights.",
    )
    command.add_argument(
        "--model", required=True, type=Path, metavar="DIR", help="what `train` wrote"
    )
    command.add_argument("--out", required=True, type=Path, metavar="DIR", help="a new folder")
    args = command.parse_args(argv)
    config = read_config(args.model)
    vocabulary = read_vocabulary(args.model, config.src_vocab_size)
    best = read_best(args.model)
    check_vocabulary(args.model, vocabulary)
    wanted = weights_of(empty_model(config))
    weights = {name: w.half() for name, w in read_tensors(args.model / WEIGHTS, wanted).items()}
    if not all_finite(weights):
        raise Refused("a weight is too large for half precision: keep the folder as it is")
    new_folder(args.out)
    write_config(args.out, config)
    write_vocabulary(args.out, vocabulary)
    write_weights(args.out, weights, best, vocabulary)
    size = sum(path.stat().st_size for path in args.out.iterdir())
    digest = pooch.file_hash(str(args.out / WEIGHTS))
    print(printable(f"{args.out}: {size / 1e6:.1f} MB, {WEIGHTS} sha256:{digest}"))
