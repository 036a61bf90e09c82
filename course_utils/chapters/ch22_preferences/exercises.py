"""Exercises of chapter 22: what RLHF maximises, the reward behind a policy, DPO on texts."""

import torch
import torch.nn.functional as F

from course_utils.checker.exercise import exercise, wrong
from course_utils.checker.probes import draw

NOTEBOOK = "22_preferences"


def _objective(
    logits,
    reference_logits,
    rewards,
    beta,
    *,
    kl="policy",
    sign=-1,
    weigh="kl",
    average="policy",
    normalised=True,
    turned=False,
    logs="log_softmax",
):
    log_p, log_r = logits, reference_logits
    if normalised:
        log_p, log_r = log_p.log_softmax(-1), log_r.log_softmax(-1)
    p, r = log_p.exp(), log_r.exp()
    if logs != "log_softmax":  # the logarithm of a softmax, and the small number that is added
        log_p, log_r = (p + logs).log(), (r + logs).log()
    mean = {"policy": p @ rewards, "reference": r @ rewards, "plain": rewards.mean()}
    mean["best"], mean["log"] = rewards[logits.argmax()], log_p @ rewards
    mean = mean[average]
    divergence = {
        "policy": (p * (log_p - log_r)).sum(),
        "reversed": (r * (log_r - log_p)).sum(),
        "weighed by the reference": (r * (log_p - log_r)).sum(),
        "no reference": (p * log_p).sum(),
        "not weighed": (log_p - log_r).sum(),
        "averaged": (p * (log_p - log_r)).mean(),
        "no logs": (p * (p - r)).sum(),
        "quotient of logs": (p * (log_p / log_r)).sum(),
        "entropy of the reference": -(p * log_r).sum(),
        "squared": (p * (log_p - log_r).square()).sum(),
        "raw": (p * (logits - reference_logits)).sum(),
        "none": 0.0 * log_p.sum(),
    }[kl]
    if turned:
        mean, divergence = -mean, -divergence
    if weigh == "reward":
        return beta * mean + sign * divergence
    return mean + sign * (beta if weigh == "kl" else 1) * divergence


@exercise(
    notebook=NOTEBOOK,
    minutes=8,
    difficulty=2,
    trains="what RLHF maximises",
    text="""
    What RLHF maximises, for one question with K answers: the mean reward under the policy, minus
    `beta` times KL(policy || reference). Both distributions are given by logits, which may lie
    hundreds apart.
    """,
    reference=_objective,
    probes=[
        (*draw(1451, (2,), (2,), (2,)), 0.5),
        (*draw(1452, (4,), (4,), (4,)), 2.0),
        (*draw(1453, (5,), (5,), (5,), scale=2.0), 0.3),
        (
            torch.tensor([0.0, 1.0, -150.0]),
            torch.tensor([85.0, 0.0, 1.0]),
            torch.tensor([1.0, -0.5, 2.0]),
            0.5,
        ),
    ],
    mistakes=[
        wrong(
            "the KL divergence is taken the other way",
            "reference policy",
            "KL(policy || reference) weighs log policy - log reference by the policy.",
            kl="reversed",
        ),
        wrong(
            "the KL divergence is weighed by the reference",
            "reference policy",
            "The mean of log policy - log reference is taken over answers of the policy.",
            kl="weighed by the reference",
        ),
        wrong(
            "the KL divergence is not weighed",
            "reference policy",
            "Each answer counts as often as the policy gives it.",
            kl="not weighed",
        ),
        wrong(
            "the reference is left out",
            "reference policy",
            "The mean of log policy alone is minus the entropy; it knows nothing of the reference.",
            kl="no reference",
        ),
        wrong(
            "the KL term is left out",
            "reference policy",
            "Without it the policy moves to the answer of the largest reward, however odd.",
            kl="none",
        ),
        wrong(
            "the KL term is added",
            "reference policy",
            "Distance from the reference is a cost, so it is subtracted.",
            sign=1,
        ),
        wrong(
            "beta weighs the reward",
            "reference policy",
            "The KL term is multiplied by beta.",
            weigh="reward",
        ),
        wrong(
            "beta is not used",
            "reference policy",
            "The KL term is multiplied by beta.",
            weigh="nothing",
        ),
        wrong(
            "the reward is averaged over the wrong answers",
            "averaging",
            "Each reward counts as often as the policy gives that answer.",
            {"average": "plain"},
            average="reference",
        ),
        wrong(
            "the logits are taken for log-probabilities",
            "normalisation",
            "exp(logits) does not sum to 1: log_softmax first.",
            normalised=False,
        ),
        wrong(
            "the logarithm is taken of a softmax that is 0",
            "log probabilities",
            "Far below the largest logit a probability is 0 in float32, and its logarithm "
            "infinite: log_softmax takes the logits themselves.",
            logs=0.0,
            normalised=True,
            kl="policy",
            average="policy",
        ),
        wrong(
            "a small number under the logarithm bounds the KL term",
            "log probabilities",
            "The reference may give an answer far less than that number: log_softmax needs none.",
            *({"logs": 10.0**-n} for n in (7, 8, 10, 12)),
            logs=1e-9,
            normalised=True,
            kl="policy",
            average="policy",
        ),
        wrong(
            "the KL term is made of raw logits",
            "normalisation",
            "Logits are logarithms up to a number of each model's own: log_softmax first.",
            kl="raw",
            normalised=True,
        ),
        wrong(
            "the KL divergence is averaged over the answers",
            "averaging",
            "The policy's probabilities are the weights already: sum, and do not divide by K.",
            kl="averaged",
        ),
        wrong(
            "probabilities are compared, not their logarithms",
            "log probabilities",
            "KL is the policy's mean of log policy - log reference.",
            kl="no logs",
        ),
        wrong(
            "the logarithms are divided",
            "log probabilities",
            "log(p / r) is log p - log r, not log p / log r.",
            kl="quotient of logs",
        ),
        wrong(
            "the policy's own entropy is left out",
            "reference policy",
            "KL is the cross-entropy with the reference minus the entropy of the policy.",
            kl="entropy of the reference",
        ),
        wrong(
            "the difference of the logarithms is squared",
            "reference policy",
            "KL takes the difference itself; the sum is never negative all the same.",
            kl="squared",
        ),
        wrong(
            "only the most probable answer is rewarded",
            "averaging",
            "The mean is taken over all answers, each as often as the policy gives it.",
            average="best",
        ),
        wrong(
            "rewards are weighed by log-probabilities",
            "log probabilities",
            "A mean weighs by probabilities: exp of the log-probabilities.",
            average="log",
        ),
        wrong(
            "a loss is given",
            "preference",
            "The objective is maximised; a loss would be minus it.",
            turned=True,
        ),
    ],
    hints=[
        "Make probabilities of both logits first, and keep their logarithms as well.",
        "The mean reward is one dot product.",
        "KL(p || r) is the sum of p times the difference of the logarithms; it is never negative.",
    ],
    right_variants=[
        lambda x, y, r, b: (
            (p := x.softmax(0)) @ (r - b * (x.log_softmax(0) - y.log_softmax(0))) * p.sum()
        ),
        lambda x, y, r, b: (
            x.softmax(0).dot(r)
            - b * F.kl_div(y.log_softmax(0), x.log_softmax(0), reduction="sum", log_target=True)
        ),
        lambda x, y, r, b: (
            (torch.distributions.Categorical(logits=x).probs * r).sum()
            - b
            * torch.distributions.kl_divergence(
                torch.distributions.Categorical(logits=x),
                torch.distributions.Categorical(logits=y),
            )
        ),
    ],
)
def rlhf_objective(logits, reference_logits, rewards, beta):
    """E[reward] - beta * KL(policy || reference).

    logits, reference_logits, rewards: (K,). Returns a number.
    """
    log_policy = logits.log_softmax(-1)
    log_reference = reference_logits.log_softmax(-1)
    policy = log_policy.exp()
    return policy @ rewards - beta * (policy * (log_policy - log_reference)).sum()


def _reward_behind(log_policy, log_reference, beta, *, weigh="times", sign=1, anchor="first",
                   reference="minus", logs="kept"):  # fmt: skip
    if logs == "lost":
        log_policy, log_reference = log_policy.exp(), log_reference.exp()
    ratio = log_policy - log_reference
    ratio = {"minus": ratio, "none": log_policy, "plus": log_policy + log_reference}[reference]
    reward = sign * {"times": beta * ratio, "divided": ratio / beta, "not": ratio}[weigh]
    if anchor == "written over":
        return torch.cat([torch.zeros(1, dtype=reward.dtype), reward[1:]])
    anchors = {"first": reward[0], "none": 0.0, "mean": reward.mean(), "least": reward.min()}
    return reward - anchors[anchor]


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=6,
    difficulty=2,
    trains="reading a policy as a reward",
    text="""
    Turn the formula of the best policy round. A policy over K answers is given, and the reference
    it came from. Under which rewards is it the best one, if the KL term weighs beta? A constant
    added to all rewards changes nothing, so let answer 0 have reward 0.
    """,
    reference=_reward_behind,
    probes=[
        (*(x.log_softmax(-1) for x in draw(1461, (2,), (2,))), 0.5),
        (*(x.log_softmax(-1) for x in draw(1462, (4,), (4,))), 2.0),
        (*(x.log_softmax(-1) for x in draw(1463, (5,), (5,), scale=2.0)), 0.3),
    ],
    edges=[
        (
            "where an answer has a probability of e^-120",
            (torch.tensor([-0.2, -120.0, -1.7077]), torch.tensor([-0.9163, -130.0, -0.5108]), 3.0),
        )
    ],
    mistakes=[
        wrong(
            "the logarithms are divided by beta",
            "reference policy",
            "The policy holds reward / beta, so the reward is beta times the logarithm.",
            weigh="divided",
        ),
        wrong(
            "beta is not used",
            "reference policy",
            "The policy holds reward / beta, so the reward is beta times the logarithm.",
            weigh="not",
        ),
        wrong(
            "the sign is turned",
            "reference policy",
            "An answer that the policy makes likelier than the reference has the larger reward.",
            sign=-1,
        ),
        wrong(
            "answer 0 does not have reward 0",
            "normalisation",
            "Subtract the reward of answer 0 from all of them.",
            {"anchor": "mean"},
            {"anchor": "least"},
            anchor="none",
        ),
        wrong(
            "the reference is left out",
            "reference policy",
            "An answer may be likely because it was so from the start: log policy - log reference.",
            reference="none",
        ),
        wrong(
            "the logarithm of the reference is added",
            "reference policy",
            "The reference is divided out: its logarithm is subtracted.",
            reference="plus",
        ),
        wrong(
            "probabilities are taken instead of logarithms",
            "log probabilities",
            "The formula multiplies; its logarithm adds. The arguments are logarithms already.",
            logs="lost",
        ),
        wrong(
            "only the reward of answer 0 is set to 0",
            "normalisation",
            "Subtract it from all rewards: a constant for all changes nothing, one number "
            "alone does.",
            anchor="written over",
        ),
    ],
    hints=[
        "Take the logarithm of the formula of the best policy.",
        "Three terms: log policy, log reference, reward / beta, and a constant. Solve for reward.",
        "The constant is whatever makes the first reward 0.",
    ],
    right_variants=[
        lambda p, r, b: b * ((p - p[0]) - (r - r[0])),
        lambda p, r, b: torch.log(p.double().exp() / r.double().exp() * (r[0] - p[0]).exp()) * b,
        lambda p, r, b: torch.cat([torch.zeros(1), b * ((p - r)[1:] - (p - r)[:1])]),
    ],
    allows=lambda policy, reference, beta: max(policy.max(), reference.max()) <= 0,
)
def reward_behind(log_policy, log_reference, beta):
    """The rewards for which the policy is the best one.

    log_policy, log_reference: (K,) log-probabilities. Returns (K,), the first of which is 0.
    """
    reward = beta * (log_policy - log_reference)
    return reward - reward[0]


def _dpo_texts(policy, reference, is_answer, beta, *, sign=1, form="log sigmoid", over="mean",
               tokens="answers", length="sum", minus=True, ratio="both",
               weigh="inside"):  # fmt: skip
    kept = {
        "of the preferred": is_answer[:1].expand_as(is_answer),
        "answers": is_answer,
        "all": torch.ones_like(is_answer),
        "questions": ~is_answer,
    }
    kept = kept[tokens].to(policy.dtype)
    gains = {"both": policy - reference, "policy": policy, "turned": reference - policy}[ratio]
    gain = (gains * kept).sum(-1)  # (2, B)
    gain = gain / kept.sum(-1) if length == "mean" else gain
    inside = {"inside": beta, "not": 1.0, "outside": 1.0, "divided": 1 / beta}[weigh]
    d = sign * inside * (gain[0] - gain[1])
    d = d.mean() if over == "before the sigmoid" else d
    losses = {
        "log sigmoid": lambda: F.logsigmoid(d),
        "overflows": lambda: torch.log(torch.sigmoid(d)),
        "with 1e-6": lambda: torch.log(torch.sigmoid(d) + 1e-6),
        "with 1e-7": lambda: torch.log(torch.sigmoid(d) + 1e-7),
        "with 1e-8": lambda: torch.log(torch.sigmoid(d) + 1e-8),
        "with 1e-9": lambda: torch.log(torch.sigmoid(d) + 1e-9),
        "with 1e-10": lambda: torch.log(torch.sigmoid(d) + 1e-10),
        "with 1e-12": lambda: torch.log(torch.sigmoid(d) + 1e-12),
        "no log": lambda: torch.sigmoid(d),
        "no sigmoid": lambda: d,
        "apart": lambda: F.logsigmoid(inside * gain[0]) + F.logsigmoid(-inside * gain[1]),
    }[form]()
    total = losses.sum() if over == "sum" else losses.mean()
    total = beta * total if weigh == "outside" else total
    return -total if minus else total


def _texts(seed, pairs, steps, scale=1.0):
    """A probe: log-probabilities of the tokens, and answers of different lengths."""
    policy, reference = (-x.abs() * scale for x in draw(seed, *[(2, pairs, steps)] * 2))
    starts = 1 + torch.arange(2 * pairs).view(2, pairs) % (steps - 1)
    at = torch.arange(steps)
    ends = steps - (torch.arange(2 * pairs).view(2, pairs) // 2) % 2
    is_answer = (at >= starts[..., None]) & (at < ends[..., None])
    is_answer |= at == steps - 2
    return policy, reference, is_answer


@exercise(
    asks="transfer",
    notebook=NOTEBOOK,
    minutes=10,
    difficulty=2,
    trains="DPO on texts instead of a toy",
    text="""
    The DPO loss for real texts. Of every token, question and answer, you have its log-probability
    under the policy and under the reference; row 0 holds the preferred texts, row 1 the others,
    pair by pair. The log-probability of an answer is the sum over *its* tokens: the question and
    the padding do not count. Give the mean loss over the pairs. Answers may be long, so that sums
    of hundreds must not overflow.
    """,
    reference=_dpo_texts,
    probes=[
        (*_texts(1441, 1, 4), 0.5),
        (*_texts(1442, 3, 6), 2.0),
        (*_texts(1443, 2, 5, scale=100.0), 0.8),
    ],
    mistakes=[
        wrong(
            "the difference is taken the wrong way round",
            "preference",
            "The preferred text, row 0, minus the other.",
            {"sign": 1, "ratio": "turned"},
            sign=-1,
        ),
        wrong(
            "the minus sign is missing",
            "preference",
            "A loss falls when the preferred answer gets likelier, so it is minus the log.",
            minus=False,
        ),
        wrong(
            "the logarithm is missing",
            "log probabilities",
            "Chances of independent pairs multiply, so their logarithms are added.",
            form="no log",
        ),
        wrong(
            "the sigmoid is missing",
            "preference",
            "A difference is no probability; without the sigmoid the loss falls for ever.",
            form="no sigmoid",
        ),
        wrong(
            "each answer is judged alone",
            "preference",
            "Only the difference within a pair counts, inside one sigmoid.",
            form="apart",
        ),
        wrong(
            "the sigmoid runs into 0",
            "overflow",
            "In float32 sigmoid(-123) is 0, whose log is infinite: one function does both safely.",
            form="overflows",
        ),
        wrong(
            "a small number under the logarithm ends the loss",
            "overflow",
            "log(sigmoid + 1e-8) never falls below -18.4, and has no gradient there: logsigmoid "
            "needs no such help.",
            {"form": "with 1e-6"},
            {"form": "with 1e-7"},
            {"form": "with 1e-9"},
            {"form": "with 1e-10"},
            {"form": "with 1e-12"},
            form="with 1e-8",
        ),
        wrong(
            "the pairs are added up",
            "averaging",
            "Take the mean over the pairs, so that their number does not matter.",
            over="sum",
        ),
        wrong(
            "question and padding count",
            "averaging",
            "is_answer says which tokens belong to the answer.",
            tokens="all",
        ),
        wrong(
            "only question and padding count",
            "mask meaning",
            "is_answer is True for the tokens that count.",
            tokens="questions",
        ),
        wrong(
            "the mean over the tokens is taken",
            "log probabilities",
            "Probabilities of tokens multiply to that of the answer, so their logarithms add up.",
            length="mean",
        ),
        wrong(
            "the reference is left out",
            "reference policy",
            "The implied reward is beta * (log policy - log reference).",
            ratio="policy",
        ),
        wrong(
            "beta stands outside of the logarithm",
            "reference policy",
            "beta weighs the difference inside of the sigmoid.",
            weigh="outside",
        ),
        wrong(
            "beta is not used",
            "reference policy",
            "beta weighs the difference inside of the sigmoid.",
            weigh="not",
        ),
        wrong(
            "the difference is divided by beta",
            "reference policy",
            "The implied reward is beta times the difference of the logarithms.",
            weigh="divided",
        ),
        wrong(
            "the differences are averaged before the sigmoid",
            "averaging",
            "Each pair has a loss of its own; the mean is taken of the losses.",
            over="before the sigmoid",
            form="log sigmoid",
        ),
        wrong(
            "the answers of the preferred texts mark both",
            "averaging",
            "Each text has an answer of its own: is_answer has two rows, like the "
            "log-probabilities.",
            tokens="of the preferred",
        ),
    ],
    hints=[
        "First one number per text: how much likelier does the policy make its answer?",
        "policy - reference is (2, B, T). Set what is no answer to 0, and sum over the last axis.",
        "Then it is the loss of the toy, with gain[0] for the preferred and gain[1] for the other.",
    ],
    right_variants=[
        lambda p, r, a, beta: F.softplus(
            beta * ((p - r).masked_fill(~a, 0).sum(-1).diff(dim=0))
        ).mean(),
        lambda p, r, a, beta: F.binary_cross_entropy_with_logits(
            beta * (torch.where(a, p - r, 0.0).sum(2)[0] - torch.where(a, p - r, 0.0).sum(2)[1]),
            torch.ones(p.shape[1]),
        ),
        lambda p, r, a, beta: -torch.stack(
            [
                F.logsigmoid(
                    beta * (p[0, i][a[0, i]].sum() - r[0, i][a[0, i]].sum())
                    - beta * (p[1, i][a[1, i]].sum() - r[1, i][a[1, i]].sum())
                )
                for i in range(p.shape[1])
            ]
        ).mean(),
    ],
)  # fmt: skip
def dpo_of_texts(policy, reference, is_answer, beta):
    """The DPO loss of pairs of texts.

    policy, reference: (2, B, T) log-probabilities of the tokens, preferred texts first;
    is_answer: (2, B, T) boolean. Returns a number.
    """
    gain = ((policy - reference) * is_answer).sum(-1)  # (2, B)
    return -F.logsigmoid(beta * (gain[0] - gain[1])).mean()
