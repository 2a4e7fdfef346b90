"""Pictures of heads: for papers and slides, in the terminal's SVG files, in notebooks."""
