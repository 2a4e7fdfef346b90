"""Text as tokens: the tokenizer, words, sentences, and what training texts looked like."""
