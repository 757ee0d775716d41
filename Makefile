# The entry points of the repository; .ci/run uses the same targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
.PHONY: help run tambour man portable install deb try-deb chat build test conformance lint format generate docs mutants release-spec dev-cert record-sessions soak asan tsan fuzz fuzz-long bench bench-full bench-growth bench-compare bench-peers bench-link bench-screen bench-tools captures journey picture clients deps docs-client clean

LISTEN ?= 127.0.0.1:7770
DATA ?= ./var
PREFIX ?= /usr/local
SOAK_RUNS ?= 20
# The processor time for each fuzz target, in minutes.
FUZZ_MINUTES ?= 3
# The workloads (W1 to W10) to measure; empty means all.
WORKLOADS ?=
# The client libraries to test; empty means all.
LIBRARIES ?=
RESULTS := .build/bench
# The sources that `make clients` runs. They are linted with the rules of the conformance suite.
CLIENTS := Tests/SystemTests/Clients --config protocol-spec/conformance/pyproject.toml

# The tests start their own PostgreSQL cluster and drive a stock client.
export TAMBOUR_POSTGRES_BIN ?= /usr/lib/postgresql/15/bin
export TAMBOUR_STOCK_PYTHON ?= $(CURDIR)/.build/venv/bin/python

RELEASE_TRAITS := Jemalloc,TLS
# Uses the allocator of a release. The tests do not use it, because sanitizers replace the allocator.
BUILD_SERVER := swift build -c release --traits $(RELEASE_TRAITS) --product tambourd
# Uses the traits of the server, because a build with different traits would compile all sources again.
BUILD_CLIENT := swift build -c release --traits $(RELEASE_TRAITS) --product tambour
# The package needs no Swift on the machine where it is installed.
STATIC := --static-swift-stdlib --scratch-path .build/static
# All debug builds use the traits of the tests, for the same reason.
DEBUG := --traits PostgreSQL,TLS
BUILD_TESTS := swift build --build-tests $(DEBUG)
# Repeats failures at the end, because they are hard to find among thousands of lines.
TEST = scripts/tests --disable-xctest $(DEBUG)

# The sessions of the current release; sessions of published releases are never recorded again.
SESSIONS = protocol-spec/released/$(shell sed -n 's/^version: \([0-9]*\).*/\1/p' protocol-spec/protocol.yaml)/sessions
RECORD = $(TAMBOUR_STOCK_PYTHON) Tests/SystemTests/Sessions/record.py --tambourd .build/debug/tambourd --out $(SESSIONS)

help: ## Lists the targets
	@sed -n 's/^\([a-z%-]*\):.*## /\1\t/p' Makefile | expand -t 12

deps:
	@scripts/deps build

deps-%:
	@scripts/deps $*

run: deps-run ## Builds and starts a server on $(LISTEN) with its data in $(DATA)
	$(BUILD_SERVER)
	@echo "Tambour starts on $(LISTEN), keeps its data in $(DATA) and stops with Ctrl-C."
	@echo "In another terminal: make tambour and .build/release/tambour (the login code appears below), or any client, without TLS. make dev-cert is for trying TLS."
	@echo "Accounts with tokens: .build/release/tambourd admin users create --data $(DATA) --count 2 --first-phone +79990000001 --tokens-out tokens.txt"
	@exec .build/release/tambourd serve --listen $(LISTEN) --data $(DATA) --login-codes console

tambour: deps-run ## Builds the terminal client, .build/release/tambour
	$(BUILD_CLIENT)
	@echo "Start it with .build/release/tambour, or put it on your PATH: install .build/release/tambour /usr/local/bin"

man: deps-run ## Builds both programs, and writes their man pages and shell completions into .build/man
	$(BUILD_SERVER)
	$(BUILD_CLIENT)
	scripts/man .build/release .build/man

portable: deps-run ## Builds both programs and their pages for machines without Swift, in .build/static
	$(BUILD_SERVER) $(STATIC)
	$(BUILD_CLIENT) $(STATIC)
	scripts/man .build/static/release .build/static/man

install: ## Installs what make portable built, with the systemd units, below PREFIX (/usr/local), as root
	scripts/install .build/static --prefix $(PREFIX) $(if $(DESTDIR),--destdir $(DESTDIR))

deb: portable ## Builds the Debian package, .build/deb/tambour_*.deb
	@scripts/deps deb
	rm -rf .build/deb
	scripts/deb .build/static .build/deb

try-deb: AS_ROOT := $(if $(filter-out 0,$(shell id -u)),sudo)
try-deb: deb ## Installs, uses, upgrades and removes the Debian package in a plain Debian tree; needs root
	@scripts/deps try-deb
	$(AS_ROOT) docker/packaging/try.py .build/deb/tambour_*.deb

dev-cert: ## Makes a private certificate authority and a certificate for localhost, to try TLS
	@scripts/dev-cert .build/dev-cert

chat: ## Chats on $(LISTEN) as a stock client: make chat ME=+79990000001 PEER=+79990000002
	@: $${ME:?your phone, as in make chat ME=+79990000001 PEER=+79990000002} $${PEER:?the phone of the other side}
	@scripts/deps chat
	@exec .build/venv/bin/python docs/examples/chat.py "$$ME" "$$PEER" $(LISTEN)

build: deps ## Builds everything, debug
	swift build $(DEBUG)

test: deps-test ## Runs every test
	$(BUILD_TESTS)
	$(TEST)

test-%: deps-test ## Runs the tests of one target, as in make test-TambourNet
	@test -d Tests/$*Tests || { echo "there is no Tests/$*Tests" >&2; exit 1; }
	$(BUILD_TESTS)
	$(TEST) --filter '^$*Tests\.'

conformance: deps-conformance ## Runs the conformance suite against the server; CASES="FRM HDR-01" picks some
	swift build $(DEBUG) --product tambourd
	.build/venv-conformance/bin/python -m pytest --quiet protocol-spec/conformance/tests
	.build/venv-conformance/bin/python protocol-spec/conformance/run.py .build/debug/tambourd \
		--strict --out .build/conformance $(CASES)

clients: deps-clients ## Plays everything that three client libraries offer, and writes the table of results to .build/clients
	swift build $(DEBUG) --product tambourd
	.build/venv/bin/python Tests/SystemTests/Clients/run.py --tambourd .build/debug/tambourd --out .build/clients $(LIBRARIES)

lint: deps-lint ## Checks the format, and the Python of the conformance suite and of the client cells
	swift format lint --strict --parallel --recursive Package.swift Sources Tests bench
	.build/venv-lint/bin/ruff check --quiet protocol-spec/conformance
	.build/venv-lint/bin/ruff format --check --quiet protocol-spec/conformance
	.build/venv-lint/bin/ruff check --quiet $(CLIENTS)
	.build/venv-lint/bin/ruff format --check --quiet $(CLIENTS)

format: deps-lint ## Formats the sources
	swift format format --in-place --parallel --recursive Package.swift Sources Tests bench
	.build/venv-lint/bin/ruff format --quiet protocol-spec/conformance
	.build/venv-lint/bin/ruff format --quiet $(CLIENTS)

generate: deps ## Generates from protocol-spec the Swift in Sources and Tests, the dissector, and protocol.json of the conformance suite
	swift run $(DEBUG) tambour-spec generate

release-spec: deps ## Copies the specification into the next release again; only before it is published
	swift run $(DEBUG) tambour-spec release --again

record-sessions: deps-test deps-conformance ## Records the sessions of clients with the server, for the next release
	swift build $(DEBUG) --product tambourd
	rm -rf $(SESSIONS)
	$(RECORD)
	$(RECORD) --flows .build/venv-conformance/bin/python

# Suppresses MkDocs's warning that version 2 will be a different program.
docs: export NO_MKDOCS_2_WARNING = 1
docs: deps deps-docs ## Builds the reference site of the protocol in .build/site
	rm -rf .build/docs-src
	swift run $(DEBUG) tambour-spec docs --out .build/docs-src
	.build/venv-docs/bin/mkdocs build --quiet --strict --config-file .build/docs-src/mkdocs.yml --site-dir $(CURDIR)/.build/site
	@.build/venv-docs/bin/python protocol-spec/site/check_site.py .build/site

docs-client: deps ## Builds the pages of the client library, with its tour, in .build/client-docs
	swift build $(DEBUG) --product tambour
	rm -rf .build/symbols .build/client-docs
	mkdir -p .build/symbols
	swift-symbolgraph-extract -module-name TambourClient -minimum-access-level public -output-dir .build/symbols \
		-target "$$(swiftc -print-target-info | sed -n 's/.*"triple": "\(.*\)",.*/\1/p' | head -n 1)" -I .build/debug/Modules \
		$$(find Sources .build/checkouts -name module.modulemap -printf '-I %h ')
	docc convert Sources/TambourClient/TambourClient.docc --additional-symbol-graph-dir .build/symbols \
		--fallback-display-name TambourClient --fallback-bundle-identifier tambour.client \
		--transform-for-static-hosting --output-path .build/client-docs

soak: deps-test ## Runs the long tests once, then every test $(SOAK_RUNS) times
	$(BUILD_TESTS)
	TAMBOUR_SOAK=1 $(TEST)
	$(MAKE) try-deb journey mutants
	@for run in $$(seq $(SOAK_RUNS)); do echo "run $$run of $(SOAK_RUNS)"; $(TEST) 2>&1 | tail -n 1; done

mutants: deps-conformance ## Breaks the sources in every way that a test should notice; takes hours
	python3 Tests/mutants/check.py
	@for list in commands delta entities findings photos plays screen simulation; do python3 Tests/mutants/$$list.py; done
	python3 Tests/mutants/wire.py .build/venv-conformance/bin/python
	python3 Tests/mutants/client.py

asan: deps-test ## Runs every test under the address sanitizer
	$(BUILD_TESTS) --sanitize=address --scratch-path .build/asan
	# Pointers in Swift enums carry tags, so the leak detector cannot follow them and reports false leaks.
	ASAN_OPTIONS=detect_leaks=0 $(TEST) --sanitize=address --scratch-path .build/asan

tsan: deps-test ## Runs every test under the thread sanitizer
	$(BUILD_TESTS) --sanitize=thread --scratch-path .build/tsan
	clang -O1 -shared -fPIC -o .build/tsan/mutex.so Tests/Sanitizers/mutex.c
	LD_PRELOAD=$(CURDIR)/.build/tsan/mutex.so $(TEST) --sanitize=thread --scratch-path .build/tsan

fuzz: deps ## Runs every decoder under libFuzzer for FUZZ_MINUTES each, two at a time: make fuzz TARGETS="request lz4"
	scripts/fuzz --minutes $(FUZZ_MINUTES) $(TARGETS)

fuzz-long: FUZZ_MINUTES = 60
fuzz-long: fuzz ## Runs every decoder under libFuzzer for an hour each

bench-tools:
	@scripts/deps bench
	$(BUILD_SERVER)
	# Uses the same traits, because a build with different traits would compile all sources again.
	swift build -c release --traits $(RELEASE_TRAITS) --product tambour-bench
	@$(MAKE) -C bench/limits OUT=$(CURDIR)/.build/bench

bench: bench-tools ## Measures the server and the limits of the machine, in three short rounds
	.build/release/tambour-bench suite --rounds 3 --seconds 3 \
		--markdown-out $(RESULTS)/short.md --json-out $(RESULTS)/short.json $(WORKLOADS)

bench-full: bench-tools ## Measures as the claims require: five rounds, longer runs
	.build/release/tambour-bench suite --rounds 5 --seconds 8 --full \
		--markdown-out $(RESULTS)/full.md --json-out $(RESULTS)/full.json $(WORKLOADS)

bench-growth: bench-tools ## Measures sends, logins, pages and groups over growing sizes, and plots the results
	@scripts/deps plot
	.build/release/tambour-bench growth \
		--markdown-out $(RESULTS)/growth.md --json-out $(RESULTS)/growth.json
	.build/venv-plot/bin/python bench/plot.py $(RESULTS)/growth.json $(RESULTS)/growth.svg
	@echo "plotted: $(RESULTS)/growth.svg"

bench-compare: ## Compares two checkouts, each with its own programs and store: BEFORE=/path/of/a/checkout; AFTER is this one by default
	@: $${BEFORE:?a checkout to compare with, as in BEFORE=../before}
	@scripts/deps bench
	bench/compare/compare.py $(BEFORE) $(AFTER) --markdown-out $(RESULTS)/compare.md

bench-peers: bench-tools ## Runs the same work on prosody, ejabberd and mosquitto
	@scripts/deps peers
	.build/release/tambour-bench peers --rounds 3 --seconds 5 \
		--markdown-out $(RESULTS)/peers.md --json-out $(RESULTS)/peers.json

bench-link: ## Measures a reconnect over 64 kbit/s, 600 ms and 3 % loss, next to prosody; needs root
	@scripts/deps bench
	@scripts/deps peers
	$(BUILD_SERVER)
	$(BUILD_CLIENT)
	python3 bench/link/measure.py --markdown-out $(RESULTS)/link.md --json-out $(RESULTS)/link.json

bench-screen: deps-run ## Measures the screen: first screen, keys, memory, idle CPU
	$(BUILD_SERVER)
	$(BUILD_CLIENT)
	python3 bench/screen.py --tambour .build/release/tambour --tambourd .build/release/tambourd

journey: deps-run ## Traces a send and a login in a debug build and compares them with docs/journey.md
	Tests/journey/trace.py

captures: deps ## Draws twelve situations of the screen in three themes and two sizes into .build/captures; needs tmux
	swift build $(DEBUG) --product tambourd
	swift build $(DEBUG) --product tambour
	python3 Tests/SystemTests/Captures/capture.py --tambour .build/debug/tambour --tambourd .build/debug/tambourd \
		--out .build/captures

picture: captures deps-test ## Draws docs/terminal.svg from a capture
	.build/venv/bin/python Tests/SystemTests/Captures/picture.py .build/captures/dark-80x24/02-chat.ansi docs/terminal.svg

clean: ## Removes everything that was built
	rm -rf .build
