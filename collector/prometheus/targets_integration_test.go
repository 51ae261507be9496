//go:build integration

package prometheus_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/metric"
)

// pods count 20 requests a second each, for as long as they are there.
type pods struct {
	mu sync.Mutex
	// count and since are of each pod: requests up to then, and since when it serves, zero:
	// no more.
	count map[string]float64
	since map[string]time.Time
}

func (p *pods) serve(name string, on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if since := p.since[name]; !since.IsZero() {
		p.count[name] += 20 * time.Since(since).Seconds()
	}
	p.since[name] = time.Time{}
	if on {
		p.since[name] = time.Now()
	}
}

func (p *pods) requests(name string) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if since := p.since[name]; !since.IsZero() {
		return p.count[name] + 20*time.Since(since).Seconds()
	}
	return p.count[name]
}

// exporter is a pod as a target of its own, which may be cut off.
type exporter struct {
	*httptest.Server
	mu  sync.Mutex
	cut bool
}

func (e *exporter) setCut(cut bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cut = cut
}

func export(t *testing.T, p *pods, name string) *exporter {
	e := &exporter{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		e.mu.Lock()
		cut := e.cut
		e.mu.Unlock()
		if cut {
			http.Error(w, "cut off", http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = fmt.Fprintf(w, "requests_total %.2f\n", p.requests(name))
	}))
	t.Cleanup(e.Close)
	return e
}

// discover writes which targets there are, and returns the configuration that reads it.
func discover(t *testing.T) (scrapes string, set func(targets ...string)) {
	file := filepath.Join(t.TempDir(), "targets.json")
	set = func(targets ...string) {
		text := fmt.Sprintf(`[{"targets": ["%s"]}]`, strings.Join(targets, `", "`))
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	return fmt.Sprintf("scrape_configs:\n- job_name: shop\n  scrape_interval: 1s\n  scrape_timeout: 1s\n  file_sd_configs:\n  - files: [%q]\n", file), set
}

// asking asks for the load twice a second: until it is about that of two pods, then, once
// event has happened, so many times more.
func asking(t *testing.T, url string, n int, event func()) (after []*trimtab.Sample) {
	c, o := settings(url)
	c.Interval, c.Metrics = 500*time.Millisecond, metric.NewSet()
	c.Queries[0].Expr = "sum(rate(requests_total[10s]))"
	next, stop := running(t, c, o)
	defer stop()
	steady := 0
	for range 200 {
		if s := next(); s.Missing == "" && s.Value > 38 && s.Value < 42 {
			steady++
		} else {
			steady = 0
		}
		if steady == 10 {
			break
		}
	}
	if steady < 10 {
		t.Fatal("the load is not that of two pods")
	}
	event()
	for range n {
		s := next()
		t.Logf("%.1f/s, %v old %s", s.Value, time.Since(s.Time).Round(100*time.Millisecond), s.Missing)
		after = append(after, s)
	}
	return after
}

func eachServer(t *testing.T, test func(t *testing.T, program string)) {
	for program := range servers {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			test(t, program)
		})
	}
}

func TestARealServerThatScrapesAReplacedPodLeavesNoGap(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, program string) {
		p := &pods{count: map[string]float64{}, since: map[string]time.Time{}}
		a, b, c := export(t, p, "a"), export(t, p, "b"), export(t, p, "c")
		scrapes, set := discover(t)
		at := func(e *exporter) string { return e.Listener.Addr().String() }
		set(at(a), at(b))
		p.serve("a", true)
		p.serve("b", true)
		url := start(t, program, scrapes)
		missing, least := 0, 100.0
		for _, s := range asking(t, url, 60, func() {
			p.serve("b", false)
			p.serve("c", true)
			set(at(a), at(c))
		}) {
			if s.Missing != "" {
				missing++
			} else {
				least = min(least, s.Value)
			}
		}
		if missing > 8 || least < 25 {
			t.Errorf("%d of 60 answers are missing, the least load is %.1f/s of 40", missing, least)
		}
	})
}

func TestARealServerThatIsCutOffFromAPodMakesTheLoadMissing(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, program string) {
		p := &pods{count: map[string]float64{}, since: map[string]time.Time{}}
		a, b := export(t, p, "a"), export(t, p, "b")
		scrapes, set := discover(t)
		set(a.Listener.Addr().String(), b.Listener.Addr().String())
		p.serve("a", true)
		p.serve("b", true)
		url := start(t, program, scrapes)
		missing, why := 0, ""
		for _, s := range asking(t, url, 60, func() { b.setCut(true) }) {
			switch {
			case s.Missing != "":
				missing++
				if why == "" || strings.Contains(s.Missing, "up is 0") {
					why = s.Missing
				}
			case s.Value < 35:
				t.Errorf("the load reads %.1f/s of 40", s.Value)
			}
		}
		if missing < 30 || !strings.Contains(why, "up is 0") || !strings.Contains(why, b.Listener.Addr().String()) {
			t.Errorf("%d of 60 answers are missing: %s", missing, why)
		}
	})
}

// One target has all pods, with times of their own, as cAdvisor: a pod that is replaced
// gets no staleness marker.
func TestARealServerWithoutStalenessMarkersHoldsNobody(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, program string) {
		p := &pods{count: map[string]float64{}, since: map[string]time.Time{}}
		var mu sync.Mutex
		there := []string{"a", "b"}
		node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			for _, name := range there {
				_, _ = fmt.Fprintf(w, "requests_total{pod=%q} %.2f %d\n", name, p.requests(name), time.Now().UnixMilli())
			}
		}))
		defer node.Close()
		scrapes, set := discover(t)
		set(node.Listener.Addr().String())
		p.serve("a", true)
		p.serve("b", true)
		url := start(t, program, scrapes)
		missing, why := 0, ""
		for _, s := range asking(t, url, 60, func() {
			p.serve("b", false)
			p.serve("c", true)
			mu.Lock()
			there = []string{"a", "c"}
			mu.Unlock()
		}) {
			if s.Missing != "" {
				missing++
				why = s.Missing
			}
		}
		if missing > 4 {
			t.Errorf("%d of 60 answers are missing: %s", missing, why)
		}
	})
}

// What VictoriaMetrics answers without more is 30 s old, and looks new.
func TestARealServerAnswersAsOfNow(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, program string) {
		target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(w, "clock %.3f\n", float64(time.Now().UnixMilli())/1000)
		}))
		defer target.Close()
		scrapes, set := discover(t)
		set(target.Listener.Addr().String())
		wait := watch(t, start(t, program, scrapes), "max(clock)")
		wait("max(clock)", func(s *trimtab.Sample) bool {
			told := time.UnixMilli(int64(s.Value * 1000))
			return present(s) && time.Since(told) < 10*time.Second && told.Sub(s.Time).Abs() < 2*time.Second
		})
	})
}
