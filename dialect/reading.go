package dialect

import (
	"fmt"
	"slices"
	"strings"

	"triax/configs"
)

// System is another training system.
type System string

// Systems that can be read and written.
const (
	Megatron   System = "megatron"
	DeepSpeed  System = "deepspeed"
	Torchtitan System = "torchtitan"
)

// Systems lists them.
var Systems = []System{Megatron, DeepSpeed, Torchtitan}

// MaxFile bounds the size of a foreign configuration in bytes.
const MaxFile = 256 << 10

// Note is one setting that was found: its name and value there, and what was made of it.
type Note struct{ Name, Value, About string }

// String prints a note on one line.
func (n Note) String() string {
	s := n.Name
	if n.Value != "" {
		s += " " + n.Value
	}
	if n.About != "" {
		s += ": " + n.About
	}
	return s
}

// Reading is what Import made of a foreign configuration. Taken, Differs and Unused together hold every setting that was found.
type Reading struct {
	Config  *configs.Config
	World   int    // ranks
	Taken   []Note // means the same here
	Differs []Note // read as something near; About says what
	Unused  []Note // no bearing on what triax computes
}

// Options is what foreign files do not say.
type Options struct {
	World  int             // ranks; 0 takes what the file says
	Base   *configs.Config // model, data and run where the file has none; nil means configs.Default
	Ignore []string        // settings to pass over that would be refused
}

// Import reads a configuration of another system. Everything in it that cannot be done here, or contradicts itself, comes back at once as
// configs.Problems whose fields are the other system's names.
func Import(from System, text string, o Options) (*Reading, error) {
	if len(text) > MaxFile {
		return nil, configs.Problems{{Field: string(from), Rule: fmt.Sprintf("a configuration is at most %d bytes", MaxFile), Hint: "is it the right file?"}}
	}
	r := &reader{Reading: Reading{Config: base(o.Base)}, options: o, from: from}
	switch from {
	case Megatron:
		r.megatron(text)
	case DeepSpeed:
		r.deepspeed(text)
	case Torchtitan:
		r.torchtitan(text)
	default:
		r.refuse("from", string(from), "no such system", "one of megatron, deepspeed, torchtitan")
	}
	if len(r.problems) > 0 {
		return nil, r.problems
	}
	r.Taken = slices.DeleteFunc(r.Taken, func(n Note) bool {
		return slices.ContainsFunc(r.Differs, func(d Note) bool { return d.Name == n.Name })
	})
	if err := r.Config.Validate(); err != nil {
		return nil, err
	}
	return &r.Reading, nil
}

func base(c *configs.Config) *configs.Config {
	if c == nil {
		return configs.Default()
	}
	out := *c
	out.Cluster = map[string]any{}
	for k, v := range c.Cluster {
		out.Cluster[k] = v
	}
	return &out
}

// reader gathers what is found.
type reader struct {
	Reading
	options  Options
	from     System
	problems configs.Problems
}

// refuse notes a setting that cannot be taken over, unless the user has said to ignore it.
func (r *reader) refuse(name, value, rule, hint string) {
	if slices.Contains(r.options.Ignore, name) {
		r.Unused = append(r.Unused, Note{name, value, "ignored as asked: " + rule})
		return
	}
	r.problems = append(r.problems, configs.Problem{Field: name, Value: value, Rule: rule, Hint: hint})
}

func (r *reader) taken(name, value, about string) {
	r.Taken = append(r.Taken, Note{name, value, about})
}
func (r *reader) differs(name, value, about string) {
	r.Differs = append(r.Differs, Note{name, value, about})
}
func (r *reader) unused(name, value, about string) {
	r.Unused = append(r.Unused, Note{name, value, about})
}

// cluster sets a key of the [cluster] section.
func (r *reader) cluster(key string, v any) {
	if r.Config.Cluster == nil {
		r.Config.Cluster = map[string]any{}
	}
	r.Config.Cluster[key] = v
}

// maxDegree bounds axes and what is counted by rank, so that a broken file cannot ask for lists of any length.
const maxDegree = 1 << 20

// divide is a/b, refused under name where it does not come out even.
func (r *reader) divide(name string, a, b int, rule string) int {
	if b < 1 || a < 1 || a%b != 0 {
		r.refuse(name, fmt.Sprint(a), fmt.Sprintf("%s: want a multiple of %d", rule, b), fmt.Sprintf("use %d", max(1, (a+max(b, 1)-1)/max(b, 1))*max(b, 1)))
		return 1
	}
	return a / b
}

// nearest is the known name with the longest common start, for hints.
func nearest(name string, known []string) string {
	best, most := "", -1
	for _, k := range known {
		n := 0
		for n < len(k) && n < len(name) && k[n] == name[n] {
			n++
		}
		if n > most {
			best, most = k, n
		}
	}
	return best
}

// orNone joins names for an error.
func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
