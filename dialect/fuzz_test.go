package dialect

import (
	"errors"
	"testing"

	"triax/configs"
)

// FuzzImport: whatever the text, it is read or refused with problems, and what is read can be written as one of our files and read again.
func FuzzImport(f *testing.F) {
	for i, of := range Systems {
		t := &testing.T{}
		files, _ := cases(t, of)
		for _, file := range files {
			f.Add(uint8(i), string(file.Data))
		}
	}
	base := configs.Default()
	f.Fuzz(func(t *testing.T, of uint8, text string) {
		r, err := Import(Systems[int(of)%len(Systems)], text, Options{World: 8, Base: base})
		if err != nil {
			var ps configs.Problems
			if !errors.As(err, &ps) || len(ps) == 0 {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		out, err := r.Config.TOML()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := configs.Parse(out, nil); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	})
}
