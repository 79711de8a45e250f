# Flotilla. `make help` lists the targets.

GO ?= go
# What is linked with C cannot say how exact its timers have to be (internal/timerslack),
# and runs in no image without its libraries.
export CGO_ENABLED ?= 0
# Compilers and linkers collect their garbage a quarter as often, and take a sixth less
# time. What they build does not, and what is cached is the same. What only a debugger reads
# is left out, which takes a seventh of the time of a compiler: a program for one is built
# by `go build ./cmd/...`.
export GOFLAGS := $(GOFLAGS) -gcflags=all=-dwarf=false '-toolexec=env GOGC=400'
KUBERNETES_VERSION := v1.36.4
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)

BASE := k8s.io/component-base/version
LDFLAGS := -X $(BASE).gitVersion=$(KUBERNETES_VERSION) -X $(BASE).gitMajor=1 -X $(BASE).gitMinor=36 -X main.version=$(VERSION)
TOOL := $(GO) tool -modfile=hack/tools.mod

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build the programs into bin/
	@mkdir -p bin
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...
	@ln -sf flotilla bin/kubectl-flotilla
	@ln -sf flotilla bin/kubectl_complete-flotilla

.PHONY: demo
demo: build ## run a fleet of three clusters on this machine; DEMO_EXIT=1 ends by itself
	bin/flotilla demo $(if $(DEMO_EXIT),--exit)

.PHONY: test
test: tools-debian build ## run the whole test suite
	hack/test.sh

.PHONY: test-short
test-short: ## run the tests but those of the whole system
	$(GO) test -short ./...

.PHONY: race
race: ## run the tests of what has goroutines under the race detector; SERVERS=no: but those that compile an API server
	hack/race.sh $(if $(filter no,$(SERVERS)),--no-servers)

.PHONY: vulncheck
vulncheck: build ## look for known vulnerabilities in the programs; fail on those not excepted
	hack/vulncheck.sh

.PHONY: bench
bench: build ## measure speed, writes and memory; prints a table, writes bench/out
	$(GO) run ./bench

.PHONY: chaos
chaos: build ## kill, stop and cut off parts of two fleets FAULTS (200) times each, and judge what came of it
	$(GO) test -count=1 -v -timeout 3h ./e2e/chaos -faults $(or $(FAULTS),200) -still 60s $(if $(SEED),-seed $(SEED))

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (30s)
	hack/fuzz.sh $(or $(FUZZTIME),30s)

.PHONY: generate
generate: ## write deep copies, OpenAPI definitions, CRDs, protobuf code and docs/flags.md anew
	hack/generate.sh

.PHONY: verify
verify: ## fail if generated files or formatting are stale, or modules are not what go.sum says
	hack/verify.sh

.PHONY: fmt
fmt: ## format the Go files
	gofmt -w $$(git ls-files '*.go')

.PHONY: lint
lint: ## run the linters of .golangci.yaml
	$(GO) tool -modfile=hack/lint.mod golangci-lint run ./...

.PHONY: tools-debian
tools-debian:
	hack/debian.sh openssh-server docker-registry

.PHONY: clean
clean: ## remove what was built
	rm -rf bin bench/out
