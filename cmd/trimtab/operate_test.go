package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/site"
	"github.com/trimtab/trimtab/internal/trial"
)

// operated is a site under a steady load, with the command line against it.
type operated struct {
	*testing.T
	site *site.Site
	q    quotas
}

// operate starts a site on the two workloads of the loop test, in a mode, and
// keeps requests coming.
func operate(t *testing.T, q quotas, mode trimtab.Mode, load func() (*config.Config, error)) *operated {
	t.Helper()
	cfg := loopConfig(t, q.root)
	for i := range cfg.Workloads {
		cfg.Workloads[i].Mode = mode
	}
	s, err := site.Open(t.Context(), cfg, site.Options{Logger: slog.New(slog.DiscardHandler), Load: load})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	sent := make(chan struct{})
	requests := newSender(t, s.OTLPAddress(), q)
	go func() {
		defer close(sent)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			// Errors show as workloads without data.
			_ = requests.send(ctx)
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-sent
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &operated{t, s, q}
}

// trimtab runs one command line against the site, or another that it names.
func (o *operated) trimtab(args ...string) (code int, out string) {
	o.Helper()
	var b bytes.Buffer
	if !slices.Contains(args, "--url") {
		args = append(slices.Clone(args), "--url=http://"+o.site.WebAddress())
	}
	code = Main(context.Background(), args, &b, &b)
	return code, b.String()
}

// command sends a command until the bus takes it. A busy machine may need longer
// than the second after which a command is refused.
func (o *operated) command(args ...string) {
	o.Helper()
	o.eventually(strings.Join(args, " ")+" to be taken", func() bool {
		code, out := o.trimtab(args...)
		if code != exitDone {
			o.Logf("code %d: %s", code, out)
		}
		return code == exitDone
	})
}

// eventually waits for what must come true.
func (o *operated) eventually(what string, ok func() bool) {
	o.Helper()
	deadline := time.NewTimer(5 * time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case err := <-o.site.Failed():
			o.Fatal(err)
		case <-deadline.C:
			o.Fatalf("%s: not after five minutes: %s", what, statusOf(o.T, o.site))
		case <-tick.C:
		}
	}
}

func TestRecommendDoesEverythingButTheWriteAndApplyWritesOnce(t *testing.T) {
	t.Parallel()
	q := fixtureQuotas(t)
	o := operate(t, q, trimtab.Recommend, nil)
	var plan trimtab.Plan
	o.eventually("a plan that raises hungry", func() bool {
		code, out := o.trimtab("plan", "-o", "json")
		plan = trimtab.Plan{}
		if code != exitDone || json.Unmarshal([]byte(out), &plan) != nil {
			return false
		}
		raised, lowered := false, false
		for _, a := range plan.Actions {
			raised = raised || a.Workload == "hungry" && a.Expect.Less(a.Set)
			lowered = lowered || a.Workload == "modest" && a.Set.Less(a.Expect)
		}
		return raised && lowered
	})
	if h, m := q.read("hungry"), q.read("modest"); h != 0.5 || m != 0.5 {
		t.Fatalf("recommend wrote: hungry %v, modest %v", h, m)
	}
	if code, out := o.trimtab("diff"); code != exitChanges || !strings.Contains(out, "hungry") {
		t.Errorf("diff: code %d: %s", code, out)
	}
	o.eventually("the explanation with the actuator's answer", func() bool {
		code, out := o.trimtab("explain", "hungry")
		return code == exitDone && strings.Contains(out, "input load") && strings.Contains(out, "recommended")
	})
	// A busy machine may not take a command at once, nor do it while it is asked.
	o.eventually("apply to be done", func() bool {
		code, out := o.trimtab("apply", plan.ID())
		t.Log(out)
		return code == exitDone && strings.Contains(out, "apply "+plan.ID()) || q.read("hungry") > 0.5
	})
	o.eventually("the applied plan", func() bool { return q.read("hungry") > 0.5 })
	if h, m := both(q.read); h+m > 1+1e-6 {
		t.Errorf("the sum is %v + %v", h, m)
	}
	// The state has changed since: the same plan is refused.
	was := q.read("hungry")
	if _, out := o.trimtab("apply", plan.ID()); q.read("hungry") != was {
		t.Errorf("an outdated plan was applied again: %s", out)
	}
	if code, out := o.trimtab("apply", "9-999999", "--wait", "2s"); code == exitDone && !strings.Contains(out, "held") && !strings.Contains(out, "refused") {
		t.Errorf("apply of an unknown plan: code %d: %s", code, out)
	}
}

// R13. The times are those from the command to the status that says so.
func TestPauseFreezesEveryKnobAndKeepsLeasesAlive(t *testing.T) {
	t.Parallel()
	tr := trial.Start(t, 1)
	q := fixtureQuotas(t)
	o := operate(t, q, trimtab.Act, nil)
	o.eventually("hungry to be raised", func() bool { return q.read("hungry") > 0.5 })
	for range tr.N {
		var s view.Status
		began := time.Now()
		o.command("pause")
		o.eventually("the pause", func() bool { getJSON(t, o.site, "/api/v1/status", &s); return s.Paused })
		tr.Took(time.Since(began))
		h, m := q.read("hungry"), q.read("modest")
		plan := s.Plan
		o.eventually("three more rounds", func() bool {
			getJSON(t, o.site, "/api/v1/status", &s)
			_, a, _ := trimtab.ParsePlanID(s.Plan)
			_, b, _ := trimtab.ParsePlanID(plan)
			return a >= b+3
		})
		if q.read("hungry") != h || q.read("modest") != m || s.LeaseLeft <= 0 {
			tr.Failf("paused: hungry %v was %v, modest %v was %v, lease %v", q.read("hungry"), h, q.read("modest"), m, s.LeaseLeft)
		}
		o.command("resume")
		o.eventually("the end of the pause", func() bool { getJSON(t, o.site, "/api/v1/status", &s); return !s.Paused })
	}
}

func TestAReloadIsAppliedABadOneKeepsTheOldAndARemovedWorkloadIsRestored(t *testing.T) {
	t.Parallel()
	q := fixtureQuotas(t)
	var next func() (*config.Config, error)
	o := operate(t, q, trimtab.Act, func() (*config.Config, error) { return next() })
	o.eventually("modest to be lowered", func() bool { return q.read("modest") < 0.5 })
	broken := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(broken, []byte("pool: {cpu: minus}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	next = func() (*config.Config, error) { return config.Load(broken) }
	if err := o.site.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "bad.yaml:1:") {
		t.Errorf("a bad file: %v", err)
	}
	if len(o.site.Config().Workloads) != 2 {
		t.Fatal("a bad reload replaced the configuration")
	}
	old := *o.site.Config()
	next = func() (*config.Config, error) {
		c := old
		c.Workloads = []config.Workload{old.Workloads[0]}
		return &c, nil
	}
	if err := o.site.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.eventually("modest to be restored", func() bool { return q.read("modest") == 0.5 })
	next = func() (*config.Config, error) { c := old; c.Storage.Path = "elsewhere"; return &c, nil }
	if err := o.site.Reload(t.Context()); err == nil {
		t.Error("storage changed while running")
	}
}

// Limits, journal, lease and what was learnt outlive a reload: only what is gone from the file is
// put back.
func TestAReloadThatChangesOneNumberPutsNoLimitBackAndForgetsNothing(t *testing.T) {
	t.Parallel()
	q := fixtureQuotas(t)
	var next func() (*config.Config, error)
	o := operate(t, q, trimtab.Act, func() (*config.Config, error) { return next() })
	o.eventually("modest to be lowered", func() bool { return q.read("modest") < 0.4 })
	// What shall change what is planned comes last: the changes add up.
	for _, reload := range []struct {
		name   string
		change func(*config.Config)
	}{
		{"pool", func(c *config.Config) { c.Pool.CPU = 1.1 }},
		{"max", func(c *config.Config) { c.Workloads[0].Knob.CPU.Max = 0.8 }},
		{"min", func(c *config.Config) { c.Workloads[1].Knob.CPU.Min = 0.06 }},
		{"lease", func(c *config.Config) { c.Lease *= 2 }},
		{"SLO", func(c *config.Config) { c.Workloads[1].SLO.Fraction = 0.9 }},
		{"weight", func(c *config.Config) { c.Workloads[1].Weight = 2 }},
	} {
		name := reload.name
		old := *o.site.Config()
		next = func() (*config.Config, error) {
			c := old
			c.Workloads = slices.Clone(old.Workloads)
			for i := range c.Workloads {
				cpu := *c.Workloads[i].Knob.CPU
				c.Workloads[i].Knob.CPU = &cpu
			}
			reload.change(&c)
			return &c, nil
		}
		if err := o.site.Reload(t.Context()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		hungry, modest := both(q.read)
		if modest >= 0.5 || hungry <= 0.5 {
			t.Errorf("%s: hungry has %v and modest %v after the reload, as before trimtab", name, hungry, modest)
		}
		if sum := hungry + modest; sum > 1.1+1e-9 {
			t.Errorf("%s: %v cores are given of 1.1", name, sum)
		}
		rounds := o.site.View().Rounds()
		o.eventually("three rounds after the reload", func() bool {
			for _, workload := range []string{"hungry", "modest"} {
				var e view.Explanation
				if getJSON(t, o.site, "/api/v1/workloads/"+workload, &e); strings.Contains(e.Decision, "nothing learnt") {
					t.Fatalf("%s: %s", name, e.Decision)
				}
			}
			return o.site.View().Rounds() >= rounds+3
		})
	}
	if n := restoresOf(t, o.site); n != 0 {
		t.Errorf("%v limits were put back", n)
	}
}

// restoresOf is how many limits a site has put back.
func restoresOf(t *testing.T, s *site.Site) (sum float64) {
	t.Helper()
	resp, err := http.Get("http://" + s.WebAddress() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if name, value, _ := strings.Cut(lines.Text(), "} "); strings.HasPrefix(name, "trimtab_actuator_restores_total{") {
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += v
		}
	}
	return sum
}

func TestAbsentSpansHoldAWorkloadAndItSaysWhy(t *testing.T) {
	t.Parallel()
	q := fixtureQuotas(t)
	cfg := loopConfig(t, q.root)
	s, err := site.Open(t.Context(), cfg, site.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	requests := newSender(t, s.OTLPAddress(), q)
	o := &operated{t, s, q}
	o.eventually("hungry to be raised", func() bool {
		if err := requests.send(t.Context()); err != nil {
			t.Fatal(err)
		}
		return q.read("hungry") > 0.5
	})
	// The spans stop. Nobody may be lowered while that is known of both. On a busy machine
	// spans can be counted after that, and move one once more: then it begins anew.
	held, was := s.View().Rounds(), []float64(nil)
	o.eventually("both to be held for eight rounds", func() bool {
		for _, name := range []string{"hungry", "modest"} {
			var e view.Explanation
			if getJSON(t, s, "/api/v1/workloads/"+name, &e); !heldAndDone(&e) {
				held, was = s.View().Rounds(), nil
			}
		}
		if was == nil && s.View().Rounds() >= held+3 {
			was = []float64{q.read("hungry"), q.read("modest")}
		}
		return was != nil && s.View().Rounds() >= held+8
	})
	if now := []float64{q.read("hungry"), q.read("modest")}; now[0] < was[0] || now[1] < was[1] {
		t.Errorf("without spans: %v became %v", was, now)
	}
}
