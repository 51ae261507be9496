//go:build integration

package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/bus/natsbus"
	"github.com/trimtab/trimtab/internal/trial"
)

// followed are the plans and outcomes of a site, as a console follows them.
type followed struct {
	mu              sync.Mutex
	plans, outcomes []trimtab.Value
}

// follow follows the site whose files are in a directory, on these servers.
func follow(t *testing.T, site, url string) *followed {
	t.Helper()
	at := filepath.Join(site, "console")
	b, err := natsbus.Open(t.Context(), natsbus.Config{URL: url, Source: "test", Role: natsbus.Console, Pool: "default",
		CA: filepath.Join(site, "ca.pem"), Cert: filepath.Join(at, "cert.pem"), Key: filepath.Join(at, "key.pem")})
	if err != nil {
		t.Fatal(err)
	}
	f := &followed{}
	stop, err := bus.Follow(t.Context(), b, true, func(v trimtab.Value) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if v.Kind() == trimtab.KindPlan {
			f.plans = append(f.plans, v)
		} else {
			f.outcomes = append(f.outcomes, v)
		}
	}, trimtab.KindPlan, trimtab.KindOutcome)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); b.Close() })
	return f
}

// open is nil once each plan that asks for something is answered.
func (f *followed) open() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	answered := map[string]bool{}
	for _, v := range f.outcomes {
		o := v.(*trimtab.Outcome)
		answered[stepOf(o.Epoch, o.Sequence, o.Step)] = true
	}
	for _, v := range f.plans {
		p := v.(*trimtab.Plan)
		if id := stepOf(p.Epoch, p.Sequence, p.Step); len(p.Actions) > 0 && !answered[id] {
			return fmt.Errorf("%s is not answered", id)
		}
	}
	return nil
}

// accounts compares what was answered so far with the plans, once these have arrived
// here too. It returns the plans without an answer as well.
func (f *followed) accounts(p *program) (answered, written int, open []string) {
	p.Helper()
	f.mu.Lock()
	outcomes := slices.Clone(f.outcomes)
	f.mu.Unlock()
	var plans []trimtab.Value
	p.until("every plan that was answered", func() error {
		f.mu.Lock()
		plans = slices.Clone(f.plans)
		f.mu.Unlock()
		known := map[string]bool{}
		for _, v := range plans {
			plan := v.(*trimtab.Plan)
			known[stepOf(plan.Epoch, plan.Sequence, plan.Step)] = true
		}
		for _, v := range outcomes {
			if o := v.(*trimtab.Outcome); !known[stepOf(o.Epoch, o.Sequence, o.Step)] {
				return fmt.Errorf("%s is not here", stepOf(o.Epoch, o.Sequence, o.Step))
			}
		}
		return nil
	})
	return account(p.T, plans, outcomes)
}

// allAnswered waits until each plan that asks for something is answered, and compares
// plans with answers.
func (f *followed) allAnswered(p *program) (answered, written int) {
	p.Helper()
	p.until("every plan is answered", f.open)
	answered, written, open := f.accounts(p)
	for _, id := range open {
		p.Errorf("%s was never answered", id)
	}
	return answered, written
}

// newest is the newest plan.
func (f *followed) newest() (p trimtab.Plan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.plans) > 0 {
		p = *f.plans[len(f.plans)-1].(*trimtab.Plan)
	}
	return p
}

// next waits for a plan that is made after a time and accepted by the agent, and
// returns how long that took from then.
func (f *followed) next(agent *program, since time.Time) time.Duration {
	agent.Helper()
	agent.until("a plan that is accepted", func() error {
		agent.limits()
		if p := f.newest(); !p.Time.After(since) {
			return fmt.Errorf("the newest is %s", p.ID())
		}
		if accepted(agent) == 0 {
			return fmt.Errorf("the agent has accepted none")
		}
		return nil
	})
	return time.Since(since)
}

// R1, of each stage by itself: each role is a process of its own, and one is killed
// at a random moment under load and started again. The times are those from a start
// to readiness.
func TestAKilledStageLosesNoDecisionAndCarriesNoneOutTwice(t *testing.T) {
	t.Parallel()
	s := newStages(t)
	tr := trial.Start(t, 4)
	running := map[string]*program{"planner": s.start("planner", "planner")}
	running["planner"].becomesReady() // the streams are there
	running["analyzer"] = s.start("analyzer", "analyzer")
	running["agent"] = s.start("agent", "agent-h1", "--host", "h1")
	running["collector"] = s.start("collector", "collector")
	for _, p := range running {
		p.becomesReady()
	}
	all, agent := follow(t, s.dir, s.url), running["agent"]
	running["collector"].serve()
	agent.until("both limits moved", agent.moved)
	roles := slices.Sorted(maps.Keys(running))
	slowest := map[string]time.Duration{}
	for i := range tr.N {
		role := roles[i%len(roles)]
		p := running[role]
		agent.during(time.Duration(tr.Rand.Int64N(int64(3*time.Second))), func() { agent.limits() })
		p.kill(false)
		began := time.Now()
		p.launch(p.line...)
		p.becomesReady()
		tr.Took(time.Since(began))
		slowest[role] = max(slowest[role], all.next(agent, time.Now()))
	}
	running["planner"].stop()
	answered, written := all.allAnswered(agent)
	agent.stop()
	if err := agent.restored(); err != nil {
		t.Errorf("not at the baselines: %v\n%s", err, agent.log())
	}
	if answered == 0 || written == 0 {
		t.Errorf("nothing was tried: %d answers, %d writes", answered, written)
	}
	tr.Notef("%d plans answered, %d writes; slowest next decision after readiness, with rounds of 1 s: %v", answered, written, slowest)
}

// R6: the planner that leads is stopped as by SIGSTOP, the other one leads, and when
// the first goes on it does nothing of what it was at. The times are those without a
// plan.
func TestAPlannerThatWasStoppedHasNoEffectWhenItGoesOn(t *testing.T) {
	t.Parallel()
	s := newStages(t)
	tr := trial.Start(t, 1)
	leads := s.start("planner", "planner")
	leads.becomesReady() // the streams are there
	other, agent, analyzer, collector := s.start("planner", "planner"), s.start("agent", "agent-h1", "--host", "h1"), s.start("analyzer", "analyzer"), s.start("collector", "collector")
	for _, p := range []*program{other, agent, analyzer, collector} {
		p.becomesReady()
	}
	all := follow(t, s.dir, s.url)
	collector.serve()
	for i := range tr.N {
		agent.until("both limits moved", agent.moved)
		stop := 15 * time.Second
		if i > 0 {
			stop = time.Minute
		}
		epoch := all.newest().Epoch
		leads.signal(syscall.SIGSTOP)
		began := time.Now()
		agent.until("a plan of a later epoch", func() error {
			agent.limits()
			if p := all.newest(); p.Epoch <= epoch {
				return fmt.Errorf("the newest is %s", p.ID())
			}
			return nil
		})
		tr.Took(time.Since(began))
		agent.during(stop-time.Since(began), func() { agent.limits() })
		leads.signal(syscall.SIGCONT)
		leads.until("it knows that it leads no longer", func() error {
			agent.limits()
			if n := leads.sum("trimtab_leader_epoch"); n != 0 {
				return fmt.Errorf("epoch %v", n)
			}
			return nil
		})
		all.next(agent, time.Now())
		leads, other = other, leads
	}
	for _, p := range []*program{leads, other} {
		if n := p.sum("trimtab_stage_panics_total"); n != 0 {
			tr.Failf("%v panics\n%s", n, p.log())
		}
		p.stop()
	}
	answered, written := all.allAnswered(agent)
	tr.Notef("%d plans answered, %d writes, none of an epoch that was over", answered, written)
}
