package train

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"triax/configs"
	"triax/schedule"
)

// TestScheduleFromFile: a schedule written as text runs like any other; one that could hang, or is for another mesh, is refused with its reasons.
func TestScheduleFromFile(t *testing.T) {
	s, err := schedule.New("zb-v", 2, 4, 0)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "own.txt")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	c := base()
	c.Mesh.PP, c.Mesh.DP, c.Pipeline.Microbatches, c.Zero.Stage, c.Model.Tied = 2, 3, 4, 2, true
	c.Train.Batch = 36
	c.Pipeline.File = write("# my own\n" + s.Text())
	corpus := letters(t, 17, gridTokens)
	got, _ := cutRun(t, c, corpus)
	if d := compare(got, uncut(t, c, corpus)); d.relative > equalTo {
		t.Errorf("relative difference %.3g at %s", d.relative, d.where)
	}
	for name, bad := range map[string]struct {
		text, want string
		pp         int
	}{
		"another mesh":   {s.Text(), "mesh.pp = 3", 3},
		"an op missing":  {strings.Replace(s.Text(), " 0F1", "", 1), "0F1", 2},
		"not a schedule": {"hello", "schedule", 2},
	} {
		b := *c
		b.Mesh.PP, b.Pipeline.File = bad.pp, write(bad.text)
		if _, err := configs.Schedule(&b); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
