"""Shape and type checks are switched on for every test: jaxtyping reads the annotations, beartype enforces them."""

from jaxtyping import install_import_hook

# Before any test imports the package.
install_import_hook("manyheads", "beartype.beartype")
