package serve

import (
	_ "embed"
	"encoding/json"
	"html/template"
	"net/http"

	"triax/report"
)

var (
	//go:embed app.html
	appHTML string
	//go:embed app.css
	appCSS string
	//go:embed app.js
	appJS string

	app = template.Must(template.New("app").Parse(appHTML))
)

// start is what the page's script begins with.
type start struct {
	Layouts []named  `json:"layouts"`
	Runs    []string `json:"runs"`
	Most    int      `json:"most"`
}

type named struct {
	Name  string `json:"name"`
	Pairs string `json:"pairs"`
}

func (s *Server) page(w http.ResponseWriter, _ *http.Request) {
	begin := start{Layouts: []named{}, Runs: append([]string{}, s.options.Runs...), Most: MaxLayouts}
	for _, l := range s.options.Layouts {
		begin.Layouts = append(begin.Layouts, named{l.Name, pairs(l.Config)})
	}
	text, err := json.Marshal(begin)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = app.Execute(w, map[string]any{"Start": template.JS(text), "Groups": controls()}) // json.Marshal escapes what could end a script
}

func (s *Server) css(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	_, _ = w.Write([]byte(report.CSS + appCSS))
}

func (s *Server) js(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
	_, _ = w.Write([]byte(report.JS + appJS))
}
