# `make test`: lint, types, import contracts, the documentation and the tests, in about a quarter of an hour on two idle cores.
# `make test` and `make quickstart` need no set-up: both create and reuse .venv.
PYTHON ?= python3
BIN := .venv/bin
PIP_INSTALL = pip install --disable-pip-version-check -qq
INSTALL := $(BIN)/$(PIP_INSTALL) --constraint constraints.txt
# TORCH_INDEX=address: where torch is installed from, such as the address that "Get Started" of pytorch.org shows for CPU.
TORCH_FROM = $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX))
.PHONY: help quickstart test check proofs kills full-disk flips ingest scale format clean

help:
	@echo "make quickstart   train a translator on the built-in corpus, score it, write its bundle (minutes)"
	@echo "make test         lint, types, import contracts, documentation and tests (about a quarter of an hour on two idle cores)"
	@echo "make check        lint, types, import contracts and the tests without the slow ones: before every commit"
	@echo "make proofs       long tests, of which make test runs one of each kind: kills, full disks, speed, another"
	@echo "                  device, trained quickstarts (many minutes)"
	@echo "make test-oldest  the installed wheel with the oldest versions of its dependencies; test-newest: the newest"
	@echo "make lock         refresh constraints.txt: the newest versions of everything (minutes)"
	@echo "make dist         the source distribution and a manylinux wheel, in dist/"
	@echo "make quickstarts  train a classifier, a tagger and a language model on the built-in corpora (minutes)"
	@echo "make multi30k     the published benchmark (an hour or two); multi30k-raw: on raw, cased text"
	@echo "make snips        understanding and language models, one recipe each: also $(wordlist 2,9,$(RECIPES))"
	@echo "make kills        kill a run 200 times and compare its bytes with an undisturbed one's (an hour)"
	@echo "make mutants      change the code in N=400 places and count which changes the tests notice (hours, resumable)"
	@echo "make full-disk    a small filesystem that is full at every 16 KB of a run (root on Linux; an hour)"
	@echo "make flips        change 1,000 bytes of a run's files, one at a time: each must be detected (a minute)"
	@echo "make fuzz         random inputs against readers, recipes, bundles and the native engine (ten minutes)"
	@echo "make fresh        make quickstart on a bare Debian (minutes; root or docker); see tests/fresh_machine.sh"
	@echo "make docs         the documentation site, in build/site"
	@echo "make format       format the code"
	@echo "make scale        training on 1, 2 and 4 processes: equality, resharding, random kills (an hour)"
	@echo "make ingest       speed and memory of reading a 10 GB corpus (an hour; needs 40 GB of disk for a while)"
	@echo "make bulk-kills   a bulk job of a million lines, killed 50 times, in processes and on Ray (half an hour)"
	@echo "make defaults     init, train, evaluate on every data set, beside scikit-learn, a CRF and spaCy (hours)"
	@echo "make bench-training   training speed against peers, which are installed into .peers/ (half an hour)"
	@echo "make bench-attention  attention's time and memory against length (Linux; ten minutes)"
	@echo "make bench-growth     how cost grows with length, batch, vocabulary, layers, heads, corpus (minutes)"
	@echo "make bench-bfloat16   training in bfloat16 against float32 on this CPU (ten minutes)"
	@echo "make plan-check       times that manyheads plan predicts against real runs, on DATA (a quarter of an hour)"
	@echo "make bench-lens       the lens page against BertViz: size, time to load, frames per second (half an hour)"
	@echo "make bench-serve  the HTTP service against the engine alone, LibreTranslate and CTranslate2 (a quarter of an hour)"
	@echo "make serve-faults the HTTP service drained, killed, flooded and used for long (an hour and a half)"
	@echo "make lab-check    repeat stored trials of every experiment of the lab (ten minutes; ARGS=--fresh: headlines with fresh seeds); lab-all: run all"
	@echo "make lens-types   check the types of the lens page's scripts (TypeScript from npm, into build/)"
	@echo "make bench-decoding   decoding speed of runs/multi30k/bundle against CTranslate2 and Hugging Face (ten minutes)"

PO = $(wildcard src/manyheads/locale/*/LC_MESSAGES/manyheads.po)
.venv/installed: pyproject.toml constraints.txt $(PO)
	@test -w . || { echo "This folder is read-only. Install into a folder of yours: $(PYTHON) -m venv venv && venv/bin/pip \
	install --constraint '$(CURDIR)/constraints.txt' torch '$(CURDIR)' && venv/bin/manyheads quickstart"; exit 1; }
	@echo "Installing manyheads and what it needs into .venv (once)"
	@test -x $(BIN)/pip || $(PYTHON) tools/environment.py .venv
	@echo "  torch";     $(INSTALL) torch $(TORCH_FROM)
	@echo "  manyheads"; $(INSTALL) --editable .
	@touch $@

.venv/installed-dev: .venv/installed
	@echo "  tools for development"; $(INSTALL) --editable ".[dev]"
	@touch $@

# Corpora that are not ours to ship: a folder `data` here or beside this one, or DATA=…
DATA ?= $(firstword $(wildcard data ../data ../*/data))
MULTI30K = $(abspath $(DATA))/multi30k-en-de
TOKENISED = $(MULTI30K)/tok
RAW = data.folder=$(MULTI30K)/raw 'data.train=["train.en","train.de"]' 'data.valid=["val.en","val.de"]' \
  'data.test=["test_2016_flickr.en","test_2016_flickr.de"]'

.PHONY: multi30k multi30k-raw
multi30k: .venv/installed
	@test -e "$(TOKENISED)/train.lc.norm.tok.en" || { echo "make multi30k needs the text of Multi30k (train, val and \
	test_2016_flickr, as en and de): raw in DATA/multi30k-en-de/raw, lc.norm.tok in DATA/multi30k-en-de/tok. Say where \
	with DATA=folder."; exit 1; }
	$(BIN)/manyheads train recipes/multi30k.toml data.folder=$(TOKENISED) -o runs/multi30k $(ARGS)
	$(BIN)/manyheads evaluate runs/multi30k/bundle --tokenized

multi30k-raw: .venv/installed
	$(BIN)/manyheads train recipes/multi30k.toml $(RAW) -o runs/multi30k-raw $(ARGS)
	$(BIN)/manyheads evaluate runs/multi30k-raw/bundle

# Understanding and language models: a recipe each, on DATA/name.
RECIPES = snips atis conll2003 resume-ner chnsenticorp sst2 tinyshakespeare tang-poems wikitext2
.PHONY: $(RECIPES)
$(RECIPES): .venv/installed
	@test -e "$(abspath $(DATA))/$@" || { echo "make $@ needs the text in DATA/$@. Say where with DATA=folder."; exit 1; }
	$(BIN)/manyheads train recipes/$@.toml data.folder=$(abspath $(DATA))/$@ -o runs/$@ $(ARGS)
	$(BIN)/manyheads evaluate runs/$@/bundle

quickstart: .venv/installed
	@$(BIN)/manyheads quickstart $(if $(TASK),--task $(TASK)) $(ARGS)

PYTEST = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal
LINT = $(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports
DOCS = NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Lint and documentation run beside the tests; what they print follows if they fail.
test: .venv/installed-dev
	@mkdir -p build
	@{ $(LINT); } >build/lint.log 2>&1 & lint=$$!; { $(DOCS); } >build/docs.log 2>&1 & docs=$$!; failed=; \
	  $(PYTEST) -m "not proof" || failed=" tests"; \
	  wait $$lint || { cat build/lint.log; failed="$$failed lint"; }; \
	  wait $$docs || { cat build/docs.log; failed="$$failed docs"; }; \
	  if [ "$$failed" ]; then echo "make test failed:$$failed"; exit 1; fi; echo "Tests, lint and docs passed."

proofs: .venv/installed-dev
	$(PYTEST) -m proof

# The installed wheel with the oldest versions that pyproject.toml allows, and with the newest, in environments of their
# own. TORCH=2.6.0: with another torch, which brings 5 GB of CUDA packages on Linux unless TORCH_INDEX is given.
TORCH ?= 2.13.0
.PHONY: test-oldest test-newest
test-oldest test-newest: test-%:
	@test -x .venv-$*/bin/pip || $(PYTHON) tools/environment.py .venv-$*
	@mkdir -p build && echo "torch==$(TORCH)" >build/$*.txt
	@$(if $(filter oldest,$*),$(PYTHON) tools/oldest.py >>build/$*.txt)
	@.venv-$*/bin/$(PIP_INSTALL) torch==$(TORCH) $(TORCH_FROM)
	@.venv-$*/bin/$(PIP_INSTALL) --upgrade --upgrade-strategy eager --constraint build/$*.txt ".[serve]" pytest
	OMP_NUM_THREADS=1 .venv-$*/bin/python -m pytest --confcutdir tests/installed tests/installed/quick.py

# Versions that are held back are at the top of constraints.txt, each with its reason.
.PHONY: lock
lock:
	@$(PYTHON) tools/lock.py

# The last results are in benchmarks/quality.md.
.PHONY: quickstarts
quickstarts: .venv/installed-dev
	$(BIN)/python -m pytest -m proof tests/journeys

# The variables and variants are in the script's first lines.
.PHONY: fresh
fresh:
	@bash tests/fresh_machine.sh

kills full-disk flips: .venv/installed-dev
	PYTHONPATH=tests $(BIN)/python tests/faults/long.py $@ $(ARGS)

# MODULE=decode/sampling: only files whose path starts with this. N=0: all. ARGS=--survivors: run the survivors again;
# ARGS=--report: only show what has a result. In the background: nohup make mutants N=1000 > build/mutants.log 2>&1 &
.PHONY: mutants
mutants: .venv/installed-dev
	OMP_NUM_THREADS=1 PYTHONPATH=$(CURDIR)/src:$(CURDIR)/tests nice -n 19 $(BIN)/python -m mutation.run -n $(or $(N),400) \
	  --seed $(or $(SEED),0) --module "$(MODULE)" $(ARGS)

check: .venv/installed-dev lint
	$(PYTEST) -m "not slow and not proof"

# Collect the messages of the source into the catalogs of all languages, and compile them.
.PHONY: messages
messages: .venv/installed-dev
	$(BIN)/python tools/catalogs.py update

.PHONY: lint
lint: .venv/installed-dev
	$(LINT)

# The scripts are plain JavaScript with types in JSDoc comments.
.PHONY: lens-types
lens-types: .venv/installed-dev
	@PYTHONPATH=tests $(BIN)/python -m serve.type_check

# The documentation site, in build/site. A broken link or a page that loads anything from the network is an error.
.PHONY: docs
docs: .venv/installed-dev
	$(DOCS)

# ARGS="--megabytes 2000": a smaller corpus, with 8 GB of disk.
ingest: .venv/installed
	$(BIN)/python benchmarks/scale/ingest.py $(ARGS)

# ARGS="--lines 50000 --kills 10 --on local --keep-nothing": smaller, and without Ray.
.PHONY: bulk-kills
bulk-kills: .venv/installed-dev
	@$(INSTALL) --editable ".[ray]"
	$(BIN)/python benchmarks/scale/bulk_job.py $(ARGS)

# ARGS="kills -n 10": only this part, and smaller.
scale: .venv/installed-dev
	PYTHONPATH=tests $(BIN)/python benchmarks/scale/training.py $(ARGS)

# ARGS="banking77 subj": only these sets; --peers-only, --ours-only: a part. Results are merged into defaults.json.
.PHONY: defaults
defaults: .venv/installed
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/defaults.py --data $(abspath $(DATA)) $(ARGS)

.PHONY: bench-training bench-attention bench-growth
bench-training bench-attention bench-growth: .venv/installed
	$(BIN)/python benchmarks/speed/$(@:bench-%=%).py $(ARGS)

# Training in bfloat16 against float32. ARGS="base": only this size.
.PHONY: bench-bfloat16
bench-bfloat16: .venv/installed
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/speed/bfloat16.py $(ARGS)

# `manyheads plan` against six runs and against the paper of 2017. ARGS=--paper-only: no runs.
.PHONY: plan-check
plan-check: .venv/installed
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/scale/plan_check.py --data $(abspath $(DATA)) $(ARGS)

# Estimates at load 0 and 10 against runs, and the speed of training beside busy loops. ARGS=--speed-only: two minutes.
.PHONY: busy-check
busy-check: .venv/installed
	$(BIN)/python benchmarks/busy.py --data $(abspath $(DATA)) $(ARGS)

# BertViz is installed into .peers/. It needs Chromium, 12 GB of memory and 5 GB of disk for a while.
.PHONY: bench-lens
bench-lens: .venv/installed-dev
	$(BIN)/python benchmarks/lens/page.py $(ARGS)
	$(BIN)/python benchmarks/lens/table.py

# Needs runs/quickstart/bundle; LibreTranslate is installed into .peers/. ARGS="--bundle folder --rounds 1": another bundle.
.PHONY: bench-serve
bench-serve: .venv/installed-dev
	$(BIN)/python benchmarks/serve/throughput.py $(ARGS)

# ARGS="drains kills --count 10": only these, and smaller.
.PHONY: serve-faults
serve-faults: .venv/installed-dev
	$(BIN)/python benchmarks/serve/faults.py $(ARGS)

# ARGS="scale --trials 10": more trials of one question.
.PHONY: lab-check lab-all
lab-check: .venv/installed
	$(BIN)/python benchmarks/lab.py $(ARGS)
lab-all: .venv/installed
	$(BIN)/python benchmarks/lab.py --all $(ARGS)

.PHONY: bench-decoding
bench-decoding: .venv/installed-dev
	$(BIN)/python benchmarks/speed/decoding.py --data $(TOKENISED)/test_2016_flickr.lc.norm.tok.en \
	  $(TOKENISED)/test_2016_flickr.lc.norm.tok.de $(ARGS)

format: .venv/installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv .venv-oldest .venv-newest dist .peers build runs .pytest_cache .mypy_cache .ruff_cache .hypothesis

# The native engine: its wheel, its tests under sanitizers, and a fuzz test against the torch engine.
NATIVE = src/manyheads/decode/native
NATIVE_TESTS = tests/decode/test_native.py tests/decode/test_native_limits.py tests/decode/test_native_fuzz.py
.PHONY: dist sanitize fuzz-native
# auditwheel checks that the libraries run on every Linux with glibc 2.28, as those of PyTorch do, and tags the wheel so.
MANYLINUX = manylinux_2_28_$(shell uname -m)
dist: .venv/installed-dev
	@test "$$(uname -s)" = Linux && { command -v cc || command -v gcc || command -v clang; } >/dev/null || { echo "make dist needs Linux and a C compiler (gcc)." >&2; exit 1; }
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/auditwheel repair --plat $(MANYLINUX) --wheel-dir dist dist/*-linux_*.whl
	rm dist/*-linux_*.whl

# The steps of the Dockerfile, for a machine to throw away, such as a fresh virtual machine (root).
.PHONY: docker-check
docker-check:
	sh tools/run_dockerfile.sh

# AddressSanitizer must be loaded before Python, and Python never frees some memory: leaks are tested in test_native_limits.py.
sanitize: .venv/installed-dev
	@mkdir -p build/sanitize
	@for march in native x86-64-v3 x86-64-v2; do \
	  gcc -g -O1 -march=$$march -std=gnu11 -shared -fPIC -fno-math-errno -fno-omit-frame-pointer \
	    -fsanitize=address,undefined -fno-sanitize-recover=all -o build/sanitize/engine-$$march.so $(NATIVE)/engine.c -lm && \
	  echo "sanitize: -march=$$march" && \
	  OMP_NUM_THREADS=1 ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	    LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
	    MANYHEADS_NATIVE_LIBRARY=$(CURDIR)/build/sanitize/engine-$$march.so \
	    $(BIN)/python -m pytest $(NATIVE_TESTS) $(ARGS) || exit 1; \
	done

fuzz-native: .venv/installed-dev
	OMP_NUM_THREADS=1 MANYHEADS_FUZZ=$(or $(N),300) MANYHEADS_FUZZ_SEED=$(or $(SEED),0) MANYHEADS_FUZZ_SECONDS=$(or $(SECONDS),600) \
	  $(BIN)/python -m pytest tests/decode/test_native_fuzz.py -s $(ARGS)

# Random inputs against the native engine, readers, recipes and bundles. N: inputs of each target; SECONDS: of all
# together; TARGET: only these; CASE: replay one input; RECORD=1: write benchmarks/fuzz.md.
.PHONY: fuzz
fuzz: .venv/installed-dev
	@OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m fuzz.harness $(if $(TARGET),--target $(TARGET)) \
	  $(if $(N),--inputs $(N)) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED)) \
	  $(if $(CASE),--case $(CASE)) $(if $(RECORD),--record benchmarks/fuzz.md) $(ARGS)
