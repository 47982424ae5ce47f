# Each target is one line; what there is to know is in the Go program or script that it runs.
.DEFAULT_GOAL := help
SHELL := /bin/bash
BIN := $(CURDIR)/.bin
PATH := $(BIN)/tools:$(PATH)

.PHONY: help
help: ## Print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the product: .bin/jit-scheduler
	@echo 'compiling jit-scheduler (minutes when the Go cache is cold)' && go build -ldflags='-s -w' -o .bin/jit-scheduler ./cmd/jit-scheduler

.PHONY: kubectl-jit
kubectl-jit: ## Build the kubectl plugin: .bin/kubectl-jit
	go build -ldflags='-s -w' -o .bin/kubectl-jit ./cmd/kubectl-jit

.PHONY: binaries
binaries: ## Build the local control plane from Go modules into .bin (10 to 20 min on 2 cores when cold, then reused)
	go run ./kind-e2e/cmd/binaries

.PHONY: demo
demo: binaries build ## Scale a Deployment 0, 5, 30, 0 on launched machines and print what happened
	go run ./kind-e2e/cmd/demo

.PHONY: test
test: ## Run all tests but e2e; JIT_MOTO=required fails where Python's moto is not there to witness
	go test -timeout 30m ./... && go test -v -run '^TestMoto$$' ./kind-e2e/fakeaws/witness

.PHONY: race
race: ## Run them with the race detector
	go test -race -timeout 60m ./...

.PHONY: lint
lint: .bin/tools/.stamp ## Run golangci-lint (formatting included)
	golangci-lint run ./...

.PHONY: fmt
fmt: .bin/tools/.stamp ## Format all Go files
	golangci-lint fmt ./...

.PHONY: verify
verify: ## Check module sums and that the manifests build
	.ci/verify

.PHONY: bench
bench: .bin/tools/.stamp ## Run the benchmarks and compare with the last run
	.ci/bench

.PHONY: e2e
e2e: binaries build ## Run the end-to-end cases, all or CASE=name (CLUSTER=kind, K8S=1.34)
	go run ./kind-e2e/cmd/e2e $(if $(CASE),-run '^($(CASE))$$')

.PHONY: compare
compare: binaries build ## Run Karpenter and the product on the same work and print both
	go run ./kind-e2e/cmd/binaries karpenter && go run ./kind-e2e/cmd/compare

.PHONY: cluster-up cluster-down
cluster-up: binaries ## Run a local cluster by hand until interrupted
	go run ./kind-e2e/cmd/cluster up
cluster-down: ## End it from another terminal
	go run ./kind-e2e/cmd/cluster down

.PHONY: image
image: ## Build the container image, where Docker is
	@if docker info >/dev/null 2>&1; then docker build -t jit-scheduler:dev .; else echo "image: no Docker daemon answers here, nothing built"; exit 1; fi

.PHONY: clean
clean: ## Remove our binary, logs and state of runs (rm -rf .bin removes the control plane and tools too)
	rm -rf .bin/run .bin/bench .bin/jit-scheduler .bin/kubectl-jit

.bin/tools/.stamp: .ci/tools.mod
	GOBIN=$(BIN)/tools go install -trimpath -ldflags='-s -w' -modfile=.ci/tools.mod tool && touch $@
