"""The course's model against others of the same size: speed, memory, and quality."""
