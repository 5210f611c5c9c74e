package serve

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"triax/configs"
	"triax/dialect"
	"triax/plan"
	"triax/report"
)

// itemOf plans the layout of a query.
func (s *Server) itemOf(q url.Values) (report.Item, error) {
	cfg, err := s.layout(q)
	if err != nil {
		return report.Item{}, err
	}
	p, err := plan.New(cfg)
	if err != nil {
		return report.Item{}, err
	}
	name := q.Get("name")
	if len(name) > maxName {
		return report.Item{}, fmt.Errorf("name: want at most %d bytes", maxName)
	}
	if name == "" {
		name = p.Layout
	}
	return report.Item{Name: name, Plan: p, Front: s.searches.found(cfg, p)}, nil
}

// plan answers with a layout's part of the page, and with the values of its keys.
func (s *Server) plan(r *http.Request) (answer, error) {
	q := r.URL.Query()
	i, err := s.itemOf(q)
	if err != nil {
		return nil, err
	}
	at, err := strconv.Atoi(cmp.Or(q.Get("at"), "0"))
	if err != nil || at < 0 || at >= MaxLayouts {
		return nil, fmt.Errorf("at: want 0 to %d", MaxLayouts-1)
	}
	var b bytes.Buffer
	if err := report.WriteItem(&b, at, i); err != nil {
		return nil, err
	}
	return answer{"html": b.String(), "values": values(i.Plan), "ranks": i.Plan.Ranks}, nil
}

// scaling answers with the picture of more and fewer data ranks, which takes a dozen plans.
func (s *Server) scaling(r *http.Request) (answer, error) {
	i, err := s.itemOf(r.URL.Query())
	if err != nil {
		return nil, err
	}
	c, ok := report.ScalingChart(report.Scaling(i.Plan))
	if !ok {
		return answer{"html": ""}, nil
	}
	return chart(c)
}

func chart(c report.Chart) (answer, error) {
	var b bytes.Buffer
	err := report.WriteChart(&b, c)
	return answer{"html": b.String()}, err
}

// table answers with several layouts side by side.
func (s *Server) table(r *http.Request) (answer, error) {
	list := r.URL.Query()["l"]
	if len(list) > MaxLayouts {
		return nil, fmt.Errorf("%d layouts: at most %d stand side by side", len(list), MaxLayouts)
	}
	var items []report.Item
	for _, text := range list {
		q, err := url.ParseQuery(text)
		if err != nil {
			return nil, fmt.Errorf("a layout that is no query: %w", err)
		}
		i, err := s.itemOf(q)
		if err != nil {
			return nil, err
		}
		items = append(items, i)
	}
	if len(items) == 0 {
		return nil, errors.New("no layout is named")
	}
	var b bytes.Buffer
	err := report.WriteTable(&b, items)
	return answer{"html": b.String()}, err
}

// export answers with a layout as TOML, or as another system reads it.
func (s *Server) export(r *http.Request) (answer, error) {
	q := r.URL.Query()
	cfg, err := s.layout(q)
	if err != nil {
		return nil, err
	}
	if to := q.Get("to"); to != "toml" {
		text, err := dialect.Export(dialect.System(to), cfg)
		return answer{"text": text}, err
	}
	text, err := configs.Resolved(cfg).TOML()
	return answer{"text": string(text)}, err
}
