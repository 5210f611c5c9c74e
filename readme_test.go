package triax

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"triax/train"
)

// TestReadme: the README's commands exist, and it documents every field of the result.
func TestReadme(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	readme, makefile := read("README.md"), read("Makefile")
	for _, target := range []string{"run", "test"} {
		if !strings.Contains(readme, "\nmake "+target) || !strings.Contains(makefile, "\n"+target+":") {
			t.Errorf("make %s is not in both README.md and Makefile", target)
		}
	}
	var fields func(typ reflect.Type)
	fields = func(typ reflect.Type) {
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if !strings.Contains(readme, "`"+name+"`") {
				t.Errorf("README.md does not document %s of %v", name, typ)
			}
			if f := typ.Field(i).Type; f.Kind() == reflect.Struct {
				fields(f)
			} else if f.Kind() == reflect.Slice && f.Elem().Kind() == reflect.Struct && f.Elem() != typ {
				fields(f.Elem())
			}
		}
	}
	fields(reflect.TypeFor[train.Result]())
	for line := range strings.Lines(readme) {
		for _, word := range strings.Fields(line) {
			if strings.HasPrefix(word, "configs/") && strings.HasSuffix(word, ".toml") {
				if _, err := os.Stat(word); err != nil {
					t.Errorf("README.md names %s: %v", word, err)
				}
			}
		}
	}
}
