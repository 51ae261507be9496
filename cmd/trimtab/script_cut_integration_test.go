//go:build integration

package main

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/trial"
)

// scriptLease is in the script's trimtab.yaml.
const scriptLease = 20 * time.Second

// addresses are those of the script's hosts, by name.
func (s *script) addresses() map[string]string {
	last := map[string]string{"n1": "11", "n2": "12", "n3": "13", "c1": "21", "c2": "22", "h1": "31", "h2": "32", "h3": "33"}
	for h := range last {
		last[h] = s.net + "." + last[h]
	}
	return last
}

// cut cuts a host off from all others but this machine, in silence, until heal is
// called.
func (s *script) cut(host, ways string) (heal func()) {
	s.Helper()
	all := s.addresses()
	namespace := func(h string) string { return filepath.Base(s.group) + "-" + h }
	var undo []func()
	for _, other := range slices.Sorted(maps.Keys(all)) {
		if other == host {
			continue
		}
		if ways != "to it" {
			undo = append(undo, misdirect(s.T, namespace(host), "eth0", all[other]))
		}
		if ways != "from it" {
			undo = append(undo, misdirect(s.T, namespace(other), "eth0", all[host]))
		}
	}
	return func() {
		for _, f := range undo {
			f()
		}
	}
}

// scriptKnobs are the limits of an agent's host with the baseline of each.
func scriptKnobs(host string) map[string]float64 {
	return map[string]map[string]float64{
		"h1": {"h1/shop/checkout@1": 0.2, "h1/shop/search": 0.2}, "h2": {"h2/shop/checkout@2": 0.2}, "h3": {"h3/reports": 0.15},
	}[host]
}

// baselines is nil once a host has those it began with.
func (s *script) baselines(host string) error {
	for path, want := range scriptKnobs(host) {
		if v, err := s.quota(path); err != nil || math.Abs(v-want) > 1e-3 {
			return fmt.Errorf("%s has %v, its baseline is %v: %w", path, v, want, err)
		}
	}
	return nil
}

// R5: every link of a site is cut, one after the other, both ways and each way alone,
// for 1 to 300 s: of a host with an agent, of one with central stages, of a NATS
// server. A host that is cut off holds what it has until its lease ends and is at its
// baselines then; the others go on; nobody is ever over capacity, and nothing of an old plan is done.
// The times are those from the end of the lease, at the latest, to the baselines.
func TestACutLinkOfAnyHostIsSafe(t *testing.T) {
	t.Parallel()
	s := startScript(t)
	tr := trial.Start(t, 2)
	stop := s.watch()
	agents := map[string]*program{}
	for _, h := range scriptHosts() {
		agents[h] = s.process("agent", h)
		agents[h].becomesReady()
	}
	var urls []string
	for _, n := range []string{"n1", "n2", "n3"} {
		urls = append(urls, "tls://"+s.addresses()[n]+":4222")
	}
	all := follow(t, filepath.Join(s.dir, "site"), strings.Join(urls, ","))
	links, lengths := []string{"h2", "c1", "n1", "h1", "c2"}, []time.Duration{scriptLease * 3 / 2, 10 * time.Second, time.Second, 5 * time.Minute}
	for i := range tr.N {
		link, length, ways := links[i%len(links)], lengths[i/len(links)%len(lengths)], []string{"both ways", "from it", "to it"}[i/20%3]
		for _, a := range agents {
			more(a, 2)
		}
		agent := agents[link]
		if agent != nil {
			agent.until("its limits are elsewhere than at the baselines", func() error {
				if s.baselines(link) == nil {
					return fmt.Errorf("they are there")
				}
				return nil
			})
		}
		heal := s.cut(link, ways)
		began := time.Now()
		if agent == nil {
			agents["h3"].during(length, func() {})
			tr.Case()
		} else if back := s.cutOff(tr, link, length); length > scriptLease {
			tr.Took(max(0, back-scriptLease))
		} else {
			tr.Case()
		}
		if length > scriptLease { // the others go on meanwhile
			others := slices.DeleteFunc(scriptHosts(), func(h string) bool { return h == link })
			for _, h := range others {
				if all.answered(h, began) == 0 {
					tr.Failf("%s cut %s for %v: %s carried out nothing meanwhile", link, ways, length, h)
				}
			}
		}
		heal()
		t.Logf("%s was cut %s for %v", link, ways, length)
	}
	for _, a := range agents {
		a.becomesReady()
		more(a, 2)
	}
	// What an agent that was cut off passes over is never answered.
	answered, written, _ := all.accounts(agents["h1"])
	samples, over := stop()
	tr.Notef("%d samples of all limits, %d over capacity; %d plans answered, %d writes", samples, over, answered, written)
	if samples == 0 || written == 0 {
		t.Error("nothing was tried")
	}
}

// cutOff looks at an agent's host while it is cut off, and returns when it was at its
// baselines; 0: it was not.
func (s *script) cutOff(tr *trial.Trial, host string, length time.Duration) (back time.Duration) {
	s.Helper()
	began := time.Now()
	at := s.process("agent", host)
	at.during(length, func() {
		switch err := s.baselines(host); {
		case err == nil && back == 0:
			if back = time.Since(began); back < scriptLease/2 {
				tr.Failf("%s was cut off for %v: its baselines are back after %v, before its lease ends", host, length, back)
			}
		case err != nil && back > 0:
			tr.Failf("%s was cut off for %v: moved after its baselines were back: %v", host, length, err)
			back = 0
		}
	})
	if length > scriptLease && back == 0 {
		at.until("the baselines, though late", func() error { return s.baselines(host) })
		back = time.Since(began)
	}
	return back
}

// answered counts what a host answered since a time.
func (f *followed) answered(host string, since time.Time) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, v := range f.outcomes {
		if o := v.(*trimtab.Outcome); o.Host == host && o.Time.After(since) && o.Refused == "" {
			n++
		}
	}
	return n
}
