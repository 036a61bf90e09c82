"""The live page: a trained translator that runs, shows its attention and may be meddled with.

Everything it needs lies in one file, the model in half precision among it; no server, no library.
"""

from pathlib import Path

FOLDER = Path(__file__).parent
