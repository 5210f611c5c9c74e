package schedule

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden drawings")

// drawings are the golden files: every schedule at one or more sizes.
var drawings = []struct {
	name    string
	p, m, v int
}{
	{"gpipe", 4, 8, 0},
	{"1f1b", 4, 8, 0},
	{"1f1b", 4, 2, 0},
	{"1f1b", 1, 3, 0},
	{"interleaved", 4, 8, 2},
	{"interleaved", 4, 6, 2},
	{"interleaved", 2, 4, 3},
	{"looped-bfs", 4, 8, 2},
	{"zb-h1", 4, 8, 0},
	{"zb-h1", 4, 2, 0},
	{"zb-h2", 4, 8, 0},
	{"zb-v", 4, 8, 0},
	{"v-half", 4, 8, 0},
	{"v-min", 4, 8, 0},
	{"dualpipe-v", 4, 8, 0},
}

// TestDrawings compares every drawing with its file; -update rewrites them.
func TestDrawings(t *testing.T) {
	for _, d := range drawings {
		t.Run(fmt.Sprintf("%s_p%d_m%d_v%d", d.name, d.p, d.m, d.v), func(t *testing.T) {
			s, err := New(d.name, d.p, d.m, d.v)
			if err != nil {
				t.Fatal(err)
			}
			if err := Verify(s); err != nil {
				t.Error(err)
			}
			got, err := Draw(s, Uniform(1, 1, 1))
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", fmt.Sprintf("%s_p%d_m%d_v%d.txt", d.name, d.p, d.m, s.Chunks()))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs; -update rewrites it\ngot:\n%s\nwant:\n%s", file, got, want)
			}
		})
	}
}
