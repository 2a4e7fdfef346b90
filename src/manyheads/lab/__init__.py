"""The lab: every "why" of the Transformer as an experiment that you can run.

A question (`questions/`) has arms that differ in exactly the thing asked. `sweep` runs them, `result_store` keeps every
trial, `effects` compares arms in pairs, `figures` puts numbers into texts, `question_page` and `card_page` make pages.
"""
