"""When no known mistake fits: which single slip in a right answer gives just what was given?

The solution, and the other right answers that have a source, are changed in one place at a time.
A change is reported only if it gives the very values of the learner's answer on every probe and on
further inputs besides, so what is said is true of all that was tried.
"""

from course_utils.checker.mutants.search import likeness

__all__ = ["likeness"]
