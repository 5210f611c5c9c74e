package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReport: a page and its pictures of plans; what cannot be drawn writes nothing.
func TestReport(t *testing.T) {
	dir := t.TempDir()
	page, pictures := filepath.Join(dir, "r.html"), filepath.Join(dir, "pictures")
	out, code := call(t, "report", "base=../../configs/pp.toml", "../../configs/zero3.toml", "-o", page, "--png", pictures, "--search", "5s")
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	text, err := os.ReadFile(page)
	if err != nil || strings.Count(string(text), `class="item"`) != 2 || !strings.Contains(string(text), `data-chart="front"`) {
		t.Errorf("%v: %d items in %d bytes", err, strings.Count(string(text), `class="item"`), len(text))
	}
	files, err := os.ReadDir(pictures)
	if err != nil || len(files) < 10 {
		t.Errorf("%d pictures, %v", len(files), err)
	}
	bad := filepath.Join(dir, "bad.html")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"report", "-o", bad}, "name at least one"},
		{[]string{"report", "../../configs/pp.toml", "--set", "mesh.pp=7", "-o", bad}, "mesh.pp"},
		{[]string{"report", dir, "-o", bad}, "config.toml"},
		{[]string{"serve", "../../configs/pp.toml", "--set", "mesh.pp=7"}, "mesh.pp"},
		{[]string{"serve", "a=../../configs/pp.toml", "b=../../configs/pp.toml", "c=../../configs/pp.toml", "d=../../configs/pp.toml", "e=../../configs/pp.toml"}, "at most four"},
		{[]string{"serve", "--addr", "nowhere"}, "--addr nowhere"},
	} {
		if out, code := call(t, c.args...); code != exitRequest || !strings.Contains(out, c.want) {
			t.Errorf("%v: exit code %d, want %q in\n%s", c.args, code, c.want, out)
		}
	}
	if _, err := os.Stat(bad); err == nil {
		t.Error("a refused request wrote a file")
	}
}
