package launch

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestHosts(t *testing.T) {
	dir := t.TempDir()
	want := []Host{{"a", 2}, {"10.0.0.2", 8}, {"c", 1}}
	for name, text := range map[string]string{
		"open mpi": "# hosts\na slots=2\n10.0.0.2 max_slots=9 slots = 8\n\nc\n",
		"hydra":    "a:2\n10.0.0.2:8\n# c\nc\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadHosts(file); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for _, family := range []string{"Open MPI", "MPICH"} {
		file := filepath.Join(dir, "written")
		if err := (Starter{Family: family}).WriteHosts(file, want); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadHosts(file); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v", family, got, err)
		}
	}
	if _, err := ReadHosts(filepath.Join(dir, "none")); err == nil {
		t.Error("a file that is not there was read")
	}
}
