# Two targets matter: `make run` trains, `make test` proves.
GO ?= go

.PHONY: build run test race lint golden bench fuzz ci

build:
	$(GO) build -o bin/triax ./cmd/triax

run: build
	./bin/triax train configs/tiny.toml

test:
	$(GO) test ./...

race:
	$(GO) test -race -short ./comm/... ./pp/... ./zero/... ./tp/... ./train/...

lint:
	@out=$$(gofmt -l .); if [ -n "$$out" ]; then echo "not gofmt-clean:"; echo "$$out"; exit 1; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

golden:
	$(GO) test ./schedule -update

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./cpu ./comm/... ./train
