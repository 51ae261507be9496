# Everything that a developer or CI types. `make` prints this help.
SHELL := /bin/bash
.DEFAULT_GOAL := help
VERSION := $(shell sed -n 's/^const thisRelease = "\(.*\)"/\1/p' internal/cli/version.go)
BUILD := CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -funcalign=16'
PREFIX ?= /usr/local
DESTDIR ?=
FOR ?= 6m
FUZZTIME ?= 10s
GOLANGCI := golangci-lint
GOLANGCI_VERSION := v2.15.0

.PHONY: help
help: ## print this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/trimtab and bin/trimtab-lab, static binaries
	$(BUILD) -o bin/ ./cmd/trimtab ./cmd/trimtab-lab

.PHONY: install
install: build ## install it below PREFIX (/usr/local): binary, units, manual, completion, docs, boards (DESTDIR stands before)
	PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' ./deploy/install.sh install bin/trimtab

.PHONY: uninstall
uninstall: ## remove what `make install` installed; data and configuration stay
	PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' ./deploy/install.sh uninstall

.PHONY: demo
demo: build ## build and run the main job: three real services under real load (FOR=6m)
	./bin/trimtab demo --for $(FOR)

# Nobody looks at tests with a debugger: without tables for it the compiler takes an
# eighth less, and the linker a third. In lint and integration, too, so that they find in the build cache what
# the tests have compiled.
PLAIN := -gcflags=all=-dwarf=false -ldflags=-s

# Tests draw the same cases in each run, so that what is red is red again; `make torture` and
# `make test TEST_SEED= RAPID_SEED=0` draw others.
test integration demo-short guest-short kube: export TEST_SEED ?= 1
test integration demo-short guest-short kube: export RAPID_SEED ?= 1

.PHONY: test
# With an empty build cache most CPU goes into the compiler, an eighth of that into its
# collections of garbage, which GOGC makes rare; the tests themselves run without it.
# go vet is a part of `make lint`, with all its checks: here it would be 40 s of
# CPU more with an empty build cache. Many tests wait for real time: others are compiled and
# run meanwhile, eight packages at a time, and those that wait longest begin first.
test: ## run the tests: embedded parts only, under 5 minutes
	GOGC=400 go test $(PLAIN) -exec 'env -u GOGC' -p 8 -count=1 -vet=off -timeout 20m $(LONGEST) ./...

# The packages whose tests take longest, which is mostly time that they wait.
LONGEST := ./internal/site ./cmd/trimtab ./actuator/kubernetes ./bus/natsbus ./actuator/task ./cmd/trimtab-lab

# axe-core, with which a test looks at the pages of the console.
AXE := $(HOME)/.cache/trimtab-axe/axe.min.js
.PHONY: axe
axe: $(AXE) ## axe-core in ~/.cache/trimtab-axe, with npm: what it finds on the console's pages fails `make integration`
$(AXE):
	mkdir -p $(@D)
	cd $(@D) && npm pack --silent axe-core@4.10.3 && echo '5e6edba515e70d25f6604d9815f064d859c5d1ea7ab661bbc4f87c88779ef0c21cae0abbeb636471ef39e9d62d2582e4b88a1866f19f4ecfcf6d986275e4dc12  axe-core-4.10.3.tgz' | sha512sum -c --quiet && tar xzf axe-core-4.10.3.tgz --strip-components=1 package/axe.min.js && rm axe-core-4.10.3.tgz && touch axe.min.js

.PHONY: interop-core
interop-core: ## the real senders that `make integration` tries, in ~/.cache/trimtab-interop, from npm and the module proxy
	go run $(PLAIN) ./lab/bench/interop --core --install

.PHONY: interop
interop: build ## every real sender beside trimtab: prints docs/interop.md (20 minutes of two cores the first time, then 8)
	go run ./lab/bench/interop -o docs/interop.md

.PHONY: integration
integration: build ## race detector, a nats-server, a Prometheus and real senders of spans as processes of their own, non-root paths
	-@$(MAKE) -s axe
	-@$(MAKE) -s interop-core
	go test $(PLAIN) -count=1 -race -p 4 -timeout 20m $(RACE_PACKAGES)
	go test $(PLAIN) -count=1 -race -timeout 20m -run 'Loop|Recommend|Pause|Reload|Alert|Hostile|Burst' ./cmd/trimtab
	go test $(PLAIN) -count=1 -race -tags integration -timeout 20m -run TestTheConsoleInABrowser ./console
	go test $(PLAIN) -count=1 -tags integration -p 4 -timeout 20m -skip TestTheConsoleInABrowser ./sim/kubernetes $(INTEGRATION_PACKAGES)
	go test $(PLAIN) -count=1 -tags integration -timeout 30m -run '$(INTEGRATION_OF_CMD)' -skip 'TestTheDemo|$(KUBE_OF_CMD)' ./cmd/trimtab
	go test $(PLAIN) -count=1 -tags integration -timeout 20m -run 'OverMoreSeeds|OnRecordedUsage' ./cmd/trimtab-lab
	GOFLAGS="$$GOFLAGS $(PLAIN)" ./deploy/unprivileged.sh ./actuator/... ./collector/cgroup/... ./internal/hostfs/...

# The packages that share memory between goroutines.
RACE_PACKAGES := ./bus/... ./pipeline/... ./collector/... ./actuator/... ./console/... ./exporters/... ./agent/... ./gate ./internal/supervise ./internal/batch ./internal/site ./internal/client
# Below these directories, the packages that have tests or cases which neither `make test` nor
# `make kube` has. Many wait, so that four are tried at a time; the longest one comes first.
INTEGRATION_BELOW := deploy console gate bus agent/grow collector analyzer actuator planner internal/hostfs internal/e2e internal/trial dashboards lab/cilantro lab/microservices sim/kubernetes lab/bench/real lab/bench/interop
INTEGRATION_PACKAGES = $(filter-out ./actuator/kubernetes,$(shell grep -rlE --include=*.go '^//go:build integration|trial[.](Some|Main)' $(INTEGRATION_BELOW) | xargs -n1 dirname | sort -u | sed 's|^|./|'))
# The others of cmd/trimtab need no tag, and ran in `make test`; those that ask trial.Some
# for their number of cases tried a part of them there.
INTEGRATION_OF_CMD = $(shell (grep -ho '^func Test[A-Za-z0-9]*' cmd/trimtab/*_integration_test.go; grep -h -B9 'trial[.]Some' cmd/trimtab/*_test.go | grep -o '^func Test[A-Za-z0-9]*') | cut -c6- | paste -sd '|')

# The tests of cmd/trimtab that need Kubernetes, which `make kube` runs.
KUBE_OF_CMD := TheChart|TheKustomizeFiles|RealAPIServer

.PHONY: kube-tools
kube-tools: ## Kubernetes as one binary, helm, kwok, etcd and a scaler of KEDA, in ~/.cache/trimtab-kube (once for each version: 9 minutes of two cores)
	./internal/tools/keda/build.sh "$$(./internal/tools/kube/build.sh)"

.PHONY: kube
kube: kube-tools ## the tests against a real API server, controller manager and etcd, and those of the chart
	go test $(PLAIN) -count=1 -tags integration -timeout 20m -run 'Real' -skip 'ARealKubelet' ./actuator/kubernetes ./exporters/keda ./internal/kube/... ./internal/site
	go test $(PLAIN) -count=1 -tags integration -timeout 20m -run '$(KUBE_OF_CMD)' ./cmd/trimtab

.PHONY: kubelet
kubelet: kube-tools ## what only a real node shows: a kubelet and containerd on this host, as root, below a cgroup of their own
	go test $(PLAIN) -count=1 -tags integration -timeout 10m -v -p 1 -run 'ARealKubelet' ./actuator/kubernetes ./internal/site

.PHONY: controllers
controllers: ## the autoscalers of Kubernetes themselves, on the tables that tests hold trimtab's replay against (the first time 5 minutes of two cores; CONTROLLERS=-update writes the tables)
	go -C internal/tools/kube test -count=1 ./hpa $(CONTROLLERS)
	go -C internal/tools/vpa test -count=1 . $(CONTROLLERS)

.PHONY: guest
guest: ## the tests of cgroups and systemd, and the demo, in a virtual machine with Debian's kernel
	./deploy/guest-tests.sh

.PHONY: guest-short
guest-short: ## the part of it without watchdogs and demo
	./deploy/guest-tests.sh short

.PHONY: demo-short
demo-short: ## two short headless demos, with cgroups and without root, whose reports are checked
	go test $(PLAIN) -count=1 -tags integration -run TestTheDemo -v ./cmd/trimtab

.PHONY: bench
bench: build ## every figure: ingestion, how often bands hold, reaction, planning, idle, what many workloads and hosts cost
	go run ./lab/bench/ingest
	bin/trimtab-lab sim services --coverage --seeds 10 --seconds 300 --policy njc --scenario peaks --pool 2
	bin/trimtab-lab sim services --coverage --seeds 10 --seconds 300 --policy njc --scenario tight,unequal,culprit,over132
	bin/trimtab-lab sim services --coverage --seeds 10 --seconds 300 --policy njc:always --scenario peaks
	for n in 10000 100000 1000000; do bin/trimtab-lab bench drf --tenants $$n --resources $$n || exit 1; done
	bin/trimtab-lab bench drf --tenants 100000 --resources 10000
	bin/trimtab-lab bench drf --tenants 1000000 --resources 100000 --deadline-part 0.1
	-bin/trimtab-lab bench drf --tenants 10000000 --resources 1000000 --repeat 2
	for n in 1000 10000 15000 100000 1000000; do GOMAXPROCS=1 bin/trimtab-lab bench machines --machines $$n || exit 1; done
	go test -run '^$$' -bench 'AlertToLimit|Idle' -benchtime 1x ./cmd/trimtab
	go run ./lab/bench/small --groups 100 --round 1s --spans 600 --for 3m
	go run ./lab/bench/small --groups 2000 --round 30s --spans 600 --for 1m
	go run ./lab/bench/fleet --agents 100,300 --workloads 1000,3000
	go run ./lab/bench/fleet --agents 2 --workloads 2 --cgroups 100 --report 1s --leaves 0 --for 3m
	go run ./lab/bench/fleet --agents 2 --workloads 2 --cgroups 100 --jobs 50 --report 1s --leaves 0 --for 3m
	go test -run '^$$' -bench Help -benchtime 20x ./cmd/trimtab
	go test -run '^$$' -bench Explain -benchtime 40x ./cmd/trimtab
	go test -run '^$$' -bench "Answers|Fleet" -benchtime 40x ./console
	PAGES=all go test -count=1 -tags integration -run TestEveryPageOfAThousandWorkloads -v ./console
	go test -run '^$$' -bench 'Solve|Growth|Hosts|AlertToPlan' -benchtime 3x ./planner
	go test -run '^$$' -bench . -benchtime 2000x ./analyzer/learn/... ./analyzer/forecast/...
	GOMAXPROCS=1 go test -run '^$$' -bench Contributions -benchtime 1x ./analyzer/contribution
	go test -run '^$$' -bench Decide -benchtime 2000x ./planner/colocate
	go test -run '^$$' -bench . -benchtime 300ms ./analyzer/path ./collector/otlp ./bus/natsbus

.PHONY: bench-kubernetes
bench-kubernetes: kube-tools ## what trimtab costs beside a real API server with up to 10,000 pods whose kubelets kwok plays (25 minutes; TRIMTAB_CROWD=NODESxWORKLOADSxPODS for one size)
	go test $(PLAIN) -count=1 -tags integration -run '^$$' -bench Crowd -benchtime 1x -timeout 60m ./lab/bench/kubernetes

.PHONY: bench-real
bench-real: ## trimtab's defaults on real nginx, redis and PostgreSQL (REAL="--minutes 3 --scenario peaks")
	go run ./lab/bench/real $(REAL)

.PHONY: bench-real-short
bench-real-short: ## half a minute of it, as a test of structure and safety
	go test $(PLAIN) -count=1 -tags integration -run TestAShortRunIsSafe -v ./lab/bench/real

.PHONY: bench-fast
bench-fast: ## the fast loop on real nginx, redis and PostgreSQL whose load is three times as high for 2 s, beside rules for quotas (FAST="--minutes 10")
	go run ./lab/bench/real --fast --pool 1.2 --cost 4ms $(FAST)

.PHONY: bench-overload
bench-overload: ## what is answered in time at 0.8 to 3 times the capacity of nginx, Node.js and PostgreSQL, behind each limiter (OVERLOAD="--service node --load 2"; needs apt-get install nginx-light nodejs postgresql pgbouncer haproxy)
	go run ./lab/bench/overload $(OVERLOAD)

.PHONY: bench-runtimes
bench-runtimes: ## what a JVM and a Go service lose when their memory limit falls by 30% in 100 cycles and their runtime is told (RUNTIMES="--cycles 20"; needs root and apt-get install openjdk-17-jdk-headless)
	go run ./lab/bench/runtimes $(RUNTIMES)

.PHONY: bench-memory
bench-memory: ## what memory limits by an operator, a rule of thumb, VPA and trimtab give real PostgreSQL, redis, JVM, Go and Node.js, and what that costs (MEMORY="--trials 200"; needs apt-get install postgresql redis-server openjdk-17-jdk-headless nodejs)
	go run ./lab/bench/memory $(MEMORY)

.PHONY: bench-colocate
bench-colocate: ## best-effort jobs beside real nginx and redis under a recorded load, for each controller (COLOCATE="--seconds 150 --repeat 2"; needs root or a delegated cgroup and apt-get install nginx-light redis-server stress-ng)
	go run ./lab/bench/colocate $(COLOCATE)

.PHONY: torture
torture: ## every promise of reliability and security in full size, hours (TORTURE="--only R2,R7 --scale 0.01 --seed 5")
	go run ./lab/torture $(TORTURE)

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (10s)
	@grep -rl --include='*_test.go' 'func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do \
	  for target in $$(grep -ho 'func Fuzz[A-Za-z0-9]*' $$dir/*_test.go | cut -c6- | sort -u); do \
	    echo "== $$dir $$target"; go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$dir || exit 1; done; done

.PHONY: linter
linter: ## golangci-lint, in bin where none is installed (4 minutes of two cores)
	@command -v $(GOLANGCI) >/dev/null || test -x bin/golangci-lint || GOGC=400 GOBIN=$(CURDIR)/bin go install $(PLAIN) github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)

.PHONY: lint
lint: linter ## gofmt, go vet, golangci-lint
	@files="$$(gofmt -l .)"; test -z "$$files" || { echo "not formatted: $$files"; exit 1; }
	go vet $(PLAIN) ./...
	go vet $(PLAIN) -tags integration ./...
	GOFLAGS="$$GOFLAGS $(PLAIN)" PATH="$(CURDIR)/bin:$$PATH" $(GOLANGCI) run --allow-parallel-runners ./...

.PHONY: generate
generate: ## rewrite what is printed from the code: schemas, docs, tables, dashboards, rules
	go test . ./internal/schema ./internal/metric ./agent/knobs ./bus/natsbus ./dashboards ./config ./cmd/trimtab -run 'Committed|Page|Printed|Docs|Table' -update

.PHONY: package
package: build ## dist/trimtab-VERSION-linux-ARCH.tar.gz: binary, units, completion, man page, examples
	./deploy/package.sh bin/trimtab '$(VERSION)' dist

.PHONY: deb
deb: ## dist/trimtab_VERSION_ARCH.deb for Debian 12 and later, amd64 and arm64
	./deploy/release.sh '$(VERSION)' dist deb

.PHONY: image
image: ## dist/trimtab_VERSION.oci.tar: a container image from scratch, amd64 and arm64
	./deploy/release.sh '$(VERSION)' dist image

.PHONY: release
release: ## all packages in dist, with SBOM, release notes and checksums
	./deploy/release.sh '$(VERSION)' dist

.PHONY: reproducible
reproducible: ## make the release twice, at two places with empty build caches, and compare the bytes
	./deploy/reproducible.sh '$(VERSION)'

.PHONY: clean
clean: ## remove what was built
	rm -rf bin dist
