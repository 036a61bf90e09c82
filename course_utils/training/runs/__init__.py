"""The training engine: train, translate, evaluate and look at a model from the command line.

    python -m course_utils train --corpus small-world --out my_model --minutes 3

What a command leaves behind is a model folder (`folder.py`) that the other commands read.
"""
