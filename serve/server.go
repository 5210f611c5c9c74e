package serve

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"runtime"
	"time"

	"triax/configs"
)

// Layout is one that the page begins with.
type Layout struct {
	Name   string
	Config *configs.Config
}

// Options are what the page shows at first.
type Options struct {
	Layouts []Layout // at most MaxLayouts
	Runs    []string // folders
	Hosts   []string // names by which it may be asked for, beside localhost and addresses
}

// MaxLayouts is how many layouts stand side by side.
const MaxLayouts = 4

// Server answers the page. It keeps nothing but searches under way.
type Server struct {
	options  Options
	given    map[string]bool // overrides of the layouts from the command line: these may name files
	searches searches
	slots    chan struct{} // plans being made
	mux      *http.ServeMux
}

// New makes a server. Without layouts the page begins with GPT-3 175B on 1,024 A100s.
func New(o Options) (*Server, error) {
	if len(o.Layouts) > MaxLayouts {
		return nil, errors.New("the page compares at most four layouts")
	}
	if len(o.Layouts) == 0 && len(o.Runs) == 0 {
		c, err := configs.Parse(nil, first)
		if err != nil {
			return nil, err
		}
		o.Layouts = []Layout{{"gpt3-175b", c}}
	}
	s := &Server{options: o, given: map[string]bool{}, slots: make(chan struct{}, max(2, runtime.GOMAXPROCS(0))), mux: http.NewServeMux()}
	for _, l := range o.Layouts {
		for _, pair := range l.Config.Overrides() {
			s.given[pair] = true
		}
	}
	s.mux.HandleFunc("GET /{$}", s.page)
	s.mux.HandleFunc("GET /app.css", s.css)
	s.mux.HandleFunc("GET /app.js", s.js)
	s.mux.HandleFunc("GET /api/plan", s.limited(s.plan))
	s.mux.HandleFunc("GET /api/scaling", s.limited(s.scaling))
	s.mux.HandleFunc("GET /api/table", s.limited(s.table))
	s.mux.HandleFunc("GET /api/front", s.limited(s.front))
	s.mux.HandleFunc("GET /api/export", s.limited(s.export))
	s.mux.HandleFunc("GET /api/run", s.limited(s.run))
	return s, nil
}

// first is the layout of Narayanan et al. 2021, table 1, row 175B.
var first = []string{
	"model.preset=gpt3-175b", "model.vocab=51200", "model.recompute=full", "mesh.tp=8", "mesh.pp=16", "mesh.dp=8", "pipeline.schedule=interleaved",
	"pipeline.chunks=3", "pipeline.microbatches=192", "train.batch=1536", "cluster.gpu=a100-80",
}

// Handler is the page behind its guard.
func (s *Server) Handler() http.Handler { return s.guarded(s.mux) }

// Serve answers at addr until ctx ends. ready is told where, with the port that was given.
func (s *Server) Serve(ctx context.Context, addr string, ready func(url string)) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	if host != "" {
		s.options.Hosts = append(s.options.Hosts, host)
	}
	if name, err := os.Hostname(); err == nil {
		s.options.Hosts = append(s.options.Hosts, name)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	where := l.Addr().String()
	if ip, port, err := net.SplitHostPort(where); err == nil && net.ParseIP(ip).IsUnspecified() {
		where = net.JoinHostPort("localhost", port)
	}
	srv := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: maxQuery + 8<<10,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	defer s.searches.stop()
	ready("http://" + where + "/")
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
