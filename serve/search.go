package serve

import (
	"bytes"
	"context"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"triax/configs"
	"triax/plan"
	"triax/report"
)

const (
	keptSearches = 8
	patience     = 10 * time.Second // without being asked for, a search ends
	listed       = 12               // layouts of the front that can be taken over
)

// searches are those of late. One runs at a time.
type searches struct {
	mu   sync.Mutex
	list []*searching // latest last
}

type searching struct {
	*report.Search
	key    string
	cancel context.CancelFunc
	clock  *time.Timer
}

// keyOf is what a search depends on: all but the layout.
func keyOf(c *configs.Config, ranks int) string {
	k := *configs.Resolved(c)
	k.Mesh = configs.MeshConfig{DP: ranks}
	k.Pipeline.Schedule, k.Pipeline.Chunks, k.Pipeline.Microbatches, k.Pipeline.Layers, k.Pipeline.File = "", 0, 0, nil, ""
	k.Zero.Stage, k.Model.Recompute = 0, ""
	text, err := k.TOML()
	if err != nil {
		return "" // not of a configuration that loads
	}
	return string(text)
}

// found is the front for a layout, if it is or was searched for; nil otherwise.
func (s *searches) found(c *configs.Config, p *plan.Plan) *report.Front {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.find(keyOf(c, p.Ranks)); at >= 0 {
		return s.list[at].Front()
	}
	return nil
}

func (s *searches) find(key string) int {
	return slices.IndexFunc(s.list, func(x *searching) bool { return x.key == key })
}

// ask starts a search or goes on with it; one that another ended begins again.
func (s *searches) ask(c *configs.Config, p *plan.Plan) *searching {
	key := keyOf(c, p.Ranks)
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.find(key); at >= 0 {
		x := s.list[at]
		if x.Front().Done || x.Err() == nil {
			x.clock.Reset(patience)
			return x
		}
		s.list = slices.Delete(s.list, at, at+1)
	}
	for _, x := range s.list {
		x.cancel()
	}
	if len(s.list) >= keptSearches {
		s.list = slices.Delete(s.list, 0, 1)
	}
	ctx, cancel := context.WithCancel(context.Background())
	x := &searching{Search: report.NewSearch(p.Config, p.Device, p.Ranks), key: key, cancel: cancel, clock: time.AfterFunc(patience, cancel)}
	x.Workers = max(1, runtime.GOMAXPROCS(0)-1) // a core is left for whoever moves a slider
	s.list = append(s.list, x)
	go func() { _ = x.Run(ctx) }() // its error is asked for by Err
	return x
}

// stop ends all.
func (s *searches) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.list {
		x.cancel()
		x.clock.Stop()
	}
}

// front answers with the front as far as it is known, and with its layouts to take over.
func (s *Server) front(r *http.Request) (answer, error) {
	i, err := s.itemOf(r.URL.Query())
	if err != nil {
		return nil, err
	}
	x := s.searches.ask(i.Plan.Config, i.Plan)
	if err := x.Err(); err != nil {
		return nil, err
	}
	f := x.Front()
	var b bytes.Buffer
	if err := report.WriteChart(&b, report.FrontChart(f, report.PointOf(i.Plan))); err != nil {
		return nil, err
	}
	var choices []answer
	for at, c := range x.Configs() {
		if at < listed && at < len(f.Front) {
			choices = append(choices, answer{"layout": f.Front[at].Layout, "seconds": plan.Seconds(f.Front[at].Seconds), "memory": plan.Bytes(f.Front[at].Memory), "pairs": pairs(c)})
		}
	}
	return answer{"html": b.String(), "done": f.Done, "choices": choices}, nil
}
