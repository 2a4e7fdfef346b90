"""Text: file readers, the tokenizer, word splitting, tagging schemes. Works on strings and ids, never on tensors."""
