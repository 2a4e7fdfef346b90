#!/bin/sh
# Runs the steps of the Dockerfile on a machine to throw away, as root, where there is no container engine: `make docker-check`.
# A virtual environment stands for the base image's Python. Then the image's user checks a bundle.
set -eu
ln -sfn "$PWD" /source
python3 -m venv /srv/image
PATH=/srv/image/bin:$PATH
export PATH
sed -n 's/^RUN //p' Dockerfile | while read -r step; do
  echo "RUN $step"
  sh -euc "$step" </dev/null
done
du -sm /srv/image/lib | sed 's/\t.*/ MB in the environment/'
cat >/tmp/recipe.toml <<'EOF'
[data]
builtin = "en-zh"
builtin_rows = 1000
[tokenizer]
vocab_size = 600
[model]
width = 16
n_heads = 2
n_encoder_layers = 1
n_decoder_layers = 1
[train]
steps = 6
warmup = 2
EOF
manyheads train /tmp/recipe.toml -o /tmp/run
ln -s /tmp/run/bundle /model
cd /  # where a container starts; its user cannot read /root
# shellcheck disable=SC2016 # the user's shell expands it
su manyheads -s /bin/sh -c 'MANYHEADS_CACHE=/tmp/manyheads "$0" serve --host 0.0.0.0 --allow-host "*" --check /model' /srv/image/bin/manyheads
