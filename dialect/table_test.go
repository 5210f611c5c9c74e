package dialect

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const page = "../docs/dialects.md"

// TestTables: the tables of docs/dialects.md are what the readers say today of the configurations in testdata.
func TestTables(t *testing.T) {
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for _, of := range Systems {
		if text, err = between(text, string(of), table(t, of)); err != nil {
			t.Fatal(err)
		}
	}
	if *update {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if text != string(b) {
		t.Errorf("%s is not what is read today; see the change of go test ./dialect -run Tables -update", page)
	}
}

// table has a row for each configuration: the layout read, what is only near, or why it is refused.
func table(t *testing.T, of System) string {
	var b strings.Builder
	b.WriteString("| configuration | read as | settings | near, or refused |\n|---|---|---|---|\n")
	files, world := cases(t, of)
	for i, f := range files {
		r, err := Import(of, string(f.Data), options(t, of, world[i]))
		if err != nil {
			lines := strings.Split(err.Error(), "\n")
			fmt.Fprintf(&b, "| %s | refused | | %s |\n", f.Name, cell(lines[1:]))
			continue
		}
		var near []string
		for _, n := range r.Differs {
			near = append(near, n.String())
		}
		fmt.Fprintf(&b, "| %s | %s | %d taken, %d without bearing | %s |\n", f.Name, readAs(r), len(r.Taken), len(r.Unused), cell(near))
	}
	return b.String()
}

func readAs(r *Reading) string {
	c := r.Config
	m := c.Mesh
	s := fmt.Sprintf("%s, %d layers, %d wide; %d ranks: tp%d pp%d dp%d", c.Model.Family, c.Model.Layers, c.Model.Width, r.World, m.TP, m.PP, m.DP)
	for _, axis := range []struct {
		name string
		n    int
	}{{"x", m.Replicate}, {" cp", m.CP}, {" ep", m.EP}} {
		if axis.n > 1 {
			s += fmt.Sprint(axis.name, axis.n)
		}
	}
	if m.SequenceParallel {
		s += " sp"
	}
	s += fmt.Sprintf(", ZeRO-%d", c.Zero.Stage)
	if m.PP > 1 {
		s += ", " + c.Pipeline.Schedule
		if c.Pipeline.Chunks > 1 {
			s += fmt.Sprintf(" v%d", c.Pipeline.Chunks)
		}
	}
	return s + fmt.Sprintf(", m%d, batch %d", c.Pipeline.Microbatches, c.Train.Batch)
}

func cell(lines []string) string {
	for i := range lines {
		lines[i] = strings.ReplaceAll(strings.TrimSpace(lines[i]), "|", "\\|")
	}
	return strings.Join(lines, "<br>")
}

// between puts a table between its two marks.
func between(text, name, table string) (string, error) {
	open, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->"
	i, j := strings.Index(text, open), strings.Index(text, end)
	if i < 0 || j < i {
		return "", fmt.Errorf("%s: no marks for %s", page, name)
	}
	return text[:i+len(open)] + table + text[j:], nil
}
