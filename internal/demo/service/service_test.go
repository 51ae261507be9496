package service

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/loopback"
)

const nobody = "127.0.0.1:1" // no receiver: spans are lost, requests are not

func valid() Config {
	return Config{Name: "a", Workload: "a", Listen: "127.0.0.1:0", OTLP: nobody, Slots: 1, Queue: 8, Patience: time.Minute, Seed: 1}
}

// running starts a service for the test and returns its URL.
func running(t *testing.T, cfg Config) string {
	t.Helper()
	addr := make(chan string, 1)
	cfg.Ready = func(a string) { addr <- a }
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, cfg) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	select {
	case a := <-addr:
		return "http://" + a
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	}
	return ""
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestABurnUsesTheCPUTimeItWasAskedFor(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := ThreadTime()
	Burn(5 * time.Millisecond)
	if used := ThreadTime() - before; used < 5*time.Millisecond {
		t.Errorf("used %v of CPU time", used)
	}
}

func TestDrawsHaveTheirMeanAndVariation(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	d := Draw{Mean: 10 * time.Millisecond, CoV: 0.5}
	const n = 100_000
	var sum, squares float64
	for range n {
		x := d.Sample(r).Seconds()
		sum += x
		squares += x * x
	}
	mean := sum / n
	cov := math.Sqrt(squares/n-mean*mean) / mean
	if math.Abs(mean-0.01) > 0.0001 || math.Abs(cov-0.5) > 0.02 {
		t.Errorf("mean %v s, coefficient of variation %v", mean, cov)
	}
}

func TestAServiceAnswersAndCounts(t *testing.T) {
	stock := valid()
	stock.Name = "stock"
	front := valid()
	front.CPU.Mean, front.Wait.Mean = time.Millisecond, time.Millisecond
	front.Calls = running(t, stock) + LeafPath
	url := running(t, front)
	for range 3 {
		if code, _ := get(t, url+"/"); code != http.StatusOK {
			t.Fatalf("status %d", code)
		}
	}
	_, metrics := get(t, url+"/metrics")
	for _, want := range []string{`http_requests_total{code="200",service="a",workload="a"} 3`, "http_request_duration_seconds_count{", "http_requests_in_flight{"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in\n%s", want, metrics)
		}
	}
	_, metrics = get(t, strings.TrimSuffix(front.Calls, LeafPath)+"/metrics")
	if want := `http_requests_total{code="200",service="stock",workload="a"} 3`; !strings.Contains(metrics, want) {
		t.Errorf("the next component was not called 3 times:\n%s", metrics)
	}
}

func TestTwoComponentsThatCallEachOtherEnd(t *testing.T) {
	front, stock := valid(), valid()
	front.Listen = loopback.Address(t)
	stock.Calls = "http://" + front.Listen + LeafPath
	front.Calls = running(t, stock) + "/"
	url := running(t, front)
	if code, _ := get(t, url+"/"); code != http.StatusOK {
		t.Errorf("status %d", code)
	}
	if _, metrics := get(t, url+"/metrics"); !strings.Contains(metrics, `http_requests_total{code="200",service="a",workload="a"} 2`) {
		t.Errorf("want the call and the call back:\n%s", metrics)
	}
}

func TestWorkersShareOneQueueAndLoseNothingWhenOneEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lend.sock")
	lender, err := Lend("127.0.0.1:0", path)
	if err != nil {
		t.Fatal(err)
	}
	defer lender.Close()
	cfg := valid()
	cfg.Inherit, cfg.Wait.Mean = path, 2*time.Millisecond
	running(t, cfg)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	second := cfg
	ready, ended := make(chan string, 1), make(chan error, 1)
	second.Ready = func(a string) { ready <- a }
	go func() { ended <- Run(ctx, second) }()
	<-ready
	var all sync.WaitGroup
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for i := range 60 {
		all.Go(func() {
			resp, err := client.Get("http://" + lender.Addr() + "/")
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Errorf("status %d", resp.StatusCode)
			}
		})
		if i == 30 {
			end()
		}
	}
	all.Wait()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAFullQueueAnswers503AtOnce(t *testing.T) {
	q := newQueue(1, 1)
	later := time.Now().Add(time.Hour)
	if err := q.enter(t.Context(), later); err != nil {
		t.Fatal(err)
	}
	second := make(chan error, 1)
	go func() { second <- q.enter(t.Context(), later) }()
	for q.waiting.Load() < 1 {
		runtime.Gosched()
	}
	if err := q.enter(t.Context(), later); !errors.Is(err, errFull) {
		t.Errorf("third of one slot and one place: %v", err)
	}
	q.leave()
	if err := <-second; err != nil {
		t.Errorf("second: %v", err)
	}
	q.leave()
	if q.waiting.Load() != 0 || len(q.slots) != 0 {
		t.Errorf("%d waiting, %d slots taken at the end", q.waiting.Load(), len(q.slots))
	}
}

func TestWhoHasGoneOrWaitedTooLongCostsNoCPU(t *testing.T) {
	q := newQueue(1, 4)
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	if err := q.enter(t.Context(), time.Now().Add(-time.Second)); !errors.Is(err, errLate) {
		t.Errorf("late at a free slot: %v", err)
	}
	if err := q.enter(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := q.enter(t.Context(), time.Now().Add(time.Millisecond)); !errors.Is(err, errLate) {
		t.Errorf("waited too long: %v", err)
	}
	if err := q.enter(gone, time.Now().Add(time.Hour)); !errors.Is(err, context.Canceled) {
		t.Errorf("hung up: %v", err)
	}
	q.leave()
	if len(q.slots) != 0 {
		t.Error("a slot was kept")
	}
}

func TestAStampNeverMakesARequestLookFaster(t *testing.T) {
	now := time.Unix(1_800_000_000, 500_000_000)
	for value, want := range map[string]time.Duration{
		"":                     0,
		"t=1800000000.000000":  500 * time.Millisecond,
		"1799999999.5":         time.Second,
		"t=1800000009":         0, // the future
		"t=1799999000":         0, // long ago
		"t=-5":                 0,
		"t=NaN":                0,
		"t=1e300":              0,
		"t=Inf":                0,
		"yesterday":            0,
		"t=1799999970.5000000": 30 * time.Second,
	} {
		h := http.Header{}
		if value != "" {
			h.Set(StartHeader, value)
		}
		if got := now.Sub(RequestStart(h, now)); (got - want).Abs() > time.Microsecond {
			t.Errorf("%q: %v ago, want %v", value, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		ago := time.Duration(rapid.Int64Range(0, int64(maxQueued)).Draw(t, "ago"))
		h := http.Header{}
		SetRequestStart(h, now.Add(-ago))
		if got := now.Sub(RequestStart(h, now)); (got-ago).Abs() > 3*time.Microsecond && ago < maxQueued-time.Millisecond {
			t.Fatalf("%v came back as %v", ago, got)
		}
	})
}

func FuzzRequestStart(f *testing.F) {
	for _, s := range []string{"", "t=1800000000.5", "t=NaN", "1e999", "t=t="} {
		f.Add(s)
	}
	now := time.Unix(1_800_000_000, 0)
	f.Fuzz(func(t *testing.T, s string) {
		start := RequestStart(http.Header{StartHeader: {s}}, now)
		if start.After(now) || now.Sub(start) > maxQueued {
			t.Errorf("%q: start %v", s, start)
		}
	})
}

func TestFlagsCarryTheWholeConfiguration(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) Draw {
			return Draw{Mean: time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, name)), CoV: rapid.Float64Range(0, 10).Draw(t, name+" cov")}
		}
		want := Config{
			Name: rapid.StringMatching(`[a-z-]{1,9}`).Draw(t, "name"), Workload: "w", Listen: "127.0.0.1:1", OTLP: "h:1", Calls: "http://h:2/",
			Inherit: rapid.SampledFrom([]string{"", "/run/a.sock"}).Draw(t, "inherit"), CPU: draw("cpu"), Wait: draw("wait"),
			Slots: rapid.IntRange(1, 99).Draw(t, "slots"), Queue: rapid.IntRange(0, 99).Draw(t, "queue"),
			Patience: time.Duration(rapid.Int64Range(1, 1e12).Draw(t, "patience")), Seed: rapid.Uint64().Draw(t, "seed"),
		}
		got, err := ParseArgs(want.Args())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Config{}, "Ready")); diff != "" {
			t.Error(diff)
		}
	})
}

func TestABadConfigurationIsRefused(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no name":     func(c *Config) { c.Name = "" },
		"no workload": func(c *Config) { c.Workload = "" },
		"no address":  func(c *Config) { c.Listen = "" },
		"no slots":    func(c *Config) { c.Slots = 0 },
		"no patience": func(c *Config) { c.Patience = 0 },
		"no host":     func(c *Config) { c.Calls = "/x" },
		"NaN":         func(c *Config) { c.CPU.CoV = math.NaN() },
		"negative":    func(c *Config) { c.Wait.Mean = -1 },
	} {
		cfg := valid()
		change(&cfg)
		if err := Run(t.Context(), cfg); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, err := ParseArgs([]string{"--cpu=often"}); !errors.Is(err, trimtab.ErrInvalid) {
		t.Errorf("bad flag: error %v", err)
	}
}

// TestMain turns spans off the way a user would.
func TestMain(m *testing.M) {
	if err := os.Setenv("OTEL_TRACES_SAMPLER", "always_off"); err != nil {
		panic(err)
	}
	m.Run()
}
