# Two targets matter: `make run` trains, `make test` proves.
GO ?= go

# The header of NVIDIA's management library marks much of itself as old; the warnings would hide others.
export CGO_CFLAGS ?= -O2 -g -Wno-deprecated-declarations

.PHONY: cuda-kernels build run test race lint manifests golden bench cover fuzz nightly cuda-check cuda-check-build

build:
	$(GO) build -o bin/triax ./cmd/triax

run: build
	./bin/triax train configs/tiny.toml

test:
	$(GO) test ./...

# The packages where ranks meet, under the race detector.
race:
	$(GO) test -race -short ./comm/... ./cp/... ./pp/... ./zero/... ./tp/... ./train/...

lint:
	@out=$$(gofmt -l .); if [ -n "$$out" ]; then echo "not gofmt-clean:"; echo "$$out"; exit 1; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

# The files of deploy/, against the types of the systems that read them.
manifests:
	cd tools/manifests && $(GO) vet ./... && $(GO) test ./...

# Rewrites the drawings of all schedules.
golden:
	$(GO) test ./schedule -update

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./cpu ./comm/... ./schedule

cover:
	$(GO) test -short -cover ./...

fuzz:
	$(GO) test -run xxx -fuzz FuzzConfig -fuzztime 30s -fuzzminimizetime 1x ./hf
	$(GO) test -run xxx -fuzz FuzzIndex -fuzztime 30s -fuzzminimizetime 1x ./hf
	$(GO) test -run xxx -fuzz FuzzFolder -fuzztime 30s -fuzzminimizetime 1x ./hf
	$(GO) test -run xxx -fuzz FuzzTokenizerJSON -fuzztime 30s -fuzzminimizetime 1x ./tokenizer
	$(GO) test -run xxx -fuzz FuzzText -fuzztime 30s ./tokenizer
	$(GO) test -fuzz FuzzParse -fuzztime 30s ./configs
	$(GO) test -fuzz FuzzParse -fuzztime 30s ./schedule
	$(GO) test -fuzz FuzzIndex -fuzztime 30s ./checkpoint
	$(GO) test -fuzz FuzzOpen -fuzztime 30s ./checkpoint/safetensors
	$(GO) test -fuzz FuzzJSONL -fuzztime 30s ./data
	$(GO) test -fuzz FuzzImport -fuzztime 30s ./dialect
	$(GO) test -run xxx -fuzz FuzzTrace -fuzztime 30s ./report
	$(GO) test -run xxx -fuzz FuzzMetrics -fuzztime 30s ./report

# Proves and measures the NVIDIA device, in eight minutes; without one it says so and stops with an error. What it builds needs no Go where it runs: carry the
# tree and start bin/cuda-check in it.
cuda-check: cuda-check-build
	./bin/cuda-check

cuda-check-build:
	$(GO) build -o bin/cuda-check ./cmd/cuda-check
	$(GO) test -c -o bin/tests/cuda.test ./cuda
	$(GO) test -c -o bin/tests/train.test ./train

# A thousand random meshes.
nightly:
	TRIAX_KILLS=50 $(GO) test -timeout 20m -run TestKilled -v ./cmd/triax
	TRIAX_MESHES=1000 $(GO) test -timeout 2h -run TestRandomMeshes -v ./train

# Every kernel under NVIDIA's own compiler, oldest and newest that can be had; no GPU is needed. The table is the newest one's.
cuda-kernels: build
	@libs=$$(tools/nvrtc/get.sh bin/nvrtc); newest=; \
	for lib in $$libs; do \
	  newest=$$lib; \
	  LD_LIBRARY_PATH=$$(dirname $$lib) TRIAX_LIBNVRTC=$$lib $(GO) test -count=1 ./cuda/cubin || exit 1; \
	done; \
	if [ -z "$$newest" ]; then echo "SKIPPED: kernels are not held against NVIDIA's compiler: it cannot be had here"; exit 0; fi; \
	LD_LIBRARY_PATH=$$(dirname $$newest) TRIAX_LIBNVRTC=$$newest ./bin/triax doctor --kernels sm_80,sm_90
