package configs

import (
	"bytes"
	"errors"
	"reflect"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// linesOf tells on which line every key of a well-formed file stands. It decodes strictly into sections
// without keys, so that the decoder reports every key there is as missing, with its place.
func linesOf(text []byte) map[string]int {
	lines := map[string]int{}
	d := toml.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(reflect.New(keyless).Interface())
	var strict *toml.StrictMissingError
	var one *toml.DecodeError
	switch {
	case errors.As(err, &strict):
		for i := range strict.Errors {
			e := &strict.Errors[i]
			line, _ := e.Position()
			lines[strings.Join(e.Key(), ".")] = line
		}
	case errors.As(err, &one):
		line, _ := one.Position()
		lines[strings.Join(one.Key(), ".")] = line
	}
	return lines
}

// keyless is Config with empty sections.
var keyless = func() reflect.Type {
	var list []reflect.StructField
	t := reflect.TypeFor[Config]()
	for i := range t.NumField() {
		f := t.Field(i)
		list = append(list, reflect.StructField{Name: f.Name, Type: reflect.TypeFor[struct{}](), Tag: f.Tag})
	}
	return reflect.StructOf(list)
}()

// sections lists the names of the sections.
func sections() []string {
	var out []string
	for i := range keyless.NumField() {
		out = append(out, tag(keyless.Field(i)))
	}
	return out
}

func isSection(name string) bool {
	for _, s := range sections() {
		if s == name {
			return true
		}
	}
	return false
}

func isBare(name string) bool { return !strings.Contains(name, ".") }
