package configs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sort"

	"github.com/pelletier/go-toml/v2"
)

// MaxFile bounds the size of a configuration file in bytes.
const MaxFile = 1 << 20

// Load reads a file over Default, then the overrides ("section.key=value") in order, and validates the result.
// path "" means no file. Everything wrong, with what the checks find, comes back at once as Problems; any other error is one of reading.
func Load(path string, overrides []string, checks ...func(*Config) Problems) (*Config, error) {
	var text []byte
	if path != "" {
		var err error
		if text, err = read(path); err != nil {
			return nil, err
		}
	}
	return Parse(text, overrides, checks...)
}

func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if len(text) > MaxFile {
		return nil, Problems{{Field: path, Rule: fmt.Sprintf("a configuration is at most %d bytes", MaxFile), Hint: "is it the right file?"}}
	}
	return text, nil
}

// Parse is Load for text in memory.
func Parse(text []byte, overrides []string, checks ...func(*Config) Problems) (*Config, error) {
	var problems Problems
	c := Default()
	var doc map[string]any
	if err := toml.Unmarshal(text, &doc); err != nil {
		problems = append(problems, syntax(err))
	} else {
		problems = append(problems, c.usePreset(doc, overrides)...)
		problems = append(problems, c.fill(doc, linesOf(text))...)
	}
	for _, o := range overrides {
		problems = append(problems, c.override(o)...)
	}
	problems = problems.with(c.check())
	for _, check := range checks {
		problems = append(problems, check(c)...)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return c, nil
}

// with adds problems of values, except for fields that are named already: their values were not taken.
func (ps Problems) with(more Problems) Problems {
	named := map[string]bool{}
	for _, p := range ps {
		named[p.Field] = true
	}
	for _, p := range more {
		if !named[p.Field] {
			ps = append(ps, p)
		}
	}
	return ps
}

func syntax(err error) Problem {
	p := Problem{Field: "file", Rule: err.Error(), Hint: "see https://toml.io"}
	var at *toml.DecodeError
	if errors.As(err, &at) {
		line, column := at.Position()
		p.Field = fmt.Sprintf("line %d, column %d", line, column)
	}
	return p
}

// fill sets every key of a decoded document.
func (c *Config) fill(doc map[string]any, lines map[string]int) Problems {
	var problems Problems
	known := fields(c)
	for _, section := range sorted(doc) {
		table, isTable := doc[section].(map[string]any)
		switch {
		case !isSection(section):
			problems = append(problems, unknown(section, doc[section], lines[section], sections()))
			continue
		case !isTable:
			problems = append(problems, Problem{section, show(doc[section]), at(lines[section]) + "want a section", fmt.Sprintf("write [%s] on a line of its own", section)})
			continue
		case section == "cluster":
			c.Cluster = table
			continue
		}
		for _, key := range sorted(table) {
			name := section + "." + key
			field, ok := known[name]
			if !ok {
				problems = append(problems, unknown(name, table[key], lines[name], Keys()))
			} else if err := set(field, table[key]); err != nil {
				problems = append(problems, Problem{name, show(table[key]), at(lines[name]) + err.Error(), example(name)})
			}
		}
	}
	sort.SliceStable(problems, func(i, j int) bool { return lines[problems[i].Field] < lines[problems[j].Field] })
	return problems
}

func unknown(name string, value any, line int, known []string) Problem {
	what := "no such key"
	if isBare(name) {
		what = "no such section"
	}
	return Problem{name, show(value), at(line) + what, "did you mean " + nearest(name, known) + "?"}
}

func at(line int) string {
	if line == 0 {
		return ""
	}
	return fmt.Sprintf("line %d: ", line)
}

func sorted(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// show prints a value from a file, short.
func show(v any) string {
	s := fmt.Sprint(v)
	if t, ok := v.(string); ok {
		s = fmt.Sprintf("%q", t)
	}
	if _, ok := v.(map[string]any); ok {
		s = "a section"
	}
	if r := []rune(s); len(r) > 60 {
		s = string(r[:57]) + "..."
	}
	return s
}
