package configs

import (
	"reflect"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// override sets one "section.key=value". A value is read as the key's type: texts need no quotes, and lists may be
// written with commas alone (optim.betas=0.9,0.99).
func (c *Config) override(text string) Problems {
	name, value, ok := strings.Cut(text, "=")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	if !ok || name == "" {
		return Problems{{Field: show(text), Rule: "an override is section.key=value", Hint: "for example train.steps=100"}}
	}
	if key, isCluster := strings.CutPrefix(name, "cluster."); isCluster { // its keys are the planner's
		c.setCluster(key, value)
		return nil
	}
	field, known := fields(c)[name]
	if !known {
		return Problems{unknown(name, value, 0, Keys())}
	}
	if err := set(field, decode(value, field.Type())); err != nil {
		return Problems{{name, show(value), err.Error(), example(name)}}
	}
	return nil
}

// setCluster sets a key of the free section, in a copy: configurations may share the map.
func (c *Config) setCluster(key, text string) {
	section := map[string]any{}
	for k, v := range c.Cluster {
		section[k] = v
	}
	section[key] = text
	if v := value(text); v != nil {
		section[key] = v
	}
	c.Cluster = section
}

// decode reads text as TOML where it is, else as a bare text; nil when neither suits the type.
func decode(text string, t reflect.Type) any {
	if t.Kind() == reflect.Slice {
		return decodeList(text, t.Elem())
	}
	quoted := strings.HasPrefix(text, `"`) || strings.HasPrefix(text, `'`)
	if t.Kind() == reflect.String && !quoted {
		return text
	}
	return value(text)
}

// value is the TOML value that text is, or nil.
func value(text string) any {
	var doc map[string]any
	if len(text) > MaxFile || strings.ContainsAny(text, "\n\r") || toml.Unmarshal([]byte("v = "+text), &doc) != nil {
		return nil
	}
	return doc["v"]
}

func decodeList(text string, elem reflect.Type) any {
	if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		if v := value(text); v != nil {
			return v
		}
		text = text[1 : len(text)-1]
	}
	list := []any{}
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, decode(part, elem))
		}
	}
	return list
}
