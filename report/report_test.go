package report

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"triax/configs"
	"triax/plan"
	"triax/report/reporttest"
	"triax/train"
)

func planOf(t testing.TB, file string, overrides ...string) *plan.Plan {
	t.Helper()
	if file != "" {
		file = filepath.Join("..", "configs", file)
	}
	cfg, err := configs.Load(file, overrides)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// tinyRun trains a few steps on eight ranks and reads the folder back.
func tinyRun(t testing.TB) *Run {
	t.Helper()
	cfg, err := configs.Load("../configs/tiny.toml", []string{"mesh.tp=2", "mesh.pp=2", "mesh.dp=2", "zero.stage=3", "pipeline.microbatches=4", "train.steps=5", "optim.warmup=1"})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if _, err := train.Run(context.Background(), cfg, train.Options{Folder: folder}); err != nil {
		t.Fatal(err)
	}
	r, err := ReadRun(folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func pageOf(t testing.TB, items ...Item) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, "a title", items); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestNumbersOfThePlan: the page states what `triax plan --json` prints, to the last digit.
func TestNumbersOfThePlan(t *testing.T) {
	p := planOf(t, "compare/gpt3-175b.toml")
	reporttest.EqualPlan(t, pageOf(t, Item{Name: "x", Plan: p}), p)
}

// TestNothingOutside: the page asks for nothing, and the policy names its own script and style.
func TestNothingOutside(t *testing.T) {
	page := pageOf(t, Item{Name: "x", Plan: planOf(t, "pp.toml")})
	for _, bad := range []string{"http:", "https:", "//cdn", "@import", "url(", "src="} {
		if strings.Contains(page, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	for _, must := range []string{policyAttr(t), "<script>" + JS + "</script>", "<style>" + CSS + "</style>"} {
		if !strings.Contains(page, must) {
			t.Errorf("the page lacks %.60q", must)
		}
	}
}

func policyAttr(t *testing.T) string {
	t.Helper()
	return `content="` + strings.NewReplacer("'", "&#39;", "+", "&#43;").Replace(policy()) + `"`
}

// TestNoMarkup: names that are markup stay text, wherever they stand.
func TestNoMarkup(t *testing.T) {
	const evil = `"><script>alert(1)</script><img src=x onerror=alert(1)>`
	p := planOf(t, "pp.toml")
	p.Layout, p.Cluster = evil, evil
	p.Config.Train.Out = evil + "</pre>"
	for i := range p.Traffic {
		p.Traffic[i].Axis = evil
	}
	items := []Item{{Name: evil, Plan: p, Notes: []string{evil}, Front: &Front{Front: []Point{{evil, 1, 1}}, Others: []Point{{evil, 2, 2}}}}, {Name: "</script>" + evil, Plan: p}}
	var b bytes.Buffer
	if err := Write(&b, evil, items); err != nil {
		t.Fatal(err)
	}
	if page := b.String(); strings.Contains(page, "<img") || strings.Count(page, "<script>") != 1 || strings.Count(page, "</script>") != 3 {
		t.Errorf("markup of a name is in the page: %d scripts, %d ends", strings.Count(page, "<script>"), strings.Count(page, "</script>"))
	}
}

// TestPack: unpacked as the page's script does, ops lie where they were.
func TestPack(t *testing.T) {
	for _, file := range []string{"interleaved.toml", "compare/175b-3d.toml", "zero3.toml"} {
		g := planned(planOf(t, file))
		data, err := pack(g)
		if err != nil {
			t.Fatal(err)
		}
		var p packed
		if err := json.Unmarshal(data, &p); err != nil {
			t.Fatal(err)
		}
		for r, lane := range p.Groups[0].Lanes {
			at := 0
			for i, o := range g.Lanes[r].Ops {
				start := at + lane.Gap[i]
				at = start + lane.Len[i]
				if math.Abs(float64(start)*p.Unit-o.Start) > 2*p.Unit || math.Abs(float64(at)*p.Unit-o.End) > 2*p.Unit || lane.Micro[i] != o.Op.Micro || lane.Kinds[i] != o.Op.Kind.String()[0] {
					t.Fatalf("%s rank %d: %v at %d..%d of %g, want %g..%g", file, r, o.Op, start, at, p.Unit, o.Start, o.End)
				}
			}
		}
	}
}

// TestRunOnPage: what a run measured stands beside its plan, op by op.
func TestRunOnPage(t *testing.T) {
	r := tinyRun(t)
	if len(r.Notes) > 0 {
		t.Fatalf("notes: %v", r.Notes)
	}
	p, err := plan.New(r.Config)
	if err != nil {
		t.Fatal(err)
	}
	i := Item{Name: "run", Plan: p, Run: r}
	groups := i.Timelines()
	if len(groups) != 2 || len(groups[0].Lanes) != len(groups[1].Lanes) {
		t.Fatalf("%d timelines", len(groups))
	}
	for rank := range groups[0].Lanes {
		want, got := groups[0].Lanes[rank].Ops, groups[1].Lanes[rank].Ops
		if len(want) != len(got) {
			t.Fatalf("rank %d: %d ops measured, %d planned", rank, len(got), len(want))
		}
		for k := range want {
			if want[k].Op != got[k].Op {
				t.Errorf("rank %d: op %d is %v, planned %v", rank, k, got[k].Op, want[k].Op)
			}
		}
	}
	page := pageOf(t, i)
	for _, must := range []string{`data-key="measured.step_ms" data-value="` + strconv.FormatFloat(r.Result.StepMS, 'f', -1, 64), `data-chart="loss"`, `data-chart="times"`, "and the same measured"} {
		if !strings.Contains(page, must) {
			t.Errorf("the page lacks %q", must)
		}
	}
}

// TestSearchGrows: the front that grows layout by layout is the search's own.
func TestSearchGrows(t *testing.T) {
	p := planOf(t, "tiny.toml", `cluster.gpu="h100-sxm"`)
	s := NewSearch(p.Config, p.Device, 8)
	if f := s.Front(); f.Done || len(f.Front) != 0 {
		t.Errorf("before it began: %+v", f)
	}
	if err := s.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	want, err := plan.Search(context.Background(), p.Config, p.Device, plan.Limits{Ranks: 8})
	if err != nil {
		t.Fatal(err)
	}
	f := s.Front()
	if !f.Done || f.Fit != len(want.Best) || f.Legal != want.Legal || len(f.Others) == 0 || len(f.Others) > 2*maxCloud {
		t.Errorf("%d fit of %d legal, want %d of %d; %d in the cloud", f.Fit, f.Legal, len(want.Best), want.Legal, len(f.Others))
	}
	same := slices.EqualFunc(f.Front, want.Front, func(a Point, c plan.Choice) bool {
		b := PointOf(c.Plan)
		return a.Memory == b.Memory && a.Seconds == b.Seconds
	})
	if !same || len(s.Configs()) != len(f.Front) {
		t.Errorf("front %v, want %d layouts", f.Front, len(want.Front))
	}
}

// TestPictures: every chart as PNG and SVG.
func TestPictures(t *testing.T) {
	i := Item{Name: "plan", Plan: planOf(t, "interleaved.toml"), Front: &Front{Front: []Point{{"a", 1e9, 1}, {"b", 5e8, 2}}}}
	i.Fixed, i.Growing = Scaling(i.Plan)
	dir := t.TempDir()
	files, err := Pictures(dir, []Item{i})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 2*5 {
		t.Errorf("%d files: %v", len(files), files)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		head := map[string]string{".png": "\x89PNG", ".svg": "<?xml"}[filepath.Ext(f)]
		if !bytes.HasPrefix(text, []byte(head)) || len(text) < 1000 {
			t.Errorf("%s: %d bytes, begins %q", f, len(text), text[:min(8, len(text))])
		}
	}
}

// TestScaling: a growing batch keeps each rank's work, so its step only gains communication; sizes that the rules forbid are left out.
func TestScaling(t *testing.T) {
	fixed, growing := Scaling(planOf(t, "compare/gpt3-175b.toml"))
	if len(growing) < 5 || len(fixed) < 4 {
		t.Fatalf("%d and %d sizes", len(fixed), len(growing))
	}
	for _, list := range [][]Scale{fixed, growing} {
		for k := 1; k < len(list); k++ {
			if list[k].Ranks != 2*list[k-1].Ranks || list[k].PerRank > list[k-1].PerRank*1.0001 {
				t.Errorf("%+v after %+v", list[k], list[k-1])
			}
		}
	}
}
