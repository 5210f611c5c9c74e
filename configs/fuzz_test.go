package configs

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// literal writes a value as TOML.
func literal(v any) string {
	switch x := v.(type) {
	case []string:
		var parts []string
		for _, s := range x {
			parts = append(parts, fmt.Sprintf("%q", s))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case []float64, []int:
		return strings.ReplaceAll(fmt.Sprint(x), " ", ", ")
	}
	if f, ok := v.(interface{ String() string }); ok {
		return f.String()
	}
	return fmt.Sprint(v)
}

// A file either loads, and then survives being written and read again, or all that is wrong comes as Problems.
func FuzzParse(f *testing.F) {
	f.Add("[model]\nlayers = 3\n[optim]\nbetas = [0.9, 0.99]\n", "mesh.tp=2")
	f.Add("[[model]]\nx.y = 1\n", "data.source=[a, \"b\"]")
	f.Add("model = {layers = 2, heads = nan}", "=")
	f.Add("[cluster.node]\ntime = 2026-01-01T00:00:00Z", "pipeline.layers=,,")
	f.Fuzz(func(t *testing.T, text, override string) {
		c, err := Parse([]byte(text), []string{override})
		var ps Problems
		if err != nil {
			if !errors.As(err, &ps) || len(ps) == 0 || len(ps.Error()) > 200*(len(text)+len(override)+200) {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		c.Cluster = nil
		r := Resolved(c)
		out, err := r.TOML()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Parse(out, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if d := cmp.Diff(r, back); d != "" {
			t.Fatal(d)
		}
	})
}
