//go:build integration

package console_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/console/view"
)

// slowest is a limit of liveness for what should take a second: sixty times that,
// for a machine that does other things besides.
const slowest = 60 * time.Second

// fill publishes one round of a pool: an estimate of each, what is held, and a
// plan for some.
func (s *scene) fill(services []service) {
	s.t.Helper()
	now := time.Now()
	for i := range services {
		s.have[services[i].name] = services[i].has
		s.publish(s.estimate(&services[i], now, i))
	}
	s.publish(s.holding(services, now, 3, 1))
	p, o := s.plan(services, 1, now)
	s.publish(p, o)
	s.seen("the plan and every workload", func() bool {
		status := s.view.Page(time.Now(), view.Filter{Limit: 1})
		return status.Plan == "3-1" && status.Total == len(services)
	})
}

// TestAThousandWorkloadsAreUsable prints how long the first view takes, from
// the start of the navigation until the rows are there to be read.
func TestAThousandWorkloadsAreUsable(t *testing.T) {
	b := openBrowser(t)
	services := crowd(1000)
	c := shopConfig(services)
	c.Capacity = 2500
	s := newScene(t, c)
	s.fill(services)
	quickest := time.Hour
	for range 20 {
		start := time.Now()
		r := httptest.NewRequest("GET", s.url+"/", nil)
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Fatal(w.Body.String())
		}
		quickest = min(quickest, time.Since(start))
	}
	t.Logf("the server draws the page in %v (quickest of 20)", quickest.Round(100*time.Microsecond))
	var took []float64
	for range 5 {
		p := s.open(b, t, "/-/healthy", wide())
		call(p, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks})
		p.forgive()
		p.do(chromedp.Navigate(s.url + "/"))
		p.until("performance.getEntriesByType('paint').some(e => e.name === 'first-contentful-paint') && document.querySelectorAll('#workloads tbody tr').length === 100")
		painted := eval[float64](p, "performance.getEntriesByName('first-contentful-paint')[0].startTime")
		parsed := eval[float64](p, "performance.getEntriesByType('navigation')[0].domInteractive")
		took = append(took, max(painted, parsed))
		t.Logf("from the start of the navigation: first byte %.0f ms, parsed %.0f ms, painted %.0f ms", eval[float64](p, "performance.getEntriesByType('navigation')[0].responseStart"), parsed, painted)
		for _, m := range call(p, performance.GetMetrics, cdp.Empty{}).Metrics {
			if m.Name == "TaskDuration" {
				t.Logf("the page's main thread worked %.0f ms", 1000*m.Value)
			}
		}
		p.until(isLive)
		if got := p.received(); got > maxFirstView {
			t.Errorf("%.0f bytes, at most %d", got, maxFirstView)
		}
	}
	slices.Sort(took)
	t.Logf("first view with %d workloads, 5 times: %.0f ms", len(services), took)
	if worst := time.Duration(took[len(took)-1]) * time.Millisecond; worst > slowest {
		t.Errorf("first view after %v", worst)
	}
	p := s.open(b, t, "/", wide())
	p.until(isLive)
	p.screenshot("crowd", false)
	first := eval[string](p, "document.querySelector('#workloads tbody th a').textContent")
	if _, err := chromedp.RunResponse(p.ctx, chromedp.Click(chromedp.CSS("a[rel=next]"))); err != nil {
		t.Fatal(err)
	}
	p.until("location.search === '?offset=100' && document.querySelector('.pager').textContent.includes('101 to 200 of 1000')")
	if eval[string](p, "document.querySelector('#workloads tbody th a').textContent") == first {
		t.Error("the second page begins as the first")
	}
	// A filter finds the one among the thousand, from wherever one is.
	p.slash()
	p.do(chromedp.KeyEvent("service-0977"))
	p.until(names + " === 'service-0977' && location.search === '?q=service-0977'")
}

// TestEveryPageOfAThousandWorkloads prints, where PAGES is set (all, or the name of one), for
// each page how long the server takes to draw it, when it is there to be read, and when it is live with its charts
// drawn.
func TestEveryPageOfAThousandWorkloads(t *testing.T) {
	only := os.Getenv("PAGES") // all, or the name of one
	if only == "" {
		t.Skip("PAGES is not set")
	}
	b := openBrowser(t)
	services := crowd(1000)
	c := shopConfig(services)
	c.Capacity = 2500
	s := newScene(t, c)
	s.fill(services)
	s.besides()
	t.Logf("%-11s %8s %11s %11s", "page", "server", "readable", "interactive")
	for _, page := range everyPage() {
		if only != "all" && only != page.name {
			continue
		}
		path, ready := strings.NewReplacer("checkout", "service-0007", "recommender", "service-0008", "host-b.rack-7.example", "host-a").Replace(page.path), page.ready
		start := time.Now()
		s.handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", s.url+path, nil))
		server := time.Since(start)
		p := s.open(b, t, "/-/healthy", wide())
		p.forgive()
		p.do(chromedp.Navigate(s.url + path))
		p.until("performance.getEntriesByName('first-contentful-paint').length > 0 && " + ready)
		interactive := eval[float64](p, "performance.now()")
		readable := eval[float64](p, "Math.max(performance.getEntriesByName('first-contentful-paint')[0].startTime, performance.getEntriesByType('navigation')[0].domInteractive)")
		t.Logf("%-11s %5d ms %8.0f ms %8.0f ms", page.name, server.Milliseconds(), readable, interactive)
	}
}

// hostile makes texts that would do harm if anything took them for more than
// text.
func hostile(rand *rand.Rand) string {
	parts := []string{"<script>window.pwned=1</script>", "<img src=x onerror=window.pwned=1>", `"><svg onload=window.pwned=1>`, "javascript:window.pwned=1",
		"{{.}}", "${window.pwned=1}", "</textarea>", "<!--", "--", "]]>", "'", `"`, "`", "\\", "/", "..", "?", "#", "%", "%2e%2e", "&lt;", "&", "=", " ", "\u202e", "\u0000x", "é", "日本", "💥", "<style>*{display:none}</style>", "<base href=//elsewhere.invalid>", "data-key", "a"}
	var out strings.Builder
	for range 1 + rand.IntN(4) {
		out.WriteString(parts[rand.IntN(len(parts))])
	}
	return out.String()
}

// TestHostileLabelsAreTextInTheBrowser gives hundreds of workloads hostile
// names, and puts hostile texts wherever a value has text.
func TestHostileLabelsAreTextInTheBrowser(t *testing.T) {
	b := openBrowser(t)
	texts := rand.New(rand.NewPCG(7, 7))
	seen := map[string]bool{}
	var services []service
	for len(services) < 300 {
		// Trimmed as Validate wants names; each occurs once.
		name := fmt.Sprintf("%s%d", hostile(texts), len(services))
		if (&trimtab.Estimate{Workload: name, Time: time.Now()}).Validate() == nil && !seen[name] {
			seen[name] = true
			services = append(services, service{name: name, class: trimtab.BestEffort, mode: trimtab.Act, slo: .9, load: 100, need: .005, has: 1, wanted: 1.4})
		}
	}
	c := shopConfig(services)
	c.Pool, c.Objective = hostile(texts), hostile(texts)
	for i := range c.Workloads {
		c.Workloads[i].SLO = hostile(texts)
	}
	s := newScene(t, c)
	s.waiting["planner"] = hostile(texts)
	now := time.Now()
	for i := range services {
		w := &services[i]
		s.have[w.name] = 1
		e := s.estimate(w, now, 1)
		e.Model, e.Load.Model = hostile(texts), hostile(texts)
		e.Inputs = append(e.Inputs, trimtab.Input{Name: hostile(texts), Source: hostile(texts), Missing: hostile(texts)})
		if i%3 == 0 {
			e.Hold = &trimtab.Held{Code: codes.HeldMissing, Text: hostile(texts)}
		}
		s.publish(e)
	}
	p, o := s.plan(services, 1, now)
	p.Cause = trimtab.Cause{Kind: codes.CauseAlert, Text: hostile(texts)}
	for i := range p.Actions {
		why := &p.Actions[i].Why
		why.Summary, why.Binding.Detail, why.Model = hostile(texts), hostile(texts), hostile(texts)
		why.Alternatives[0].Why, why.Inputs[0].Source = hostile(texts), hostile(texts)
		o.Results[i].Reason = hostile(texts)
	}
	s.publish(s.holding(services, now, 3, 1), p, o)
	s.seen("the plan", func() bool { return s.view.Page(time.Now(), view.Filter{Limit: 1}).Plan == "3-1" })
	var shown []string
	page := s.open(b, t, "/", wide())
	for offset := 0; offset < len(services); offset += 100 {
		page.do(chromedp.Navigate(fmt.Sprintf("%s/?offset=%d", s.url, offset)))
		page.until(isLive)
		shown = append(shown, eval[[]string](page, "[...document.querySelectorAll('#workloads tbody th a')].map(e => e.textContent)")...)
		page.harmless()
	}
	want := make([]string, len(services))
	for i := range services {
		// HTML has no NUL: what stands for it is shown.
		want[i] = strings.ReplaceAll(services[i].name, "\x00", "\ufffd")
	}
	slices.Sort(shown)
	slices.Sort(want)
	if !slices.Equal(shown, want) {
		t.Errorf("%d names are shown, %d are there; or they differ", len(shown), len(want))
	}
	// The links lead to the workloads that they name.
	for i := 0; i < len(services); i += 15 {
		segment, query := view.Path(services[i].name)
		page.do(chromedp.Navigate(s.url + "/workloads/" + segment + "?" + query))
		page.until(isDrawn)
		if got := eval[string](page, "document.querySelector('h1').textContent"); got != strings.ReplaceAll(services[i].name, "\x00", "\ufffd") {
			t.Errorf("the page of %q is of %q", services[i].name, got)
		}
		page.harmless()
	}
	for _, path := range []string{"/pipeline", "/fairness", "/?q=" + "%3Cscript%3Ewindow.pwned%3D1%3C%2Fscript%3E"} {
		page.do(chromedp.Navigate(s.url + path))
		page.until(isLive)
		page.harmless()
	}
}

// harmless fails the test when a text became more than text: an element that
// no template has, a script that ran, an attribute that listens.
func (p *tab) harmless() {
	p.t.Helper()
	var bad []string
	if err := json.Unmarshal([]byte(eval[string](p, `JSON.stringify([
		...('pwned' in window ? ['a script ran'] : []),
		...[...document.querySelectorAll('img, iframe, style, base, textarea, script:not([src^="/web/"]), svg[onload]')].map(e => e.outerHTML.slice(0, 200)),
		...[...document.querySelectorAll('*')].filter(e => e.getAttributeNames().some(n => n.startsWith('on') || n === 'style' && !e.closest('.uplot'))).map(e => e.outerHTML.slice(0, 200)),
		...[...document.links].filter(a => a.origin !== location.origin).map(a => a.href)])`)), &bad); err != nil || len(bad) > 0 {
		p.t.Errorf("%s: %v %q", eval[string](p, "location.href"), err, bad)
	}
}
