//go:build integration

package console_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/speculation"
)

// maxFirstView bounds what the first view of a page may load, compressed.
const maxFirstView = 300 << 10

// Expressions that tests wait for.
const (
	isLive  = "document.body.classList.contains('live')"
	isDrawn = "document.querySelectorAll('.uplot canvas').length === document.querySelectorAll('figure.chart:not([hidden])').length"
)

// pageOf are the pages, what each must show, and what to wait for.
type pageOf struct {
	name, path, ready string
	words             []string
}

func everyPage() []pageOf {
	return []pageOf{
		{"overview", "/", isLive, []string{"Allocated of cores", "of 20", "search", "misses its SLO", "payments", "held: no load from spans for 3 rounds", "90% under 200ms", "epoch 3", "3-1"}},
		{"workload", "/workloads/checkout?range=all", isLive + " && " + isDrawn, []string{"Why it has what it has", "limited by", "missing: no answer from Prometheus", "Rejected alternatives", "Outlined is where the tail grew: inventory", "58%, 91% of the growth", "short mark workloads that miss their SLO", "stay: the SLO would be missed", "Needs for its SLO, cores", "Decisions, newest first", "CPUQuota=", "kubectl patch", "SLO: 95% under 200ms"}},
		{"overload", "/workloads/search?range=all", isLive + " && " + isDrawn + " && !document.getElementById('refused').hidden", []string{"Requests that are shed", "Refused, requests/s", "low", "normal", "43"}},
		{"hosts", "/hosts", isLive, []string{"host-a", "of 18 cores", "of 64 GiB", "host-b.rack-7.example", "1 of 2 knobs cannot be used", "Lease ends in", "Least free", "in trouble"}},
		{"host", "/hosts/host-b.rack-7.example?pool=shop", isLive, []string{"What runs here", "cgroup v2 shop.slice/recommender@1.service", "no such file or directory", "of 4 cores", "2 instances of 1 workload"}},
		{"instances", "/workloads/recommender?range=all", isLive + " && " + isDrawn, []string{"Instances by host", "2 instances on 2 hosts, of which the slowest counts", "the slowest instance", "host-b.rack-7.example"}},
		{"pipeline", "/pipeline", isLive, []string{"host-a:4711", "epoch 3", "collector", "no spans arrive", "spans", "Redelivered"}},
		{"fairness", "/fairness", isLive, []string{"Sharing incentive", "Envy", "Dominant share", "64 GiB", "cpu", "Limited by", "checkout"}},
		{"plan", "/plan", isLive, []string{"Newest plan with moves", "recommend", "Approve", "Its lease"}},
		{"what-if", "/what-if?capacity:cpu=16", isLive, []string{"Who gains, who pays", "pays", "20 now", "no load from spans for 3 rounds", "unlikely", "Weight of checkout", "SLO of search", "16 (now 20)"}},
		{"report", "/report?since=24h", isLive, []string{"Report on pool shop", "SLOs were met in", "core-hours", "Gained SLO minutes", "Incidents", "search", "What is missing", "performance is known for less"}},
		{"discovered", "/workloads/images", isLive + " && " + isDrawn, []string{"To let trimtab advise on it", "- name: images", "p50, p95 and p99 of the requests seen", "Load", "found in the spans"}},
		{"jobs", "/jobs?host=host-a", isLive, []string{"Best-effort jobs on host-a", "train", "checkout", "0.3", "AllowBEGrowth"}},
		{"glossary", "/glossary", isLive, []string{"Glossary", "error budget"}},
		{"batch", "/batch", isLive, []string{"night", "2 hosts would take tasks", "no: cpu is over 0.8", "6 tasks run"}},
		{"job", "/batch?job=night", isLive, []string{"Job night", "exited with 1 after its third attempt", "cannot open /srv/scene", "25%", "granted on host-a"}},
	}
}

// besides lets the scene have what runs beside the pool: speculative and best-effort
// jobs, and a service that is in no configuration.
func (s *scene) besides() {
	now, p, slack := time.Now(), .25, .3
	for age := range 6 {
		s.view.Observe(&trimtab.Estimate{Workload: "images", Time: now.Add(time.Duration(age-5) * time.Second), Model: "none", Latency: map[string]trimtab.Seconds{"p50": .01, "p95": .03, "p99": .09},
			Load: &trimtab.LoadForecast{Now: 12, Mean: 12, Upper: 15, Level: .9, Model: "naive"}})
	}
	s.view.Observe(&colocation.Colocation{Host: "host-a", Pool: colocation.JobsPool("shop"), Policy: "rhythm", Mode: trimtab.Act, Time: now, Running: 1, Capacity: map[string]float64{"cpu": 4}, Used: map[string]float64{"cpu": 1},
		Services: []colocation.ServiceHere{{Workload: "checkout", Slack: &slack}}, Jobs: []colocation.Job{{ID: "batch/train", State: "running", Mode: trimtab.Act, Has: map[string]float64{"cpu": 1}}},
		Decisions: []colocation.HostDecision{{Time: now, Verb: "AllowBEGrowth", Why: "slack 0.3", Periods: 3}}})
	id := func(task string, n int) speculation.AttemptID {
		return speculation.AttemptID{Job: "night", Task: task, Attempt: n}
	}
	s.view.Observe(&speculation.JobState{Pool: "shop", Name: "night", Time: now, Submitted: now, By: "ann", State: speculation.StateRunning, Running: 1, Waiting: 40, Done: 7, Failed: 1, Omitted: 7, Tasks: []speculation.TaskState{
		{Name: "render-of-a-scene-with-a-long-name-17", State: speculation.StateRunning, Host: "host-b.rack-7.example", Attempts: 1, Granted: "host-a", Last: &speculation.Attempt{AttemptID: id("render-of-a-scene-with-a-long-name-17", 1), State: speculation.AttemptRunning, Progress: &p}},
		{Name: "render-2", State: speculation.StateFailed, Attempts: 3, Why: "exited with 1 after its third attempt", Last: &speculation.Attempt{AttemptID: id("render-2", 3), State: speculation.AttemptEnded, Outcome: "exited", Code: 1, LastLines: []string{"reading", "cannot open /srv/scene: " + strings.Repeat("no such file or directory ", 20)}}},
	}})
	for i, name := range []string{"host-a", "host-b.rack-7.example", "host-c"} {
		m := &speculation.Machine{Host: name, Pool: "shop", Time: now, Life: 1, Report: 1, Running: 2, Waiting: i}
		if name == "host-c" {
			m.Blocked = "cpu is over 0.8"
		}
		s.view.Observe(m)
	}
}

const names = `[...document.querySelectorAll('#workloads tbody th a')].map(e => e.textContent).join(' ')`

// TestTheConsoleInABrowser looks at the pages of a running shop as people do.
// What takes longer is in TestTheConsoleAsPeopleUseIt.
func TestTheConsoleInABrowser(t *testing.T) {
	b := openBrowser(t)
	services := shop()
	s := newScene(t, shopConfig(services))
	s.play(services, 40)
	for i, page := range everyPage() {
		// What is shown is fresh, however long the page before took.
		s.step(services, time.Now(), 41+i)
		s.besides()
		t.Run(page.name+" shows its data, small, and nothing from elsewhere", func(t *testing.T) { pageShows(t, b, s, page) })
	}
	t.Run("a change is shown without a reload", func(t *testing.T) { changeIsShown(t, b, s, services) })
}

func pageShows(t *testing.T, b context.Context, s *scene, page pageOf) {
	p := s.open(b, t, page.path, wide())
	p.until(page.ready)
	text := eval[string](p, "document.body.textContent.replace(/\\s+/g, ' ')")
	for _, w := range page.words {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in\n%s", w, text)
		}
	}
	if strings.Contains(text, "NaN") || strings.Contains(text, "undefined") {
		t.Errorf("nonsense in\n%s", text)
	}
	got := p.received()
	t.Logf("%s: %.1f KiB over the network for the first view", page.name, got/1024)
	if got > maxFirstView || got == 0 {
		t.Errorf("%.0f bytes, at most %d", got, maxFirstView)
	}
	p.screenshot(page.name, page.name != "overview")
	if page.name == "overview" {
		p.do(chromedp.EmulateViewport(1440, 790))
		p.screenshot("console", false)
	}
}

func changeIsShown(t *testing.T, b context.Context, s *scene, services []service) {
	i := slices.IndexFunc(services, func(w service) bool { return w.name == "cart" })
	for _, path := range []string{"/", "/workloads/cart"} {
		p := s.open(b, t, path, wide())
		p.until(isLive)
		p.do(chromedp.Evaluate[chromedp.Void]("window.same = true; document.querySelector('a[href]').focus()"))
		e := s.estimate(&services[i], time.Now(), 41)
		got := .1234
		if path != "/" {
			got = .2345
		}
		e.Performance = &got
		s.publish(e)
		want := fmt.Sprintf("%.0f%%", 100*got)
		p.until("document.querySelector('main').textContent.includes('" + want + "')")
		if !eval[bool](p, "window.same === true && document.activeElement.matches('a[href]')") {
			t.Errorf("%s was loaded again, or lost its focus", path)
		}
		if path == "/" {
			p.until(names + ".startsWith('cart ')")
		}
	}
}
