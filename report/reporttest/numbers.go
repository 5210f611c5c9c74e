// Package reporttest compares what a page says with the plan that it is of.
package reporttest

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"triax/plan"
)

var shown = regexp.MustCompile(`data-key="([^"]*)" data-value="([^"]*)"`)

// EqualPlan compares the numbers of a page's part with a plan as `triax plan --json` prints it.
func EqualPlan(t testing.TB, html string, p *plan.Plan) {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, m := range shown.FindAllStringSubmatch(html, -1) {
		var v any = want
		if m[1] == "memory.peak" {
			v = want["memory"].([]any)[p.Worst].(map[string]any)["peak"]
		} else {
			for key := range strings.SplitSeq(m[1], ".") {
				v = v.(map[string]any)[key]
			}
		}
		if got, err := strconv.ParseFloat(m[2], 64); err != nil || got != v {
			t.Errorf("%s: %s on the page, %v in the plan", m[1], m[2], v)
		}
		n++
	}
	if n < 7 {
		t.Errorf("%d numbers on the page", n)
	}
}
