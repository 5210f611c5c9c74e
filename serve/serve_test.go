package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"triax/configs"
	"triax/plan"
	"triax/report/reporttest"
	"triax/train"
)

func newServer(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.searches.stop)
	return s
}

// ask is a request as the page makes it.
func ask(t testing.TB, s *Server, path string, header ...string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = "localhost:7070"
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(body)
}

// decoded is an answer of the API.
func decoded(t testing.TB, s *Server, path string) map[string]any {
	t.Helper()
	code, body := ask(t, s, path)
	var a map[string]any
	if err := json.Unmarshal([]byte(body), &a); err != nil || code != http.StatusOK {
		t.Fatalf("%s: %d %.300s %v", path, code, body, err)
	}
	return a
}

var firstQuery = func() string {
	c, err := configs.Parse(nil, first)
	if err != nil {
		panic(err)
	}
	return pairs(c)
}()

func planOf(t testing.TB, overrides ...string) *plan.Plan {
	t.Helper()
	c, err := configs.Parse(nil, overrides)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestNumbers: an answer holds the plan's numbers to the last digit.
func TestNumbers(t *testing.T) {
	s := newServer(t, Options{})
	a := decoded(t, s, "/api/plan?at=2&name=x&"+firstQuery)
	html := a["html"].(string)
	reporttest.EqualPlan(t, html, planOf(t, first...))
	if !strings.Contains(html, `id="item2"`) || a["ranks"] != 1024.0 || a["values"].(map[string]any)["mesh.tp"] != "8" {
		t.Errorf("ranks %v, %.200s", a["ranks"], html)
	}
	if html := decoded(t, s, "/api/scaling?"+firstQuery)["html"].(string); !strings.Contains(html, `data-chart="scaling"`) {
		t.Errorf("scaling: %.200s", html)
	}
}

// TestTable: several layouts side by side, the first as the base.
func TestTable(t *testing.T) {
	s := newServer(t, Options{})
	other := strings.Replace(firstQuery, "mesh.pp=16", "mesh.pp=8", 1)
	html := decoded(t, s, "/api/table?l="+url.QueryEscape("name=a&"+firstQuery)+"&l="+url.QueryEscape("name=b&"+other))["html"].(string)
	if strings.Count(html, `scope="col"`) != 2 || !strings.Contains(html, "x</small>") {
		t.Errorf("%.400s", html)
	}
	if code, body := ask(t, s, "/api/table?l=a&l=a&l=a&l=a&l=a"); code != http.StatusBadRequest || !strings.Contains(body, "at most 4") {
		t.Errorf("five layouts: %d %s", code, body)
	}
}

// TestFront: a search is asked for until it is done; its layouts can be taken over, and are the planner's own.
func TestFront(t *testing.T) {
	s := newServer(t, Options{})
	q := "model.preset=gpt2&mesh.dp=8&train.batch=64&cluster.gpu=a100-80"
	var a map[string]any
	for range 600 {
		if a = decoded(t, s, "/api/front?"+q); a["done"] == true {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	list := a["choices"].([]any)
	if a["done"] != true || len(list) == 0 || !strings.Contains(a["html"].(string), `data-chart="front"`) {
		t.Fatalf("done %v, %d choices", a["done"], len(list))
	}
	p := planOf(t, "model.preset=gpt2", "mesh.dp=8", "train.batch=64", "cluster.gpu=a100-80")
	found, err := plan.Search(context.Background(), p.Config, p.Device, plan.Limits{Ranks: 8})
	if err != nil {
		t.Fatal(err)
	}
	if got := list[0].(map[string]any)["layout"]; got != found.Best[0].Plan.Layout {
		t.Errorf("fastest %v, the search says %s", got, found.Best[0].Plan.Layout)
	}
	reporttest.EqualPlan(t, decoded(t, s, "/api/plan?"+list[0].(map[string]any)["pairs"].(string))["html"].(string), found.Best[0].Plan)
	// Another layout of the same ranks finds the same search.
	other := decoded(t, s, "/api/plan?"+strings.Replace(q, "mesh.dp=8", "mesh.dp=4&mesh.tp=2", 1))
	if !strings.Contains(other["html"].(string), `data-chart="front"`) {
		t.Error("the front is not shown for another layout of the same search")
	}
}

// TestExport: a layout as others read it, or why they cannot.
func TestExport(t *testing.T) {
	s := newServer(t, Options{})
	if text := decoded(t, s, "/api/export?to=megatron&"+firstQuery)["text"].(string); !strings.Contains(text, "--tensor-model-parallel-size 8") {
		t.Errorf("%.400s", text)
	}
	text := decoded(t, s, "/api/export?to=toml&"+firstQuery)["text"].(string)
	if c, err := configs.Parse([]byte(text), nil); err != nil || c.Mesh.TP != 8 || c.Pipeline.Microbatches != 192 {
		t.Errorf("%v\n%s", err, text)
	}
	if code, body := ask(t, s, "/api/export?to=deepspeed&"+firstQuery); code != http.StatusUnprocessableEntity && code != http.StatusBadRequest {
		t.Errorf("deepspeed took an interleaved schedule: %d %.200s", code, body)
	}
}

// TestRun: a folder's run beside its plan; nothing new is not sent again.
func TestRun(t *testing.T) {
	cfg, err := configs.Load("../configs/tiny.toml", []string{"mesh.pp=2", "pipeline.microbatches=4", "train.steps=4", "optim.warmup=1"})
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "mine")
	if _, err := train.Run(context.Background(), cfg, train.Options{Folder: folder}); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, Options{Runs: []string{folder}})
	a := decoded(t, s, "/api/run?n=0")
	html := a["html"].(string)
	for _, must := range []string{"measured.step_ms", "predicted above measured", `data-chart="loss"`} {
		if !strings.Contains(html, must) {
			t.Errorf("no %q in the run", must)
		}
	}
	if again := decoded(t, s, "/api/run?n=0&stamp="+url.QueryEscape(a["stamp"].(string))); again["html"] != nil {
		t.Error("an unchanged run is sent again")
	}
	if code, _ := ask(t, s, "/api/run?n=1"); code != http.StatusBadRequest {
		t.Errorf("a run that was not named: %d", code)
	}
	// Broken files are notes, a broken configuration is a refusal.
	for _, name := range []string{"trace.json", "result.json", "metrics.jsonl", "config.toml"} {
		status := http.StatusOK
		if name == "config.toml" {
			status = http.StatusUnprocessableEntity
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte("</script><img src=x onerror=alert(1)>\x00{"), 0o644); err != nil {
			t.Fatal(err)
		}
		if code, body := ask(t, s, "/api/run?n=0"); code != status || strings.Contains(body, "<img") {
			t.Errorf("%s: %d %.300s", name, code, body)
		}
	}
}

// TestGuard: only the page itself, and only names that are this machine's.
func TestGuard(t *testing.T) {
	s := newServer(t, Options{Hosts: []string{"box"}})
	for _, c := range []struct {
		path   string
		header []string
		want   int
	}{
		{"/", nil, 200}, {"/", []string{"Host", "evil.example"}, 421}, {"/", []string{"Host", "evil.example:7070"}, 421}, {"/", []string{"Host", "box:1"}, 200},
		{"/", []string{"Host", "127.0.0.1:7070"}, 200}, {"/", []string{"Host", "[::1]:7070"}, 200}, {"/", []string{"Host", ""}, 421},
		{"/api/plan?" + firstQuery, []string{"Sec-Fetch-Site", "cross-site"}, 403}, {"/api/plan?" + firstQuery, []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{"/api/plan?" + strings.Repeat("x", maxQuery+1), nil, 414}, {"/../deps_test.go", nil, 307}, {"/app.js", nil, 200}, {"/nothing", nil, 404},
	} {
		if code, body := ask(t, s, c.path, c.header...); code != c.want {
			t.Errorf("%.60s %v: %d, want %d: %.80s", c.path, c.header, code, c.want, body)
		}
	}
}

// TestRefusals: what is wrong is said by field, all at once, and files are not read for whoever asks.
func TestRefusals(t *testing.T) {
	s := newServer(t, Options{})
	for q, fields := range map[string][]string{
		"mesh.tp=3&model.heads=4&optim.lr=-1":               {"optim.lr"},
		"mesh.tpp=3&model.widht=4":                          {"mesh.tpp", "model.widht"},
		"mesh.tp=1&mesh.tp=2":                               {"mesh.tp"},
		"tensor=2":                                          {"tensor"},
		"model.from=/etc":                                   {"model.from"},
		"model.preset=/etc/passwd.json":                     {"model.preset"},
		"data.tokenizer=/etc/passwd":                        {"data.tokenizer"},
		"pipeline.file=/etc/passwd":                         {"pipeline.file"},
		"cluster.calibrated=/etc/passwd":                    {"cluster.calibrated"},
		"cluster.gpu=abacus":                                {"cluster.gpu"},
		"cluster.network_bandwidth_gbs=0":                   {"cluster.network_bandwidth_gbs"},
		"pipeline.microbatches=1048576&train.batch=1048576": {"pipeline.microbatches"},
		"model.preset=gpt2&mesh.pp=6&pipeline.schedule=zb-v&pipeline.microbatches=4096&train.batch=4096&cluster.gpu=h200": {"pipeline.microbatches"},
	} {
		code, body := ask(t, s, "/api/plan?"+q)
		if code != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %.200s", q, code, body)
		}
		for _, f := range fields {
			if !strings.Contains(body, `"field":"`+f+`"`) {
				t.Errorf("%s: %s is not named: %s", q, f, body)
			}
		}
	}
	for _, q := range []string{"at=4", "at=x", "name=" + strings.Repeat("n", maxName+1)} {
		if code, body := ask(t, s, "/api/plan?"+q); code != http.StatusBadRequest {
			t.Errorf("%.20s: %d %.100s", q, code, body)
		}
	}
	c, err := configs.Parse(nil, []string{"train.out=/somewhere"})
	if err != nil {
		t.Fatal(err)
	}
	if code, body := ask(t, newServer(t, Options{Layouts: []Layout{{"x", c}}}), "/api/plan?train.out=/somewhere"); code != http.StatusOK {
		t.Errorf("a folder that the command line named: %d %s", code, body)
	}
}

// TestHostileQueries: whatever is asked, the server answers with JSON and no markup of the question's.
func TestHostileQueries(t *testing.T) {
	s := newServer(t, Options{})
	rng := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	evil := []string{"<script>alert(1)</script>", "\"'><img src=x>", "\x00", "1e999", "-1", "99999999999999999999", "NaN", "[[[[", strings.Repeat("9", 3000), "true", "../..", "${x}", "\n=\n"}
	keys := append(configs.Keys(), "cluster.gpu", "cluster.watts", "cluster.<b>", "a.b", "name", "at", "to", "l", "n", "stamp")
	paths := []string{"plan", "scaling", "table", "front", "export", "run"}
	for n := range 400 {
		q := url.Values{}
		for range 1 + rng.IntN(4) {
			q.Add(keys[rng.IntN(len(keys))], evil[rng.IntN(len(evil))])
		}
		path := "/api/" + paths[rng.IntN(len(paths))] + "?" + q.Encode()
		code, body := ask(t, s, path)
		if code >= 500 || !json.Valid([]byte(body)) || strings.Contains(body, "<img") || strings.Contains(body, "<script>a") {
			t.Fatalf("%d: %s: %d %.300s", n, path, code, body)
		}
		var a struct{ HTML string }
		if json.Unmarshal([]byte(body), &a) == nil && strings.Contains(a.HTML, "<img") {
			t.Fatalf("%s: markup in the page: %.300s", path, a.HTML)
		}
	}
}

// TestServe: on a real port, until the context ends.
func TestServe(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	where, done := make(chan string, 1), make(chan error, 1)
	go func() { done <- newServer(t, Options{}).Serve(ctx, "127.0.0.1:0", func(u string) { where <- u }) }()
	res, err := http.Get(<-where)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, _ := io.ReadAll(res.Body); !strings.Contains(string(body), `id="start"`) || res.Header.Get("Content-Security-Policy") == "" {
		t.Errorf("%v %.200s", res.Header, body)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// BenchmarkChange is what the server does for one move of a slider.
func BenchmarkChange(b *testing.B) {
	for _, ranks := range []int{1024, 16384} {
		b.Run(fmt.Sprint(ranks), func(b *testing.B) {
			s := newServer(b, Options{})
			q := strings.Replace(firstQuery, "mesh.dp=8", fmt.Sprintf("mesh.dp=%d", ranks/128), 1)
			q = strings.Replace(q, "train.batch=1536", fmt.Sprintf("train.batch=%d", 1536*ranks/1024), 1)
			bytes := 0
			for b.Loop() {
				_, body := ask(b, s, "/api/plan?"+q)
				bytes = len(body)
			}
			b.ReportMetric(float64(bytes)/1024, "KiB/answer")
		})
	}
}
