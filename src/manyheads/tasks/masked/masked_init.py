"""The masked task's part of `init`: on request only, an encoder that learns the words of any text."""

from manyheads.tasks.data_files import DataFiles
from manyheads.tasks.document_init import (
    DocumentInit,
    characters_per_token,
    count_document_epochs,
    document_budget,
    document_choices,
    subword_choices,
)
from manyheads.tasks.encoder_choices import layers_of_width, stable_choices, training_choices
from manyheads.tasks.proposal import Choice, Proposal, Survey
from manyheads.tasks.task_init import Request, TaskGuess


class MaskedInit(DocumentInit):
    """Recognizes nothing by itself: text alone is proposed for a language model."""

    kind = "masked"
    cli_name = "masked"
    order = 40

    def recognize(self, files: DataFiles, request: Request) -> TaskGuess | None:
        """A table's texts, if the user requested this task."""
        return self.requested_table(files, request) if files.is_table and self.is_requested(request) else None

    def propose(self, survey: Survey, preset: str = "") -> Proposal:
        """An encoder of the size that classify and tag use, to start them from with init_from."""
        size = survey.n_characters
        choices = [
            *subword_choices(survey),
            Choice("task.kind", "masked", "predict masked tokens; start other tasks from it with init_from"),
            *document_choices(survey),
            Choice("model.width", 128, "the width of the classifiers and taggers that start from it"),
            Choice("model.n_encoder_layers", 3),
            Choice("model.n_heads", 4),
            Choice("model.feed_forward_width", 256),
            Choice("model.activation", "gelu"),
            *stable_choices(survey, 0.1),
            Choice("model.max_length", 256, "tokens read at once"),
            *training_choices(
                batch_tokens=2048,
                learning_rate=2e-3,
                validation_reason="steps between validations, on part of the valid text",
                weight_decay=0.05,
            ),
        ]
        # Only a part of the tokens is masked in each epoch.
        n_epochs = 2 * count_document_epochs(size / characters_per_token(survey), 11.0)
        return Proposal(tuple(choices), n_epochs, layers_of_width(3, 128), budget=document_budget(size) / 2)
