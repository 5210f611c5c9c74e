package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"triax/checkpoint/safetensors"
	"triax/nn"
	"triax/tensor/alloctest"
)

// TestStretch: whatever a parameter's cut, its stretches have the elements of the whole one, each once.
func TestStretch(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	for range 2000 {
		shape := make([]int, 1+rng.IntN(3))
		for i := range shape {
			shape[i] = 1 + rng.IntN(5)
		}
		dim := rng.IntN(len(shape))
		ranks, pieces := 1+rng.IntN(4), 1+rng.IntN(3)
		n := elements(shape)
		seen := make([]int, n)
		for r := range ranks {
			per := (shape[dim] + ranks - 1) / ranks // padded where it does not come out even
			p := &nn.Param{Name: "p", Shape: shape, Dim: dim, Lo: min(shape[dim], r*per), Hi: min(shape[dim], (r+1)*per), Local: append([]int{}, shape...)}
			p.Local[dim] = per
			if dim > 0 && p.Hi-p.Lo != per {
				continue // only rows are padded
			}
			for i := range pieces {
				s := StretchOf(p, p.Len()*i/pieces, p.Len()*(i+1)/pieces)
				if s.Len() == 0 {
					continue
				}
				if err := s.check(); err != nil {
					t.Fatal(err)
				}
				first := rng.IntN(n)
				part := 1 + rng.IntN(n-first)
				s.overlap(first, part, func(from, to, length int) {
					for k := range length {
						if p.Logical(localOf(p, s.From+from+k)) != first+to+k {
							t.Fatalf("%+v: element %d is not %d", s, from+k, first+to+k)
						}
					}
				})
				s.overlap(0, n, func(_, to, length int) {
					for k := range length {
						seen[to+k]++
					}
				})
			}
		}
		for i, x := range seen {
			if x > 1 || x == 0 && (dim == 0 || shape[dim]%ranks == 0) {
				t.Fatalf("shape %v, dim %d over %d ranks: element %d is in %d stretches", shape, dim, ranks, i, x)
			}
		}
	}
}

// localOf is where the held element u lies in local memory.
func localOf(p *nn.Param, u int) int {
	for i := range p.Len() {
		if p.Logical(i) >= 0 && held(p, i) == u {
			return i
		}
	}
	return -1
}

// written makes a checkpoint of two ranks in dir, with one weight [4 3] and one state.
func written(t testing.TB, dir string, step int) string {
	t.Helper()
	partial := Partial(dir, step, "x")
	for rank := range 2 {
		s := Stretch{Name: "w", Shape: []int{4, 3}, Dim: 0, Lo: 2 * rank, Hi: 2*rank + 2, From: 0, To: 6}
		raw := make([]byte, 6*4)
		safetensors.F32.Put(raw, []float64{float64(step), float64(rank), 2, 3, 4, 5})
		if err := WriteRank(partial, rank, []Blob{{Weight, s, safetensors.F32, raw}, {"momentum", s, safetensors.F32, raw}}); err != nil {
			t.Fatal(err)
		}
	}
	path, err := Finish(context.Background(), dir, partial, 2, Meta{Step: step, States: []string{"momentum"}})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestBroken: whatever is done to the newest checkpoint, it is refused by name and the one before is used.
func TestBroken(t *testing.T) {
	change := func(file string, f func(b []byte) []byte) func(dir string) error {
		return func(dir string) error {
			path := filepath.Join(dir, file)
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, f(b), 0o644)
		}
	}
	flip := func(at float64) func([]byte) []byte {
		return func(b []byte) []byte { b[int(at*float64(len(b)-1))] ^= 4; return b }
	}
	cut := func(b []byte) []byte { return b[:len(b)*2/3] }
	cases := map[string]func(dir string) error{
		"index cut off": change(indexFile, cut), "index empty": change(indexFile, func([]byte) []byte { return nil }),
		"index of another format": change(indexFile, func([]byte) []byte { return []byte(`{"format": "other", "version": 1, "index": {}}`) }),
		"index of another version": change(indexFile, func(b []byte) []byte {
			return []byte(strings.Replace(string(b), `"version":1`, `"version":2`, 1))
		}),
		"no index":     func(dir string) error { return os.Remove(filepath.Join(dir, indexFile)) },
		"no file":      func(dir string) error { return os.Remove(filepath.Join(dir, "rank-00001.safetensors")) },
		"file cut off": change("rank-00000.safetensors", cut), "last byte changed": change("rank-00001.safetensors", flip(1)), "file's length changed": change("rank-00001.safetensors", flip(0)),
		"file of another checkpoint": func(dir string) error {
			b, err := os.ReadFile(filepath.Join(filepath.Dir(dir), stepName(1), "rank-00000.safetensors"))
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, "rank-00000.safetensors"), b, 0o644)
		},
	}
	for i := range 20 {
		cases[fmt.Sprintf("index bit %d", i)] = change(indexFile, flip(float64(i)/20))
		cases[fmt.Sprintf("data bit %d", i)] = change("rank-00000.safetensors", flip(float64(i)/20))
	}
	for name, harm := range cases {
		dir := t.TempDir()
		written(t, dir, 1)
		newest := written(t, dir, 2)
		if err := harm(newest); err != nil {
			t.Fatal(err)
		}
		c, refused, err := Latest(context.Background(), dir)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		// A header's spaces and a name in it can change and still say the same.
		if c.Step == 2 && !strings.HasPrefix(name, "data bit") || c.Step == 1 && (len(refused) != 1 || !strings.Contains(refused[0].Error(), newest)) {
			t.Errorf("%s: step %d, refused %v", name, c.Step, refused)
		}
		c.Close()
		if err := harm(filepath.Join(dir, stepName(1))); err == nil && c.Step == 1 && name != "file of another checkpoint" {
			if _, _, err := Latest(context.Background(), dir); err == nil || !strings.Contains(err.Error(), stepName(1)) || !strings.Contains(err.Error(), stepName(2)) {
				t.Errorf("%s of both: %v", name, err)
			}
		}
	}
}

// TestIncomplete: a checkpoint whose ranks have not all written is none, and is swept.
func TestIncomplete(t *testing.T) {
	dir := t.TempDir()
	written(t, dir, 1)
	partial := Partial(dir, 2, "x")
	if err := WriteRank(partial, 1, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := Finish(ctx, dir, partial, 2, Meta{Step: 2}); err == nil || !strings.Contains(err.Error(), "rank 0") {
		t.Errorf("%v", err)
	}
	if c, _, err := Latest(context.Background(), dir); err != nil || c.Step != 1 {
		t.Errorf("%v", err)
	}
	if err := Sweep(dir); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v %v", left, err)
	}
}

// TestPrune: the newest are kept, also where steps grow beyond the digits of a name.
func TestPrune(t *testing.T) {
	dir := t.TempDir()
	for _, step := range []int{5, 10, 999_999_999, 1_000_000_000} {
		written(t, dir, step)
	}
	if err := Prune(dir, 2); err != nil {
		t.Fatal(err)
	}
	list, err := List(dir)
	if err != nil || len(list) != 2 || filepath.Base(list[0]) != "step-1000000000" || filepath.Base(list[1]) != "step-999999999" {
		t.Errorf("%v %v", list, err)
	}
}

// TestReport: shapes and norms of what was written.
func TestReport(t *testing.T) {
	c, err := Open(written(t, t.TempDir(), 3))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := c.Report()
	if len(r.Tensors) != 1 || r.Tensors[0].Pieces != 2 || r.Bytes != 96 || fmt.Sprintf("%.4f", r.Tensors[0].Norms["momentum"]) != "11.2694" {
		t.Errorf("%+v", r)
	}
	if !strings.Contains(r.String(), "F32[4 3]") {
		t.Error(r)
	}
}

// FuzzIndex: any text is an index whose stretches are sound, or is refused. Its seal, a checksum, is tried too.
func FuzzIndex(f *testing.F) {
	dir := f.TempDir()
	x, err := readIndex(written(f, dir, 1))
	if err != nil {
		f.Fatal(err)
	}
	text, err := json.Marshal(x)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := decodeIndex(text); err == nil {
			t.Fatal("an index without a seal was believed")
		}
		var x index
		var err error
		alloctest.Linear(t, len(text), func() { err = errors.Join(json.Unmarshal(text, &x), x.check()) })
		if err != nil {
			return
		}
		for _, e := range x.Entries {
			n := elements(e.Shape)
			if n > 1<<20 {
				continue
			}
			e.overlap(0, n, func(from, to, length int) {
				if from < 0 || from+length > e.Len() || to < 0 || to+length > n {
					t.Fatalf("%+v: %d %d %d", e, from, to, length)
				}
			})
		}
	})
}

// TestCutOffWhileOpen: a file that loses its end after it was opened is an error of the reader, not the end of the process.
func TestCutOffWhileOpen(t *testing.T) {
	dir := t.TempDir()
	partial := Partial(dir, 1, "x")
	s := Stretch{Name: "w", Shape: []int{1 << 16}, Hi: 1 << 16, To: 1 << 16}
	if err := WriteRank(partial, 0, []Blob{{Weight, s, safetensors.F32, make([]byte, 4<<16)}}); err != nil {
		t.Fatal(err)
	}
	path, err := Finish(context.Background(), dir, partial, 1, Meta{Step: 1})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := os.Truncate(filepath.Join(path, "rank-00000.safetensors"), 8192); err != nil {
		t.Fatal(err)
	}
	if err := c.Verify(context.Background()); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("%v", err)
	}
	if err := c.Source(Weight).Values(make([]float64, 4), &nn.Param{Name: "w", Shape: []int{1 << 16}}, 60000); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("%v", err)
	}
}

// TestB62ShapesMustFit: a parameter of another shape, or one that is not there, is refused, also where the elements asked for would be there.
func TestB62ShapesMustFit(t *testing.T) {
	c, err := Open(written(t, t.TempDir(), 1))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, x := range []struct {
		kind, name string
		shape      []int
		want       string
	}{
		{Weight, "w", []int{3, 4}, "the model wants [3 4]"}, {Weight, "w", []int{5, 3}, "shape [4 3]"}, {Weight, "w", []int{12}, "shape [4 3]"},
		{Weight, "v", []int{4, 3}, "has no weight of v"}, {"exp_avg", "w", []int{4, 3}, "has no exp_avg of w"},
	} {
		if err := c.Source(x.kind).Values(make([]float64, 2), &nn.Param{Name: x.name, Shape: x.shape}, 0); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v %v: %v", x.name, x.shape, err)
		}
	}
}

// TestSetAside: checkpoints after a step make way for those that are made again, and nothing is lost.
func TestSetAside(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		for _, step := range []int{1, 2, 3} {
			written(t, dir, step)
		}
		if err := SetAside(dir, 2); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != "step-000000001 step-000000002 superseded-step-000000003 superseded-step-000000003-2" {
		t.Error(got)
	}
}
