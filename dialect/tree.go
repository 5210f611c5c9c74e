package dialect

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// tree is a decoded JSON or TOML document. Getters take a dotted path and mark it as read; what is never read is refused at the end.
type tree struct {
	r    *reader
	root map[string]any
	read map[string]bool
}

func (t *tree) find(path string) (any, bool) {
	var at any = t.root
	for _, key := range strings.Split(path, ".") {
		m, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if at, ok = m[key]; !ok {
			return nil, false
		}
	}
	return at, at != nil
}

func (t *tree) has(path string) bool { _, ok := t.find(path); return ok }

// take finds a value and notes it as taken over.
func (t *tree) take(path, about string) (any, bool) {
	v, ok := t.find(path)
	if ok && !t.read[path] {
		t.read[path] = true
		t.r.taken(path, fmt.Sprint(v), about)
	}
	return v, ok
}

func (t *tree) int(path string, by int, about string) int {
	v, ok := t.take(path, about)
	if !ok {
		return by
	}
	switch x := v.(type) {
	case int64:
		if x > -1<<40 && x < 1<<40 {
			return int(x)
		}
	case float64: // JSON has no other numbers, and 5e8 is usual
		if x == float64(int64(x)) && x > -1<<40 && x < 1<<40 {
			return int(x)
		}
	}
	t.r.refuse(path, fmt.Sprint(v), "want a whole number", fmt.Sprintf("for example %d", max(1, by)))
	return by
}

// degree is an int that is at least 1 and no more than anybody has ranks.
func (t *tree) degree(path string, by int, about string) int {
	n := t.int(path, by, about)
	if n < 1 || n > maxDegree {
		t.r.refuse(path, fmt.Sprint(n), fmt.Sprintf("want 1 to %d", maxDegree), fmt.Sprintf("use %d", max(1, by)))
		return 1
	}
	return n
}

func (t *tree) float(path string, by float64, about string) float64 {
	v, ok := t.take(path, about)
	if !ok {
		return by
	}
	switch x := v.(type) {
	case int64:
		return float64(x)
	case float64:
		return x
	}
	t.r.refuse(path, fmt.Sprint(v), "want a number", fmt.Sprintf("for example %g", by))
	return by
}

func (t *tree) bool(path string, by bool, about string) bool {
	v, ok := t.take(path, about)
	if !ok {
		return by
	}
	x, ok := v.(bool)
	if !ok {
		t.r.refuse(path, fmt.Sprint(v), "want true or false", fmt.Sprintf("for example %v", by))
	}
	return x
}

func (t *tree) text(path, by, about string) string {
	v, ok := t.take(path, about)
	if !ok {
		return by
	}
	x, ok := v.(string)
	if !ok {
		t.r.refuse(path, fmt.Sprint(v), "want a text", fmt.Sprintf("for example %q", by))
		return by
	}
	return x
}

// one is text that must be one of a list.
func (t *tree) one(path, by, about string, list ...string) string {
	v := t.text(path, by, about)
	if !slices.Contains(list, v) {
		t.r.refuse(path, v, "want one of "+strings.Join(list, ", "), "use "+list[0])
		return by
	}
	return v
}

// leaves lists the paths of all values that are no sections, sorted; empty sections say nothing.
func leaves(prefix string, m map[string]any) (out []string) {
	for k, v := range m {
		p := k
		if prefix != "" {
			p = prefix + "." + k
		}
		if sub, ok := v.(map[string]any); ok {
			out = append(out, leaves(p, sub)...)
		} else {
			out = append(out, p)
		}
	}
	sort.Strings(out)
	return out
}

// off says whether a value asks for nothing: false, 0, none, empty.
func off(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case bool:
		return !x
	case string:
		return x == "" || x == "none"
	case int64:
		return x == 0
	case float64:
		return x == 0
	case []any:
		return len(x) == 0
	case map[string]any:
		return len(x) == 0
	}
	return false
}

// rest files every value that nobody has read. refused gives the reason, by path or by the start of one with a *; a value that asks for nothing
// is not refused.
func (t *tree) rest(unused []string, refused map[string]string, known []string) {
	for _, path := range leaves("", t.root) {
		if t.read[path] {
			continue
		}
		v, _ := t.find(path)
		why := ""
		for pattern, reason := range refused {
			if matches(pattern, path) {
				why = reason
			}
		}
		switch {
		case why != "" && off(v):
			t.r.unused(path, fmt.Sprint(v), "off")
		case why != "":
			t.r.refuse(path, fmt.Sprint(v), why, "leave it out, or pass over it with --ignore "+path)
		case slices.ContainsFunc(unused, func(u string) bool { return matches(u, path) }):
			t.r.unused(path, fmt.Sprint(v), "")
		default:
			t.r.refuse(path, fmt.Sprint(v), "not a setting that is known here", "did you mean "+nearest(path, known)+"? Pass over it with --ignore "+path)
		}
	}
}
