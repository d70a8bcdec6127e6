# `make help` lists the targets. Everything but test-kafka and lint needs nothing but Go.

GO            ?= go
PKG           ?= ./...
FUZZTIME      ?= 20s
GOLANGCI_LINT  = v2.15.0
BIN            = $(CURDIR)/bin
MODE          ?= markers
CUSTOMERS     ?= 10000
# `go install` puts commands there.
export PATH   := $(shell $(GO) env GOPATH)/bin:$(PATH)
# Packages whose tests use a broker, and so can use a real one.
KAFKA_PKGS    ?= $(shell $(GO) list -f '{{$$p := .ImportPath}}{{range .TestImports}}{{.}} {{$$p}}{{"\n"}}{{end}}{{range .XTestImports}}{{.}} {{$$p}}{{"\n"}}{{end}}' ./... | \
                   awk '$$1 ~ /\/internal\/broker\/brokertest$$/ {print $$2}' | sort -u)

.DEFAULT_GOAL := help
.PHONY: help lint-install build demo demo-invoices bench sim test test-race test-kafka test-long fuzz lint fmt generate clean

help: ## print this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

build: ## build the quiesce binary into bin/
	$(GO) build -o $(BIN)/quiesce ./cmd/quiesce

# Some files of the toolchain do not parse, on purpose: the batch completes with failures, exit code 3. The demo itself
# compares them with a plain loop over the same folder; a difference is exit code 1.
demo: build ## index every .go file of the local Go toolchain through a DAG of services (MODE=markers or ledger); says when it is complete
	@$(BIN)/quiesce demo --mode $(MODE); code=$$?; \
	case $$code in \
	  3) echo "as expected: exit code 3, completed with failures, exactly the files that a plain loop cannot parse either";; \
	  0) echo "not expected: exit code 0, no file failed; the toolchain ships files that do not parse"; exit 1;; \
	  *) echo "the demo failed: exit code $$code"; exit 1;; \
	esac

# Customers without an invoice are part of the made-up orders: exit code 3. A difference to the plain loop is exit code 1.
demo-invoices: build ## a job of three steps: orders, an invoice as PDF by mail for each of CUSTOMERS (10000), a report
	@$(BIN)/quiesce demo invoices --customers $(CUSTOMERS); code=$$?; \
	case $$code in \
	  3) echo "as expected: exit code 3, completed with failures, exactly the customers whose orders are wrong";; \
	  *) echo "the demo failed: exit code $$code"; exit 1;; \
	esac

bench: build ## measure latency, throughput beside a bare consumer and plain goka, recovery, memory and fan-out, as tables
	$(BIN)/quiesce bench all

test: ## all tests that need nothing but Go (embedded broker), in a few minutes
	$(GO) test $(PKG)

test-race: ## the same with the race detector (needs a C compiler)
	$(GO) test -race $(PKG)

test-kafka: ## the broker tests against Apache Kafka 4.4.0, which it starts itself: Java 17 and Maven, or KAFKA_HOME, or BOOTSTRAP=host:port
	@$(GO) build -o $(BIN)/with-kafka ./internal/broker/apache/run
	$(BIN)/with-kafka -bootstrap "$(BOOTSTRAP)" -- $(GO) test -count=1 -p 1 -timeout 20m $(KAFKA_PKGS)

test-long: ## exhaustive variants of the tests (crash points, large batches, many seeds); tens of minutes
	QUIESCE_TEST_LONG=1 $(GO) test -timeout 120m -count=1 $(PKG)

sim: ## jobs in virtual time: the founding example under 100 seeds, 100 days of timers; minutes
	QUIESCE_TEST_LONG=1 $(GO) test -timeout 60m -count=1 -v ./internal/sim

fuzz: ## every fuzz target for FUZZTIME (20s) each
	@$(GO) list -f '{{.ImportPath}}' $(PKG) | while read -r pkg; do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "== $$pkg $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
	  done; \
	done

lint: ## gofmt, go vet, golangci-lint, structure rules, generated code up to date
	@command -v golangci-lint >/dev/null || { echo "golangci-lint is missing, or not in PATH: make lint-install"; exit 1; }
	@test -z "$$(gofmt -l .)" || { echo "not formatted (run make fmt):"; gofmt -l .; exit 1; }
	$(GO) vet ./...
	golangci-lint run
	$(GO) test -count=1 ./internal/rules ./codecs/internal/schema

lint-install: ## install the golangci-lint that make lint expects
	$(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT)

generate: ## generate the Go code of the .proto files (nothing but Go needed)
	$(GO) generate ./...

fmt: ## format all Go code
	gofmt -w .

clean: ## remove what the targets made
	rm -rf $(BIN)
