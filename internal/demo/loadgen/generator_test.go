package loadgen

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/demo/service"
	"github.com/trimtab/trimtab/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// flat is a day without a peak.
func flat(rate float64) Day { return Day{Base: rate, Peak: rate, Width: 0.5} }

// starts recomputes the intended starts of target 0.
func starts(g *Generator) []time.Duration {
	a := arrivals{day: g.Targets[0].Day, length: g.For, rand: rand.New(rand.NewPCG(g.Seed, 0))}
	var out []time.Duration
	for {
		at, ok := a.next()
		if !ok {
			return out
		}
		out = append(out, at)
	}
}

func serveFor(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL + "/"
}

// A closed loop would send one request into the stall and see one slow answer.
func TestAServerThatStandsStillShowsItInTheLatencyOfAllWhoCame(t *testing.T) {
	gate := make(chan struct{})
	url := serveFor(t, func(http.ResponseWriter, *http.Request) { <-gate })
	opened := false
	g := Generator{For: 1500 * time.Millisecond, Seed: 3, Interval: 900 * time.Millisecond, Timeout: time.Minute,
		Targets: []Target{{Name: "a", URL: url, Day: flat(100), Latency: 100 * time.Millisecond}},
		Report: func(at time.Duration, _ []Result) {
			if !opened && at >= 900*time.Millisecond {
				opened = true
				close(gate)
			}
		}}
	totals, err := g.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := starts(&g)
	early := 0
	for _, at := range all {
		if at < 400*time.Millisecond {
			early++
		}
	}
	r := &totals[0]
	below, _ := r.Latency.FractionBelow(0.49)
	if slow := int(math.Round((1 - below) * r.Latency.Count())); slow < early {
		t.Errorf("%d latencies over 490 ms, but %d requests were due more than 500 ms before the stall ended", slow, early)
	}
	if r.Requests != len(all) || r.Failed+r.Shed > 0 || early < 20 {
		t.Errorf("%d requests of %d due, %d failed, %d shed, %d early", r.Requests, len(all), r.Failed, r.Shed, early)
	}
}

func TestTheSameSeedPlaysTheSameDay(t *testing.T) {
	g := Generator{For: time.Minute, Seed: 5, Targets: []Target{{Day: Day{Base: 5, Peak: 50, At: 0.3, Width: 0.2}}}}
	if diff := cmp.Diff(starts(&g), starts(&g)); diff != "" {
		t.Error(diff)
	}
	other := g
	other.Seed = 6
	if cmp.Equal(starts(&g), starts(&other)) {
		t.Error("another seed plays the same day")
	}
}

func TestRequestsComeAtTheRateOfTheDay(t *testing.T) {
	day := Day{Base: 20, Peak: 200, At: 0.9, Width: 0.3} // wraps around midnight
	g := Generator{For: 20 * time.Minute, Seed: 1, Targets: []Target{{Day: day}}}
	const slices = 24
	var got, want [slices]float64
	for _, at := range starts(&g) {
		got[int(at*slices/g.For)]++
	}
	for i := range slices * 1000 {
		want[i/1000] += day.Rate((float64(i)+0.5)/(slices*1000)) * g.For.Seconds() / (slices * 1000)
	}
	for i := range slices {
		if math.Abs(got[i]-want[i]) > 5*math.Sqrt(want[i]) {
			t.Errorf("hour %d: %v requests, want %.0f", i, got[i], want[i])
		}
	}
}

func TestEveryRequestIsCountedOnce(t *testing.T) {
	answers := map[string]http.HandlerFunc{
		"ok":     func(http.ResponseWriter, *http.Request) {},
		"failed": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"shed":   func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"broken": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	}
	g := Generator{For: 300 * time.Millisecond, Seed: 2, Timeout: 500 * time.Millisecond, MaxInFlight: 3}
	var names []string
	for _, name := range []string{"ok", "failed", "shed", "broken"} {
		names = append(names, name)
		g.Targets = append(g.Targets, Target{Name: name, URL: serveFor(t, answers[name]), Day: flat(100), Latency: time.Hour})
	}
	totals, err := g.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range totals {
		if r.Requests == 0 || r.Requests != r.OK+r.Slow+r.Failed+r.Shed || float64(r.Requests) != r.Latency.Count() {
			t.Errorf("%s: %+v", names[i], r)
		}
		if names[i] == "failed" && r.Failed+r.Shed != r.Requests {
			t.Errorf("a 503 counted as an answer: %+v", r)
		}
		if names[i] == "shed" && (r.Shed == 0 || r.OK > 0 || r.Failed == 0) {
			t.Errorf("with all slots taken: %+v", r)
		}
		if names[i] == "broken" && r.OK > 0 {
			t.Errorf("a broken connection counted as an answer: %+v", r)
		}
		if low, _ := r.Latency.Quantile(0); names[i] != "ok" && low < 0.49 {
			t.Errorf("%s: a request without an answer counts as %v s, less than the time-out", names[i], low)
		}
	}
}

func TestRequestsCarryTheirIntendedStart(t *testing.T) {
	late := make(chan time.Duration, 1000)
	url := serveFor(t, func(_ http.ResponseWriter, r *http.Request) {
		now := time.Now()
		late <- now.Sub(service.RequestStart(r.Header, now))
		if r.Header.Get(service.StartHeader) == "" {
			t.Error("no stamp")
		}
	})
	g := Generator{For: 200 * time.Millisecond, Seed: 2, Targets: []Target{{Name: "a", URL: url, Day: flat(100), Latency: time.Second}}}
	if _, err := g.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(late) == 0 {
		t.Fatal("no requests")
	}
	for range len(late) {
		if d := <-late; d < 0 {
			t.Errorf("stamp %v in the future", -d)
		}
	}
}

func TestTheEndOfTheContextEndsTheDay(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	arrived := make(chan struct{}, 1000)
	url := serveFor(t, func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	})
	go func() { <-arrived; cancel() }()
	g := Generator{For: time.Hour, Seed: 2, Timeout: time.Hour, Targets: []Target{{Name: "a", URL: url, Day: flat(100), Latency: time.Second}}}
	totals, err := g.Run(ctx)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if totals[0].Failed > 0 {
		t.Errorf("requests that we cut off ourselves counted as failures: %+v", totals[0])
	}
}

func TestNonsenseIsRefused(t *testing.T) {
	good := Target{URL: "http://127.0.0.1:1/", Day: flat(1), Latency: time.Second}
	for name, g := range map[string]Generator{
		"no targets":  {For: time.Second},
		"no time":     {Targets: []Target{good}},
		"no latency":  {For: time.Second, Targets: []Target{{Day: flat(1)}}},
		"NaN rate":    {For: time.Second, Targets: []Target{{Latency: 1, Day: flat(math.NaN())}}},
		"upside down": {For: time.Second, Targets: []Target{{Latency: 1, Day: Day{Base: 2, Peak: 1, Width: 0.1}}}},
		"no width":    {For: time.Second, Targets: []Target{{Latency: 1, Day: Day{Base: 1, Peak: 1}}}},
	} {
		if _, err := g.Run(t.Context()); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
