package configs

import (
	"fmt"
	"reflect"
	"sort"
	"strings"
)

// fields finds every key of a configuration: "section.key" → the struct field it sets.
func fields(c *Config) map[string]reflect.Value {
	out := map[string]reflect.Value{}
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		section := tag(v.Type().Field(i))
		if s := v.Field(i); s.Kind() == reflect.Struct {
			for j := range s.NumField() {
				out[section+"."+tag(s.Type().Field(j))] = s.Field(j)
			}
		}
	}
	return out
}

func tag(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
	return name
}

// Keys lists every "section.key" that a file or an override may set, sorted.
func Keys() []string {
	var keys []string
	for k := range fields(new(Config)) {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// set stores a decoded TOML value in a field, or tells what the field wants.
func set(field reflect.Value, value any) error {
	switch field.Kind() {
	case reflect.Slice:
		list, ok := value.([]any)
		if !ok {
			return fmt.Errorf("want %s", wants(field.Type()))
		}
		out := reflect.Zero(field.Type()) // an empty list is the same as none
		if len(list) > 0 {
			out = reflect.MakeSlice(field.Type(), len(list), len(list))
		}
		for i, x := range list {
			if err := set(out.Index(i), x); err != nil {
				return fmt.Errorf("want %s; element %d is not", wants(field.Type()), i+1)
			}
		}
		field.Set(out)
		return nil
	case reflect.Float64:
		switch x := value.(type) {
		case float64:
			field.SetFloat(x)
			return nil
		case int64:
			field.SetFloat(float64(x))
			return nil
		}
	case reflect.Int:
		if x, ok := value.(int64); ok {
			field.SetInt(x)
			return nil
		}
	case reflect.Uint64:
		if x, ok := value.(int64); ok && x >= 0 {
			field.SetUint(uint64(x))
			return nil
		}
	case reflect.String:
		if x, ok := value.(string); ok {
			field.SetString(x)
			return nil
		}
	case reflect.Bool:
		if x, ok := value.(bool); ok {
			field.SetBool(x)
			return nil
		}
	}
	return fmt.Errorf("want %s", wants(field.Type()))
}

// wants names a field's type as people write it.
func wants(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice:
		return "a list, each element " + wants(t.Elem())
	case reflect.Float64:
		return "a number"
	case reflect.Int:
		return "a whole number"
	case reflect.Uint64:
		return "a whole number, 0 or more"
	case reflect.Bool:
		return "true or false"
	}
	return "a text in quotes"
}

// example is a value of a field's type, for hints: what stands in Default.
func example(key string) string {
	f := fields(Default())[key]
	switch f.Kind() {
	case reflect.String:
		return fmt.Sprintf("for example %q", f.String())
	case reflect.Slice:
		switch {
		case f.Type().Elem().Kind() == reflect.String:
			return `for example ["a", "b"]`
		case f.Type().Elem().Kind() == reflect.Int:
			return "for example [2, 2]"
		}
		return "for example [0.9, 0.95]"
	}
	return fmt.Sprintf("for example %v", f.Interface())
}
