# The one entry to everything; `make help` lists the targets.
#
#   SERVER=bundled|system   nginx 1.28 built from the pinned nginx-src crate, or the distribution's nginx
#   PROFILE=release|debug
#
# No variable here is called NGINX: command-line variables are exported, and nginx takes $NGINX for the
# list of sockets that it inherits.
SERVER  ?= bundled
PROFILE ?= release
CARGO   ?= cargo
JOBS    ?= 2
# Builds take the versions of Cargo.lock; `make LOCKED=` lets cargo write it anew after a change of Cargo.toml.
LOCKED  ?= --locked
# Kafka versions of `make test`, one per nginx, and of `make test-all`.
KAFKA_NEW := 4.4.0
KAFKA_OLD := 2.8.2
KAFKA_ALL := 0.11.0.3 1.1.1 2.0.1 2.8.2 3.9.2 4.4.0
FUZZ_SECONDS ?= 60
# Runs of the simulation in `make test`.
SEEDS ?= 1000

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := build

ifneq ($(filter-out bundled system,$(SERVER)),)
$(error SERVER is `bundled` or `system`, not `$(SERVER)`)
endif
ifneq ($(filter-out release debug,$(PROFILE)),)
$(error PROFILE is `release` or `debug`, not `$(PROFILE)`)
endif

B := $(CURDIR)/build
# Each server has its own bindings of nginx's headers, so its own target folder too: a switch rebuilds nothing.
export CARGO_TARGET_DIR := $(CURDIR)/target/$(SERVER)
export NGINX_SOURCE_DIR := $(B)/$(SERVER)/nginx
export NGINX_BUILD_DIR  := $(B)/$(SERVER)/objs

MODULE := ngx_http_kafka_module.so
BUILT  := $(CARGO_TARGET_DIR)/$(PROFILE)/lib$(MODULE)
CARGO_BUILD := $(CARGO) build -j$(JOBS) $(LOCKED) $(if $(filter release,$(PROFILE)),--release)
SYSTEM_NGINX = $(shell PATH=$$PATH:/usr/sbin command -v nginx)
# How t/run is told which nginx and module belong together.
T_bundled = t/run --server bundled --nginx $(B)/bundled/objs/nginx --module $(B)/bundled/$(MODULE)
T_system  = t/run --server system --nginx $(SYSTEM_NGINX) --module $(B)/system/$(MODULE)
T_FILES   = $(T)

CONFIGURE := --with-compat --with-debug --with-threads \
	--with-http_ssl_module --with-http_v2_module --with-http_stub_status_module \
	--with-http_realip_module --with-http_auth_request_module --with-http_addition_module \
	--with-http_gunzip_module --with-http_gzip_static_module --with-http_sub_module

.PHONY: help
help: ## this list
	@sed -n 's/^# *\(SERVER\|PROFILE\)=/  \1=/p' Makefile; echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

.PHONY: deps
deps: ## install the Debian packages that are missing
	@tools/deps

# --- build -----------------------------------------------------------------------------------------

.PHONY: build
build: artefacts ## build/ngx_http_kafka_module.so and build/nginx, for SERVER
	@ln -sfn $(if $(filter system,$(SERVER)),$(SYSTEM_NGINX),bundled/objs/nginx) $(B)/.nginx.new
	@mv -Tf $(B)/.nginx.new $(B)/nginx
	@tools/replace $(B)/$(SERVER)/$(MODULE) $(B)/$(MODULE)
	@echo "built $$(wc -c < $(B)/$(MODULE)) bytes of build/$(MODULE) for $$($(B)/nginx -v 2>&1)"

# What belongs to one server, without the links to it in build/.
.PHONY: artefacts
artefacts: nginx
	$(CARGO_BUILD)
	@tools/replace $(BUILT) $(B)/$(SERVER)/$(MODULE)

.PHONY: nginx
nginx: deps
	@LOCKED='$(LOCKED)' tools/nginx $(SERVER) $(JOBS) $(CONFIGURE)

# With each pool allocation a malloc of its own, valgrind sees what is used after its request ended.
# The module is the same: nothing that it sees of nginx's headers depends on that.
.PHONY: nginx-valgrind
nginx-valgrind: deps
	@LOCKED='$(LOCKED)' tools/nginx valgrind $(JOBS) $(CONFIGURE) --with-cc-opt='-O1 -g -DNGX_DEBUG_PALLOC=1'

# --- use -------------------------------------------------------------------------------------------

.PHONY: demo
demo: build ## real Kafka, real nginx, three requests and their records (DEMO_KEEP=1: stays up)
	@tools/demo

.PHONY: versions
versions: build ## the three requests on six Kafka versions, and the protocol versions negotiated
	@tools/versions $(KAFKA_ALL)

# --- tests -----------------------------------------------------------------------------------------

.PHONY: test
test: unit test-bundled test-system ## everything that matters: two nginx versions, two Kafka versions

.PHONY: test-all
test-all: test-versions e2e ## six Kafka versions and the end-to-end scripts

# The module's own unit tests link nginx's objects, which only the bundled nginx has.
.PHONY: unit
unit:
	@$(MAKE) --no-print-directory SERVER=bundled unit-bundled

.PHONY: unit-bundled
unit-bundled: nginx
	SEEDS=$(SEEDS) $(CARGO) test -j$(JOBS) $(LOCKED) --workspace

.PHONY: test-bundled
test-bundled: deps
	@$(MAKE) --no-print-directory SERVER=bundled artefacts
	$(T_bundled) --kafka $(KAFKA_NEW) $(T_FILES)

.PHONY: test-system
test-system: deps
	@$(MAKE) --no-print-directory SERVER=system artefacts
	$(T_system) --kafka $(KAFKA_OLD) $(T_FILES)

# The two of `make test` are not run again.
.PHONY: test-versions
test-versions: artefacts
	@failed=; for kafka in $(filter-out $(KAFKA_NEW),$(KAFKA_ALL)); do \
	    echo "== $(SERVER) nginx, Kafka $$kafka"; \
	    $(T_$(SERVER)) --kafka $$kafka $(T_FILES) || failed="$$failed $$kafka"; \
	done; if [ -n "$$failed" ]; then echo "failed on Kafka$$failed"; exit 1; fi

.PHONY: e2e
e2e: artefacts
	$(T_$(SERVER)) --kafka $(KAFKA_NEW) $(if $(E2E),$(E2E),--e2e)

.PHONY: test-nginx
test-nginx: artefacts ## the t/ suites under the genuine Test::Nginx of PERL5LIB (T=t/FILE.t)
	$(T_$(SERVER)) --genuine $(T_FILES)

.PHONY: valgrind
valgrind: nginx-valgrind ## the t/ suites with nginx under valgrind (T=t/FILE.t)
	@$(MAKE) --no-print-directory SERVER=bundled artefacts
	t/run --server bundled --nginx $(B)/valgrind/objs/nginx --module $(B)/bundled/$(MODULE) --valgrind $(T_FILES)

.PHONY: check
check: nginx ## formatting, clippy, licences, forbidden dependencies
	$(CARGO) fmt --all --check
	$(CARGO) clippy -j$(JOBS) $(LOCKED) --workspace --all-targets -- -D warnings
	@! $(CARGO) tree $(LOCKED) -e normal --prefix none | grep -E '^(rdkafka|rdkafka-sys|tokio|openssl|hyper) ' \
	    || { echo 'the module must not depend on these'; exit 1; }
	@if $(CARGO) deny --version > /dev/null 2>&1; then $(CARGO) deny check licenses bans sources; \
	else echo 'note: licences not checked; `cargo install cargo-deny --locked` brings the checker'; fi

.PHONY: bench
bench: build ## requests per second as ratios to a plain `return 200`
	python3 bench/floor.py

.PHONY: fuzz
fuzz: ## every decoder under libFuzzer, FUZZ_SECONDS=60 each
	@$(CARGO) fuzz --version > /dev/null 2>&1 || { echo 'first: cargo install cargo-fuzz --locked'; exit 1; }
	@cd fuzz && for target in fuzz_targets/*.rs; do target=$$(basename $$target .rs); echo "== $$target"; \
	    env -u CARGO_TARGET_DIR RUSTC_BOOTSTRAP=1 $(CARGO) fuzz run $$target -- \
	        -max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=512 -malloc_limit_mb=64; done

.PHONY: clean
clean: ## remove build/ and target/ (the cache of Kafka's jars stays)
	rm -rf build target
