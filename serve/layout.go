package serve

import (
	"fmt"
	"net/url"
	"slices"
	"sort"
	"strings"

	"triax/configs"
	"triax/data"
	"triax/schedule"
)

// Bounds of one request.
const (
	maxQuery = 32 << 10 // bytes
	maxPairs = 256
	maxName  = 400     // bytes
	maxOps   = 1 << 16 // of a drawn pipeline: p·m·v
	maxV     = 1 << 13 // the same where the order of ops is searched for
)

// readers are keys whose values name files. They are taken as the command line gave them, or where the value is no file but a name.
var readers = map[string]func(value string) bool{
	"model.preset":       func(v string) bool { return slices.Contains(configs.Presets(), v) },
	"model.from":         nothing,
	"data.tokenizer":     func(v string) bool { return slices.Contains(data.Tokenizers, v) },
	"data.source":        nothing,
	"pipeline.file":      nothing,
	"zero.offload_dir":   nothing,
	"train.out":          nothing,
	"cluster.calibrated": nothing,
}

// words of a query that are the page's own.
var words = []string{"name", "at", "to"}

func nothing(string) bool { return false }

// layout reads a configuration from a query. All that is wrong comes back as configs.Problems.
func (s *Server) layout(q url.Values) (*configs.Config, error) {
	var ps configs.Problems
	keys := make([]string, 0, len(q))
	for k := range q {
		if len(q[k]) > 1 {
			ps = append(ps, configs.Problem{Field: fmt.Sprintf("%.60s", k), Value: fmt.Sprintf("%.60q", q[k]), Rule: "a key stands once in a layout", Hint: "keep one"})
		}
		if !slices.Contains(words, k) { // what is no key of a configuration is refused by its loader
			keys = append(keys, k)
		}
	}
	sort.Strings(keys)
	var overrides []string
	for _, k := range keys {
		v := strings.TrimSpace(q.Get(k))
		if allowed, reads := readers[k]; reads && !allowed(strings.Trim(v, `"`)) && !s.given[k+"="+v] {
			ps = append(ps, configs.Problem{Field: k, Value: fmt.Sprintf("%.60q", v), Rule: "the page reads no files but those named when it was started",
				Hint: "name a configuration with it on the command line: triax serve FILE.toml"})
			continue
		}
		overrides = append(overrides, k+"="+v)
	}
	if len(keys) > maxPairs {
		ps = append(ps, configs.Problem{Field: "layout", Value: fmt.Sprint(len(keys)), Rule: fmt.Sprintf("a layout has at most %d keys", maxPairs), Hint: "leave out what is as by default"})
	}
	if len(ps) > 0 {
		return nil, ps
	}
	cfg, err := configs.Parse(nil, overrides)
	if err != nil {
		return nil, err
	}
	return cfg, drawable(cfg)
}

// drawable refuses what would keep the page waiting: `triax plan` prices it all the same.
func drawable(c *configs.Config) error {
	n, most := c.Mesh.PP*c.Pipeline.Microbatches*schedule.ChunksOf(c.Pipeline.Schedule, c.Pipeline.Chunks), maxOps
	if schedule.Searched(c.Pipeline.Schedule) {
		most = maxV
	}
	if n <= most {
		return nil
	}
	return configs.Problems{{Field: "pipeline.microbatches", Value: fmt.Sprint(c.Pipeline.Microbatches),
		Rule: fmt.Sprintf("the page draws schedules of at most %d ops: pipeline ranks x microbatches x chunks is %d", most, n),
		Hint: fmt.Sprintf("use at most %d microbatches here, or triax plan", max(1, c.Pipeline.Microbatches*most/n))}}
}

// pairs are a configuration as a query, in the order of its overrides.
func pairs(c *configs.Config) string {
	var out []string
	for _, o := range c.Overrides() {
		k, v, _ := strings.Cut(o, "=")
		out = append(out, url.QueryEscape(k)+"="+url.QueryEscape(v))
	}
	return strings.Join(out, "&")
}
