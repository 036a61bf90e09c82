"""Fine-tuning with few trained parameters: LoRA, adapters, prefixes and prompts.

Each method takes a pre-trained model, freezes its weights, and adds a few that are trained. A new
head beside them is added, or set to `requires_grad_(True)`, afterwards. `task_weights` takes what
is trained out, to be saved or exchanged; the base stays as it is.
"""

from course_utils.models.fine_tuning.adapter import Adapter, add_adapters
from course_utils.models.fine_tuning.freezing import (
    freeze,
    load_task_weights,
    task_weights,
)
from course_utils.models.fine_tuning.lora import LoRALinear, add_lora, merge_lora
from course_utils.models.fine_tuning.prefix import PrefixAttention, add_prefix
from course_utils.models.fine_tuning.prompt import PromptEncoder

__all__ = [
    "Adapter",
    "LoRALinear",
    "PrefixAttention",
    "PromptEncoder",
    "add_adapters",
    "add_lora",
    "add_prefix",
    "freeze",
    "load_task_weights",
    "merge_lora",
    "task_weights",
]
