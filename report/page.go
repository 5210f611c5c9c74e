package report

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strconv"

	"triax/plan"
)

//go:embed page.html page.css page.js
var assets embed.FS

// CSS and JS are the page's own, for whoever serves it in pieces.
var (
	CSS = asset("page.css")
	JS  = asset("page.js")
)

func asset(name string) string {
	b, err := assets.ReadFile(name)
	if err != nil {
		panic(err) // embedded
	}
	return string(b)
}

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"exact": func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) },
	"ratio": func(x float64) string {
		if x == 0 {
			return ""
		}
		return fmt.Sprintf("%.2fx", x)
	},
}).Parse(asset("page.html")))

// view is an item as the template takes it.
type view struct {
	Item
	At        int
	Numbers   []number
	Timeline  template.JS
	Measured  bool
	Pictures  []Chart
	Remarks   []string
	TOML      string
	Ops, Step string
}

func viewOf(at int, i Item) (view, error) {
	groups := i.Timelines()
	data, err := pack(groups...)
	if err != nil {
		return view{}, fmt.Errorf("timeline of %s: %w", i.Name, err)
	}
	text, err := i.Plan.Config.TOML()
	if err != nil {
		return view{}, fmt.Errorf("configuration of %s: %w", i.Name, err)
	}
	return view{
		Item: i, At: at, Numbers: i.headlines(), Timeline: template.JS(data), Measured: len(groups) > 1, Pictures: i.Charts(), Remarks: i.remarks(), TOML: string(text),
	}, nil
}

// WriteItem writes one item's part of the page. at tells items on a page apart.
func WriteItem(w io.Writer, at int, i Item) error {
	v, err := viewOf(at, i)
	if err != nil {
		return err
	}
	return pages.ExecuteTemplate(w, "item", v)
}

// WriteChart writes one picture.
func WriteChart(w io.Writer, c Chart) error { return pages.ExecuteTemplate(w, "chart", c) }

// WriteTable writes the comparison of several items.
func WriteTable(w io.Writer, items []Item) error {
	return pages.ExecuteTemplate(w, "table", tableOf(items))
}

type table struct {
	Columns []plan.Column
	Rows    []plan.Row
	Notes   []string
}

func tableOf(items []Item) (t table) {
	for _, i := range items {
		t.Columns = append(t.Columns, i.Columns()...)
	}
	if len(t.Columns) > 0 {
		t.Rows, t.Notes = plan.Rows(t.Columns), plan.Notes(t.Columns)
	}
	return t
}

// Write writes the whole page. It asks for nothing from any network, and its policy forbids whatever is not in it.
func Write(w io.Writer, title string, items []Item) error {
	var body bytes.Buffer
	if len(items) > 1 || (len(items) == 1 && items[0].Run != nil) {
		if err := WriteTable(&body, items); err != nil {
			return err
		}
	}
	for at, i := range items {
		if err := WriteItem(&body, at, i); err != nil {
			return err
		}
	}
	return pages.ExecuteTemplate(w, "page", struct {
		Title, Policy string
		CSS           template.CSS
		JS            template.JS
		Body          template.HTML
	}{title, policy(), template.CSS(CSS), template.JS(JS), template.HTML(body.String())})
}

// policy names the page's style and script by their hashes; nothing else may run, load or be sent.
func policy() string {
	hash := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; style-src " + hash(CSS) + "; script-src " + hash(JS) + "; base-uri 'none'; form-action 'none'"
}
