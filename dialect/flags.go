package dialect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// flags is a parsed argument list: each flag's values, the last occurrence counting, as argparse has it. A getter marks its flag as read; what is
// never read is refused at the end.
type flags struct {
	r     *reader
	order []string
	value map[string][]string
	read  map[string]bool
}

func (r *reader) parseFlags(args []string) *flags {
	f := &flags{r: r, value: map[string][]string{}, read: map[string]bool{}}
	for i := 0; i < len(args); i++ {
		name, v, has := strings.Cut(args[i], "=")
		if !strings.HasPrefix(name, "--") {
			r.refuse(args[i], "", "a value without a flag", "write --flag value")
			continue
		}
		var values []string
		if has {
			values = []string{v}
		}
		for !has && i+1 < len(args) && !strings.HasPrefix(args[i+1], "--") {
			i++
			values = append(values, args[i])
		}
		if !slices.Contains(f.order, name) {
			f.order = append(f.order, name)
		}
		f.value[name] = values
	}
	return f
}

// on says whether a flag without value is given.
func (f *flags) on(name, about string) bool {
	_, ok := f.value[name]
	if ok && !f.read[name] {
		f.read[name] = true
		f.r.taken(name, strings.Join(f.value[name], " "), about)
	}
	return ok
}

// text is a flag's value, or what it is by default.
func (f *flags) text(name, by, about string) string {
	v, ok := f.value[name]
	if !ok {
		return by
	}
	if len(v) != 1 {
		f.read[name] = true
		f.r.refuse(name, strings.Join(v, " "), "want one value", "for example "+by)
		return by
	}
	if !f.read[name] {
		f.read[name] = true
		f.r.taken(name, v[0], about)
	}
	return v[0]
}

func (f *flags) int(name string, by int, about string) int {
	v := f.text(name, "", about)
	if v == "" {
		return by
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 || n > 1<<40 {
		f.r.refuse(name, v, "want a whole number", fmt.Sprintf("for example %d", max(by, 1)))
		return by
	}
	return n
}

// degree is an int that is at least 1 and no more than anybody has ranks.
func (f *flags) degree(name string, by int, about string) int {
	n := f.int(name, by, about)
	if n < 1 || n > maxDegree {
		f.r.refuse(name, strconv.Itoa(n), fmt.Sprintf("want 1 to %d", maxDegree), fmt.Sprintf("use %d", max(1, by)))
		return 1
	}
	return n
}

func (f *flags) float(name string, by float64, about string) float64 {
	v := f.text(name, "", about)
	if v == "" {
		return by
	}
	x, err := strconv.ParseFloat(v, 64)
	if err != nil {
		f.r.refuse(name, v, "want a number", fmt.Sprintf("for example %g", by))
		return by
	}
	return x
}

// has says whether a flag is given, without reading it.
func (f *flags) has(name string) bool { _, ok := f.value[name]; return ok }

// rest files every flag that nobody has read: under unused where the table says that it has no bearing, else as refused, with the table's
// reason or as unknown. Names that end in * stand for all that start so.
func (f *flags) rest(unused []string, refused map[string]string, known []string) {
	for _, name := range f.order {
		if f.read[name] {
			continue
		}
		v := strings.Join(f.value[name], " ")
		why, no := refused[name]
		switch {
		case no:
			f.r.refuse(name, v, why, "leave it out, or pass over it with --ignore "+name)
		case slices.ContainsFunc(unused, func(u string) bool { return matches(u, name) }):
			f.r.unused(name, v, "")
		default:
			f.r.refuse(name, v, "not a flag that is known here", "did you mean "+nearest(name, known)+"? Pass over it with --ignore "+name)
		}
	}
}

func matches(pattern, name string) bool {
	if start, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, start)
	}
	return pattern == name
}
