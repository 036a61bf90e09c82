"""How long decoding takes as sentences grow, from the measured run of the benchmark."""

import math

from course_utils.bench.measured import kept_records, seconds_by_steps
from course_utils.bench.report import measurements
from course_utils.diagrams.canvas import FAINT, LARGE, SMALL, Canvas
from course_utils.plot.style import PALETTE

LEFT, BOTTOM, WIDTH, HEIGHT = 0.95, 0.75, 5.0, 3.1
SENTENCES = 64
LINE = 0.19  # between two names


def decoding_cost():
    """Seconds against steps, both axes logarithmic: a line's slope is the power of its growth."""
    curves = seconds_by_steps(measurements(kept_records()), SENTENCES)
    steps = sorted({step for curve in curves.values() for step, _ in curve})
    times = [seconds for curve in curves.values() for _, seconds in curve]
    low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))

    def at(step: int, seconds: float) -> tuple[float, float]:
        across = math.log(step / steps[0]) / math.log(steps[-1] / steps[0])
        up = (math.log10(seconds) - low) / (high - low)
        return LEFT + across * WIDTH, BOTTOM + up * HEIGHT

    sheet = Canvas(8, 4.4)
    sheet.text(LEFT, 4.15, f"Greedy decoding of {SENTENCES} sentences", LARGE, align="left")
    for step in steps:
        x, _ = at(step, 10**low)
        sheet.arrow((x, BOTTOM), (x, BOTTOM + HEIGHT), colour=FAINT, head=False)
        sheet.text(x, BOTTOM - 0.2, str(step), SMALL)
    for power in range(low, high + 1):
        _, y = at(steps[0], 10.0**power)
        sheet.arrow((LEFT, y), (LEFT + WIDTH, y), colour=FAINT, head=False)
        sheet.text(LEFT - 0.12, y, f"{10.0**power:g}", SMALL, align="right")
    sheet.text(LEFT + WIDTH / 2, 0.22, "steps", SMALL)
    sheet.text(0.25, BOTTOM + HEIGHT / 2, "seconds", SMALL, rotation=90)
    ends = []
    for colour, (name, curve) in zip(PALETTE, curves.items()):
        points = [at(step, seconds) for step, seconds in curve]
        for start, end in zip(points, points[1:]):
            sheet.arrow(start, end, colour=colour, head=False)
        for x, y in points:
            sheet.circle(x, y, 0.05, colour=colour, filled=True)
        ends.append((points[-1][1], name, colour))
    height = -math.inf
    for wanted, name, colour in sorted(ends):
        height = max(wanted, height + LINE)
        sheet.text(LEFT + WIDTH + 0.12, height, name, SMALL, colour, align="left")
    return sheet
