package serve

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"triax/configs"
	"triax/plan"
	"triax/report"
	"triax/report/reporttest"
	"triax/train"
)

// browser is a tab of a real headless Chromium. Without one the test is skipped, unless TRIAX_BROWSER says that there must be one. What the page's scripts
// throw fails the test.
func browser(t *testing.T) context.Context {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		if os.Getenv("TRIAX_BROWSER") != "" {
			t.Fatal("TRIAX_BROWSER is set and there is no Chromium")
		}
		t.Skip("no Chromium: pages are not tried in a browser (apt install chromium)")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1280, 1000), chromedp.WSURLReadTimeout(time.Minute))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(cancel)
	chromedp.ListenTarget(ctx, func(e any) {
		if x, ok := e.(*runtime.EventExceptionThrown); ok {
			t.Errorf("the page threw: %s", x.ExceptionDetails.Error())
		}
	})
	return ctx
}

func do(t *testing.T, ctx context.Context, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// value is what an expression of the page comes to.
func value[T any](t *testing.T, ctx context.Context, expression string) (v T) {
	t.Helper()
	do(t, ctx, chromedp.Evaluate(expression, &v))
	return v
}

// until waits for an expression to hold.
func until(t *testing.T, ctx context.Context, expression string) {
	t.Helper()
	for range 1200 {
		if value[bool](t, ctx, "!!("+expression+")") {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("never came to pass: %s", expression)
}

// html is a layout's part of the page as it stands in the browser.
const html = `document.querySelector('[data-at="%d"]').innerHTML`

// TestSliders: moved by keys, sliders change what is planned; the numbers are the planner's to the last digit, and the address is the layout.
func TestSliders(t *testing.T) {
	ctx := browser(t)
	srv := httptest.NewServer(newServer(t, Options{}).Handler())
	t.Cleanup(srv.Close)
	do(t, ctx, chromedp.Navigate(srv.URL))
	until(t, ctx, `document.documentElement.dataset.changes >= 1`)
	reporttest.EqualPlan(t, value[string](t, ctx, fmt.Sprintf(html, 0)), planOf(t, first...))

	n := value[string](t, ctx, `document.documentElement.dataset.changes`)
	do(t, ctx, chromedp.Focus(`[data-for="mesh.tp"]`), chromedp.KeyEvent("\u0302")) // arrow left: half the tensor ranks
	until(t, ctx, `document.documentElement.dataset.changes != `+n+` && document.querySelector('[data-at="0"] .layout').textContent.includes('tp4 ')`)
	want := append(append([]string{}, first...), "mesh.tp=4", "mesh.dp=16", "pipeline.microbatches=96")
	reporttest.EqualPlan(t, value[string](t, ctx, fmt.Sprintf(html, 0)), planOf(t, want...))
	t.Logf("change of a slider at 1,024 devices: answered in %s ms, shown in %s ms", value[string](t, ctx, `document.documentElement.dataset.answer`), value[string](t, ctx, `document.documentElement.dataset.ms`))

	// The link makes the same page elsewhere.
	link := value[string](t, ctx, `location.href`)
	if !strings.Contains(link, "mesh.tp=4") || !strings.Contains(link, "mesh.dp=16") {
		t.Errorf("link %s", link)
	}
	do(t, ctx, chromedp.Reload())
	until(t, ctx, `document.documentElement.dataset.changes >= 1 && document.querySelector('[data-at="0"] .layout').textContent.includes('tp4 ')`)

	// On a phone, too, nothing stands out of the page.
	do(t, ctx, chromedp.EmulateViewport(360, 800))
	if over := value[int64](t, ctx, `document.documentElement.scrollWidth`); over > 360 {
		t.Errorf("360 wide: the page is %d wide", over)
	}
	var shot []byte
	do(t, ctx, chromedp.Sleep(time.Second), chromedp.FullScreenshot(&shot, 100), chromedp.EmulateViewport(1280, 1000))
	if dir := os.Getenv("TRIAX_SHOTS"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, "live-360.png"), shot, 0o644); err != nil {
			t.Error(err)
		}
	}

	// A slider dragged to and fro, then left alone.
	var times []string
	for range 5 {
		for _, key := range []string{"\u0303", "\u0302"} {
			n := value[string](t, ctx, `document.documentElement.dataset.changes`)
			do(t, ctx, chromedp.Focus(`[data-for="mesh.tp"]`), chromedp.KeyEvent(key))
			until(t, ctx, `document.documentElement.dataset.changes != `+n)
			times = append(times, value[string](t, ctx, `document.documentElement.dataset.answer + '/' + document.documentElement.dataset.ms`))
		}
	}
	t.Logf("moves at 1,024 devices, answered/shown in ms: %v", times)

	// A field that breaks a rule is named, and the picture stands back.
	do(t, ctx, chromedp.SetValue(`#mesh\.tp`, "7", chromedp.ByQuery), chromedp.Evaluate(`document.getElementById('mesh.tp').dispatchEvent(new Event('input', { bubbles: true }))`, nil))
	until(t, ctx, `document.getElementById('problems').textContent.includes('mesh.tp') && document.querySelector('[data-at="0"]').classList.contains('stale')`)
	do(t, ctx, chromedp.SetValue(`#mesh\.tp`, "4", chromedp.ByQuery), chromedp.Evaluate(`document.getElementById('mesh.tp').dispatchEvent(new Event('input', { bubbles: true }))`, nil))
	until(t, ctx, `document.getElementById('problems').textContent === '' && !document.querySelector('[data-at="0"]').classList.contains('stale')`)

	// Sixteen thousand devices.
	do(t, ctx, chromedp.Click(`#hold-micro`), chromedp.SetValue(`#mesh\.dp`, "256", chromedp.ByQuery), chromedp.Evaluate(`document.getElementById('train.batch').value = 24576, document.getElementById('train.batch').dispatchEvent(new Event('input', { bubbles: true })), document.getElementById('mesh.dp').dispatchEvent(new Event('input', { bubbles: true }))`, nil))
	until(t, ctx, `document.getElementById('ranks').textContent === '16384 devices'`)
	t.Logf("change at 16,384 devices: answered in %s ms, shown in %s ms", value[string](t, ctx, `document.documentElement.dataset.answer`), value[string](t, ctx, `document.documentElement.dataset.ms`))
}

// TestSideBySide: layouts are added, compared and taken from the front; flags of another system are shown.
func TestSideBySide(t *testing.T) {
	ctx := browser(t)
	c, err := configs.Parse(nil, []string{"model.preset=gpt2", "mesh.dp=8", "train.batch=64", "cluster.gpu=a100-80"})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(newServer(t, Options{Layouts: []Layout{{"<b>base</b>", c}}}).Handler())
	t.Cleanup(srv.Close)
	do(t, ctx, chromedp.Navigate(srv.URL))
	until(t, ctx, `document.documentElement.dataset.front === 'done'`)
	do(t, ctx, chromedp.Click(`[aria-label="Add a copy to compare"]`))
	until(t, ctx, `document.querySelectorAll('#layouts > div').length === 2`)
	until(t, ctx, `document.querySelectorAll('#choices button').length > 0`)
	pairs := value[string](t, ctx, `document.querySelector('#choices li:last-child button').dataset.pairs`)
	n := value[string](t, ctx, `document.documentElement.dataset.changes`)
	do(t, ctx, chromedp.Click(`#choices li:last-child button`))
	until(t, ctx, `document.documentElement.dataset.changes != `+n+` && document.querySelectorAll('#table th[scope=col]').length === 2`)
	if href := value[string](t, ctx, `location.href`); !strings.Contains(href, "at=1") {
		t.Errorf("link %s", href)
	}
	if got := value[int](t, ctx, `document.querySelectorAll('b').length`); got != 0 {
		t.Error("a name is markup")
	}
	if pairs == "" {
		t.Error("no layout to take over")
	}
	do(t, ctx, chromedp.Click(`[data-to=megatron]`))
	until(t, ctx, `document.getElementById('text').textContent.includes('--num-layers 12')`)
	do(t, ctx, chromedp.Click(`[aria-label="Remove the chosen layout"]`))
	until(t, ctx, `document.querySelectorAll('#tabs button[aria-pressed]').length === 1`)
}

// TestHostileAddress: an address that was made to break the page does not.
func TestHostileAddress(t *testing.T) {
	ctx := browser(t)
	srv := httptest.NewServer(newServer(t, Options{}).Handler())
	t.Cleanup(srv.Close)
	for _, hash := range []string{
		"#%3Cimg%20src=x%20onerror=alert(1)%3E:model.preset=%3Cscript%3Ealert(1)%3C/script%3E", "#%E0%A4%A:mesh.tp=%", "#;;;at=99", "#a:__proto__.x=1&constructor.y=2",
		"#" + strings.Repeat("a:mesh.tp=1;", 5000), "#x:mesh.tp=999999999999999999999", "#x:pipeline.microbatches=1048576&train.batch=1048576",
	} {
		do(t, ctx, chromedp.Navigate("about:blank"), chromedp.Navigate(srv.URL+"/"+hash))
		until(t, ctx, `document.getElementById('tabs') && (document.documentElement.dataset.changes >= 1 || document.getElementById('problems').textContent !== '')`)
		if got := value[int](t, ctx, `document.querySelectorAll('img, #tabs script, #layouts script:not([type="application/json"])').length`); got != 0 {
			t.Errorf("%.60s: %d elements of the address's", hash, got)
		}
	}
}

// TestRunInBrowser: a run's page in a report: its ops answer to the mouse and to keys, on a desk and on a phone, in the light and in the dark.
func TestRunInBrowser(t *testing.T) {
	ctx := browser(t)
	cfg, err := configs.Load("../configs/tiny.toml", []string{"mesh.tp=2", "mesh.pp=2", "mesh.dp=2", "zero.stage=3", "pipeline.microbatches=4", "train.steps=5", "optim.warmup=1"})
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "run")
	if _, err := train.Run(context.Background(), cfg, train.Options{Folder: folder}); err != nil {
		t.Fatal(err)
	}
	run, err := report.ReadRun(folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(run.Config)
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := report.Write(&page, "a run", []report.Item{{Name: "run", Plan: p, Run: run}}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, page.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	do(t, ctx, chromedp.Navigate("file://"+file))
	until(t, ctx, `document.documentElement.dataset.drawn`)
	t.Logf("page of a run: %d KiB, first picture after %s ms", page.Len()/1024, value[string](t, ctx, `document.documentElement.dataset.drawn`))

	hint := `document.querySelector('.timeline .hint').textContent`
	point := func(place string) {
		t.Helper()
		do(t, ctx, chromedp.ScrollIntoView(`.timeline canvas`, chromedp.ByQuery))
		at := value[[]float64](t, ctx, `(() => { const f = document.querySelector('.timeline'), r = f.querySelector('canvas').getBoundingClientRect(), p = f.`+place+`; return [r.left + p[0], r.top + p[1]]; })()`)
		do(t, ctx, input.DispatchMouseEvent(input.MouseMoved, at[0], at[1]))
	}
	point("placeOf(0, 0)")
	until(t, ctx, hint+`.startsWith('predicted pp0: 0F0, forward on stage 0 of microbatch 0')`)
	point("gapOf(1, 0)")
	until(t, ctx, hint+`.includes('idle before 1F0') && `+hint+`.includes('nothing to do yet')||`+hint+`.includes('waiting for peer')`)
	point("placeOf(2, 0)")
	until(t, ctx, hint+`.startsWith('measured pp0: 0F0')`)

	do(t, ctx, chromedp.Click(`.timeline [data-do=in]`))
	if span := value[float64](t, ctx, `(f => f.to - f.from)(document.querySelector('.timeline').dataset)`); !(span > 0) {
		t.Errorf("span %g after zooming", span)
	}
	do(t, ctx, chromedp.Focus(`.timeline canvas`), chromedp.KeyEvent("0"), chromedp.KeyEvent("."), chromedp.KeyEvent("."))
	until(t, ctx, hint+`.startsWith('measured pp0: ')`)

	for _, dark := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 360} {
			do(t, ctx, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: dark}}), chromedp.EmulateViewport(width, 900))
			if over := value[int64](t, ctx, `document.documentElement.scrollWidth`); over > width {
				t.Errorf("%s, %d wide: the page is %d wide", dark, width, over)
			}
			var shot []byte
			do(t, ctx, chromedp.Sleep(200*time.Millisecond), chromedp.FullScreenshot(&shot, 100))
			picture, err := png.Decode(bytes.NewReader(shot))
			if err != nil {
				t.Fatal(err)
			}
			r, g, b, _ := picture.At(1, picture.Bounds().Dy()-2).RGBA()
			if light := r+g+b > 3*0x8000; light != (dark == "light") {
				t.Errorf("%s: the paper is %d %d %d", dark, r>>8, g>>8, b>>8)
			}
			if dir := os.Getenv("TRIAX_SHOTS"); dir != "" {
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("run-%s-%d.png", dark, width)), shot, 0o644); err != nil {
					t.Error(err)
				}
			}
		}
	}
}
