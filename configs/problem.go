package configs

import (
	"fmt"
	"strings"
)

// Problem is one thing wrong with a configuration.
type Problem struct {
	Field string // "section.key", or "line 7" where the text is not TOML
	Value string // as given
	Rule  string // what it breaks
	Hint  string // a value that would work
}

// String prints the problem on one line.
func (p Problem) String() string {
	s := p.Field
	if p.Value != "" {
		s += " = " + p.Value
	}
	s += ": " + p.Rule
	if p.Hint != "" {
		s += "; " + p.Hint
	}
	return s
}

// Problems is everything wrong with a configuration, in the order of its sections. It is the one error
// type for bad input: Load and Validate return nothing else but errors of reading the file.
type Problems []Problem

// Error prints a problem a line.
func (ps Problems) Error() string {
	var b strings.Builder
	switch len(ps) {
	case 1:
		b.WriteString("1 problem in the configuration:")
	default:
		fmt.Fprintf(&b, "%d problems in the configuration:", len(ps))
	}
	for _, p := range ps {
		b.WriteString("\n  " + p.String())
	}
	return b.String()
}

// add notes a problem when wrong holds.
func (ps *Problems) add(wrong bool, field string, value any, rule, hint string) {
	if !wrong {
		return
	}
	text := fmt.Sprint(value)
	if s, ok := value.(string); ok {
		text = fmt.Sprintf("%q", s)
	}
	*ps = append(*ps, Problem{field, text, rule, hint})
}
