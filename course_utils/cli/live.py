"""python -m course_utils live --model DIR --out live.html"""

from pathlib import Path

from course_utils.cli.command import add_model_option, parser, refusing
from course_utils.training.runs.refusals import Refused
from course_utils.viz.live.page import write_live_page


@refusing("live", lower="close other programs")
def main(argv: list[str]) -> None:
    """Write one page in which a trained model runs."""
    command = parser(
        "live",
        "Write one HTML page in which a trained model translates, shows its attention and can be "
        "meddled with, without a server: open it in a browser, or send it to a friend.",
    )
    add_model_option(command)
    command.add_argument("--out", required=True, type=Path, metavar="FILE.html")
    args = command.parse_args(argv)
    if args.out.suffix.lower() != ".html":
        raise Refused(f"--out must end in .html, got {str(args.out)!r}")
    try:
        write_live_page(args.model, args.out)
    except ValueError as error:
        raise Refused(str(error)) from None
    print(f"The page is written: open {args.out} ({args.out.stat().st_size / 1e6:.1f} MB)")
