"""Propose a recipe for a data set and this machine.

`recognition` finds the task and the files, `survey` examines them, `plan` chooses settings that fit the time available
(measured by `cost_estimate`), and `recipe_text` writes them with their reasons.

What depends on the task is in the task's own `TaskInit`; this package lists no tasks.
"""
