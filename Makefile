# `make help` lists the targets. Everything but lint needs nothing but Go.

GO            ?= go
PKG           ?= ./...
FUZZTIME      ?= 20s
GOLANGCI_LINT  = v2.15.0
BIN            = $(CURDIR)/bin

.DEFAULT_GOAL := help
.PHONY: help build demo test test-race test-long lint fmt  clean

help: ## print this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

build: ## build the quiesce binary into bin/
	$(GO) build -o $(BIN)/quiesce ./cmd/quiesce

demo: build ## index every .go file of the local Go toolchain through a DAG of stages; prints when it is complete
	$(BIN)/quiesce demo

test: ## all tests that need nothing but Go (embedded broker), in a few minutes
	$(GO) test $(PKG)

test-race: ## the same with the race detector (needs a C compiler)
	$(GO) test -race $(PKG)

test-long: ## exhaustive variants of the tests (crash points, large batches, many seeds); tens of minutes
	QUIESCE_TEST_LONG=1 $(GO) test -timeout 120m -count=1 $(PKG)

lint: ## gofmt, go vet, golangci-lint,d code up to date
	@test -z "$$(gofmt -l .)" || { echo "not formatted (run make fmt):"; gofmt -l .; exit 1; }
	$(GO) vet ./...
	@command -v golangci-lint >/dev/null || PATH="$$($(GO) env GOPATH)/bin:$$PATH" command -v golangci-lint >/dev/null || \
	  { echo "golangci-lint is missing: $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT)"; exit 1; }
	PATH="$$($(GO) env GOPATH)/bin:$$PATH" golangci-lint run

fmt: ## format all Go code
	gofmt -w .

clean: ## remove what the targets made
	rm -rf $(BIN)
