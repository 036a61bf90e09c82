"""The two ways from choices to a policy."""

from course_utils.viz.canvas import LEARNED, STEP, Canvas
from course_utils.viz.drawings import Drawing


def from_choices():
    """Choices make a reward, which pulls the policy; or they pull it at once."""
    sheet = Canvas(8, 2.5)
    choices = sheet.box(1.2, 1.25, "choices between\ntwo answers", STEP, 1.8, 0.7)
    reward = sheet.box(3.9, 1.95, "reward model", LEARNED, 1.6)
    policy = sheet.box(6.6, 1.25, "the model,\nbeing trained", LEARNED, 1.8, 0.7)
    reference = sheet.box(6.6, 0.32, "the model as it was", STEP, 2.0)
    sheet.arrow(choices.top, (choices.x, reward.y), reward.left, text="learn rewards", side="above")
    sheet.arrow(reward.right, (policy.x, reward.y), policy.top, text="climb: PPO", side="above")
    sheet.arrow(choices.right, policy.left, text="at once: DPO", side="below")
    sheet.arrow(reference.top, policy.bottom, dashed=True, head=False, text="leash")
    return sheet


FIGURES = {
    "from_choices.svg": Drawing(
        from_choices,
        "Choices between two answers train a reward model, and the model climbs to it by PPO. "
        "DPO trains the model on the choices at once. A dashed leash ties it to what it was.",
    ),
}
