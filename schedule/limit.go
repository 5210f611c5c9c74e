package schedule

// limits is what each schedule promises to hold at most on any rank, in activations of a chunk (Schedule.Limit), after the papers that the
// generators name. New enters it, Verify proves it.
var limits = map[string]func(p, m, v int) int{
	"gpipe":       func(_, m, _ int) int { return m },
	"1f1b":        func(p, m, _ int) int { return min(p, m) },
	"interleaved": func(p, m, v int) int { return min(v*m, 2*p-1+(v-1)*rounds(p, m)[0]) },
	"looped-bfs":  func(_, m, v int) int { return v * m },
	"zb-h1":       func(p, m, _ int) int { return min(p, m) },
	"zb-h2":       func(p, m, _ int) int { return min(2*p-1, m) },
	"zb-v":        func(p, m, _ int) int { return 2 * min(p, m) },
	"v-half":      func(p, m, _ int) int { return min(p+2, 2*m) },
	"v-min":       func(p, m, _ int) int { return min((2*p+10)/3, 2*m) },
	"dualpipe-v":  func(p, _, _ int) int { return 2*p + 1 },
}
