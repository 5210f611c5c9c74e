package triax

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// drawing says which rooms of this module each room may import, beside the standard library and kept libraries.
// Tests may import more.
const drawing = `
mesh schedule tensor   :
tokenizer              :
optim                  : tensor
data                   : tensor tokenizer
cpu                    : tensor
comm                   : mesh tensor
comm/local             : comm tensor
comm/mpi               : comm tensor
comm/staged            : comm tensor
comm/nccl              : comm tensor cuda/nccl cuda/driver
comm/commtest          : comm tensor
tensor/devicetest      : tensor
tensor/alloctest       :
launch                 : mesh
nn                     : mesh tensor
tp                     : nn comm mesh tensor
cp                     : nn comm tensor
ep                     : nn comm mesh tensor
pp                     : comm schedule tensor
zero                   : nn comm optim tensor
configs                : mesh schedule nn zero optim data hf
plan                   : configs mesh schedule nn comm tp cp ep pp zero optim tensor
monitor                : train tensor
dialect                : configs nn optim zero
report/reporttest      : plan
report                 : plan schedule mesh comm configs train
serve                  : report plan schedule configs data dialect nn
checkpoint/safetensors :
cuda/driver cuda/kernels :
cuda/emu               : cuda/driver
cuda/nvml cuda/nccl    : cuda/driver
cuda/nccl/fake         :
cuda                   : comm/nccl cuda/driver cuda/kernels tensor
cuda/cubin             : cuda/driver cuda/kernels
checkpoint hf          : checkpoint/safetensors nn tensor
train                  : comm comm/local comm/staged configs cp cpu data ep mesh nn optim pp schedule tensor tp zero checkpoint checkpoint/safetensors hf
`

// open rooms may import anything.
var open = []string{"cmd/", "examples/", "cpu/gen"}

// TestDrawing compares the drawing with the imports.
func TestDrawing(t *testing.T) {
	allowed := map[string][]string{}
	for line := range strings.Lines(strings.TrimSpace(drawing)) {
		left, right, ok := strings.Cut(line, ":")
		if !ok {
			t.Fatalf("drawing: %q", line)
		}
		for _, room := range strings.Fields(left) {
			allowed[room] = strings.Fields(right)
		}
	}
	for _, p := range packages(t) {
		room := strings.TrimPrefix(p.ImportPath, "triax/")
		if room == "triax" || slices.ContainsFunc(open, func(o string) bool { return strings.HasPrefix(room, o) }) {
			continue
		}
		may, known := allowed[room]
		if !known {
			t.Errorf("%s is not in the drawing", room)
		}
		for _, i := range p.Imports {
			if to, ours := strings.CutPrefix(i, "triax/"); ours && !slices.Contains(may, to) {
				t.Errorf("%s imports %s; it may import %v", room, to, may)
			}
		}
	}
}

type goPackage struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) (out []goPackage) {
	t.Helper()
	text, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	d := json.NewDecoder(bufio.NewReader(strings.NewReader(string(text))))
	for {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
}
