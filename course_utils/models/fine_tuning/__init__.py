"""Fine-tuning with few trained parameters: LoRA, adapters, prefixes and prompts.

Each method takes a pre-trained model whose weights `freeze` has fixed, and adds a few that are
trained. `task_weights` takes these out, to be saved or exchanged; the base stays as it is.
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
