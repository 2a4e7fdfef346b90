"""What the questions of the lab measure: each trial trains or times one model, and returns numbers by name.

A question names its trial as `MODULE:FUNCTION` of this package; see `lab_files`. A trial may return more numbers than a
question asks for.
"""
