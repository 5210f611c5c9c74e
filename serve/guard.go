package serve

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"

	"triax/configs"
)

// guarded refuses whatever does not come from the page itself: names that others may point at this address (DNS rebinding), requests of other sites' pages, long
// addresses. Its policy lets the page load and ask nothing else.
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		switch site := r.Header.Get("Sec-Fetch-Site"); {
		case !s.known(r.Host):
			http.Error(w, "this page answers to localhost, to addresses, and to the name it was started with", http.StatusMisdirectedRequest)
		case strings.HasPrefix(r.URL.Path, "/api/") && site != "" && site != "same-origin" && site != "none":
			http.Error(w, "this is for the page itself", http.StatusForbidden)
		case len(r.URL.RawQuery) > maxQuery:
			http.Error(w, "the layout is too long", http.StatusRequestURITooLong)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// known says that a request's host cannot be another's name for this address.
func (s *Server) known(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	return host == "localhost" || net.ParseIP(host) != nil || slices.ContainsFunc(s.options.Hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

// answer is what a handler of the API returns.
type answer map[string]any

// limited runs a handler among few at a time, and writes what it returns as JSON.
func (s *Server) limited(f func(r *http.Request) (answer, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		case <-r.Context().Done(): // a slider went on
			return
		}
		if r.Context().Err() != nil {
			return
		}
		a, err := f(r)
		status := http.StatusOK
		if err != nil {
			a, status = refusal(err)
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(status)
		e := json.NewEncoder(w)
		e.SetEscapeHTML(a["html"] == nil) // the server's own markup would grow by half
		_ = e.Encode(a)                   // the browser has gone if it fails
	}
}

// refusal is an error as the page shows it: each problem with its field.
func refusal(err error) (answer, int) {
	var ps configs.Problems
	if !errors.As(err, &ps) {
		return answer{"problems": []answer{{"rule": err.Error()}}}, http.StatusBadRequest
	}
	var list []answer
	for _, p := range ps {
		list = append(list, answer{"field": p.Field, "value": p.Value, "rule": p.Rule, "hint": p.Hint})
	}
	return answer{"problems": list}, http.StatusUnprocessableEntity
}
