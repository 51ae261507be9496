package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus/natsbus"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/site"
)

// decided stores plans of so many decisions each, with their outcomes, as a
// pipeline of yesterday would have left them, and opens a site on that store.
func decided(tb testing.TB, plans, each, workloads int) *site.Site {
	tb.Helper()
	cfg := config.Default()
	cfg.Storage.Path = tb.TempDir()
	cfg.OTLP.GRPC, cfg.OTLP.HTTP, cfg.Jaeger.GRPC, cfg.Web.ListenAddress = "off", "off", "off", "127.0.0.1:0"
	logger := slog.New(slog.DiscardHandler)
	b, err := natsbus.Open(tb.Context(), natsbus.Config{Dir: filepath.Join(cfg.Storage.Path, "bus"), Source: "before", Logger: logger})
	if err != nil {
		tb.Fatal(err)
	}
	began := time.Now().Add(-time.Duration(plans) * 10 * time.Second)
	for n := range plans {
		p := &trimtab.Plan{Pool: "cpu", Epoch: 1, Sequence: uint64(n + 1), Step: 1, Last: true, Time: began.Add(time.Duration(n) * 10 * time.Second), Lease: 60, Cause: trimtab.Cause{Kind: codes.CauseTick}, Capacity: 4000}
		o := &trimtab.Outcome{Pool: "cpu", Host: "h", Epoch: 1, Sequence: p.Sequence, Step: 1, Time: p.Time}
		for a := range each {
			name := fmt.Sprintf("service-%04d", (n*each+a)%workloads)
			lower, target := .5, 3.0
			p.Actions = append(p.Actions, trimtab.Action{KnobID: trimtab.KnobID{Pool: p.Pool, Host: "h", Workload: name, Resource: "cpu"}, Expect: trimtab.Units(1), Set: trimtab.Units(1.5), Mode: trimtab.Act,
				Why: trimtab.Reason{Summary: fmt.Sprintf("raise %s from 1 to 1.5 cores: its SLO needs %.3f", name, 2+float64(n%1000)/1000), Model: "bintree/1", Binding: trimtab.Binding{Kind: "step"},
					Bounds: &trimtab.Band{Lower: lower, Mean: .7, Upper: .9}, Utility: &lower, Target: &target, Demand: &target,
					Inputs:       []trimtab.Input{{Name: "load", Value: 100, Age: 1, Source: "spans"}, {Name: "performance", Value: .6, Age: 1, Source: "spans"}, {Name: "allocation", Value: 1, Age: 1, Source: "actuator"}},
					Alternatives: []trimtab.Alternative{{Set: 1, Objective: .4, Why: "stay"}}}})
			o.Results = append(o.Results, trimtab.Result{KnobID: trimtab.KnobID{Pool: o.Pool, Host: o.Host, Workload: name, Resource: "cpu"}, Status: trimtab.Written, Asked: trimtab.Units(1.5), Found: trimtab.Units(1.5), Known: true})
		}
		for _, v := range []trimtab.Value{p, o} {
			if err := b.Publish(tb.Context(), v); err != nil {
				tb.Fatal(err)
			}
		}
	}
	if err := b.Close(); err != nil {
		tb.Fatal(err)
	}
	s, err := site.Open(tb.Context(), cfg, site.Options{Logger: logger})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// awaitDecisions returns when the view has read so many decisions on one
// workload again, and all their results.
func awaitDecisions(tb testing.TB, s *site.Site, workload string, want int) {
	tb.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; {
		d, _, err := s.View().Decisions(workload, "", 1, time.Now())
		if err != nil {
			tb.Fatal(err)
		}
		if d.Total == want && d.Decisions[0].Result != nil {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("%d of %d decisions", d.Total, want)
		}
		<-time.After(10 * time.Millisecond)
	}
}

func TestDecisionsAndWhatCameOfThemSurviveARestart(t *testing.T) {
	s := decided(t, 50, 2, 4)
	awaitDecisions(t, s, "service-0001", 25)
	var d view.Decisions
	getJSON(t, s, "/api/v1/workloads/service-0001/decisions?limit=5", &d)
	if len(d.Decisions) != 5 || d.Next == "" || d.Decisions[0].Plan != "1-49" {
		t.Fatalf("%+v", d)
	}
	old := d.Decisions[4]
	if old.Result == nil || old.Result.Status != trimtab.Written || old.Effect == nil || old.Effect.Performance != view.Same || *old.Effect.After != .6 {
		t.Errorf("%+v, result %+v, effect %+v", old, old.Result, old.Effect)
	}
	var h view.History
	getJSON(t, s, "/api/v1/workloads/service-0001/history", &h)
	if len(h.Time) != 25 || h.Performance[0] == nil {
		t.Errorf("%d points: %+v", len(h.Time), h)
	}
	var b bytes.Buffer
	t.Setenv("TRIMTAB_URL", "http://"+s.WebAddress())
	if code := Main(t.Context(), []string{"explain", "service-0001"}, &b, &b); code != exitDone || !strings.Contains(b.String(), "performance same: 0.6 -> 0.6") {
		t.Errorf("code %d: %s", code, b.String())
	}
}

// BenchmarkExplain stores 10^5 decisions on 1,000 workloads, starts a site on
// that store and prints how long it takes to read them again, and the p95 of
// `trimtab explain` as a process and of the API over HTTP; the promise is
// 200 ms for both.
func BenchmarkExplain(b *testing.B) {
	const plans, each, workloads = 4000, 25, 1000
	s := decided(b, plans, each, workloads)
	began := time.Now()
	awaitDecisions(b, s, "service-0999", plans*each/workloads)
	reload := time.Since(began)
	var process, api []time.Duration
	for b.Loop() {
		cmd := exec.Command(os.Args[0], "explain", fmt.Sprintf("service-%04d", len(api)%workloads))
		cmd.Env = append(os.Environ(), "TRIMTAB_URL=http://"+s.WebAddress())
		began := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("limited by")) {
			b.Fatalf("%v\n%s", err, out)
		}
		process = append(process, time.Since(began))
		began = time.Now()
		resp, err := http.Get(fmt.Sprintf("http://%s/api/v1/workloads/service-%04d?history=20", s.WebAddress(), len(api)%workloads))
		if err != nil {
			b.Fatal(err)
		}
		_, err = new(bytes.Buffer).ReadFrom(resp.Body)
		resp.Body.Close()
		if err != nil {
			b.Fatal(err)
		}
		api = append(api, time.Since(began))
	}
	p95 := func(d []time.Duration) float64 {
		slices.Sort(d)
		return float64(d[len(d)*95/100].Microseconds()) / 1000
	}
	b.ReportMetric(p95(process), "explain-p95-ms")
	b.ReportMetric(p95(api), "api-p95-ms")
	b.ReportMetric(reload.Seconds(), "reload-s")
	b.Logf("10^5 stored decisions: trimtab explain p95 %.0f ms (asked: <= 200), API p95 %.1f ms (asked: <= 200), read again after a restart in %.1f s", p95(process), p95(api), reload.Seconds())
}
