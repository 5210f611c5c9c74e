package data

import (
	"fmt"
	"strings"
)

// Problem is one thing wrong with the data a configuration asks for.
type Problem struct {
	Field string // "data.source", ...
	Value string // the source, or the path of the file
	Rule  string // what is wrong with it
	Hint  string // what would work
}

// Error prints the problem on one line.
func (p Problem) Error() string {
	return fmt.Sprintf("%s = %s: %s; %s", p.Field, p.Value, p.Rule, p.Hint)
}

// Problems is everything wrong that was found before reading stopped.
type Problems []Problem

// Error prints a problem a line.
func (ps Problems) Error() string {
	var lines []string
	for _, p := range ps {
		lines = append(lines, p.Error())
	}
	return strings.Join(lines, "\n")
}

// maxProblems bounds how many unreadable files are named.
const maxProblems = 20

func (ps *Problems) add(field, value, rule, hint string) {
	if len(*ps) < maxProblems {
		*ps = append(*ps, Problem{field, fmt.Sprintf("%q", value), rule, hint})
	}
}
