package configs

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Overrides are the keys in which a configuration differs from Default, or from the published model that it names, as "section.key=value": Parse(nil, Overrides())
// gives it back. They are what a link or a command line carries in place of a file. Sorted, but for the model's name, which comes first.
func (c *Config) Overrides() (out []string) {
	from := Default()
	if m := c.Model.Preset; m != "" {
		if shape, err := preset(m); err == nil {
			from.Model = shape
			out = append(out, "model.preset="+m)
		}
	}
	base, own := fields(from), fields(c)
	for _, key := range Keys() {
		if v := own[key]; !same(v, base[key]) {
			out = append(out, key+"="+written(v))
		}
	}
	for _, key := range sorted(c.Cluster) {
		out = append(out, "cluster."+key+"="+written(reflect.ValueOf(c.Cluster[key])))
	}
	return out
}

// same compares keys; a list that is empty is one that is not set.
func same(a, b reflect.Value) bool {
	if a.Kind() == reflect.Slice && a.Len() == 0 && b.Len() == 0 {
		return true
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// written is a value as an override says it.
func written(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Slice:
		var list []string
		for i := range v.Len() {
			x := v.Index(i)
			if x.Kind() == reflect.String {
				list = append(list, strconv.Quote(x.String()))
			} else {
				list = append(list, written(x))
			}
		}
		return "[" + strings.Join(list, ",") + "]"
	case reflect.Float64:
		text := strconv.FormatFloat(v.Float(), 'g', -1, 64)
		if !strings.ContainsAny(text, ".en") { // a whole number stays what it is for TOML
			text += ".0"
		}
		return text
	case reflect.String:
		if s := v.String(); plain(s) {
			return s
		}
		return strconv.Quote(v.String())
	}
	return fmt.Sprint(v.Interface())
}

// plain says that a text needs no quotes: nothing that TOML would read otherwise.
func plain(s string) bool {
	return s == strings.TrimSpace(s) && !strings.ContainsAny(s, "\"'\\\n\r") && value(s) == nil
}

// Values are all keys with their values, written as overrides write them.
func (c *Config) Values() map[string]string {
	out := map[string]string{}
	for key, v := range fields(c) {
		out[key] = written(v)
	}
	return out
}
