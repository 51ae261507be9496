package view

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/colocation"
)

// word is what the agent of a host says after so many decisions.
func word(host string, decisions int) *colocation.Colocation {
	now := time.Now()
	c := &colocation.Colocation{Host: host, Pool: colocation.JobsPool("p"), Policy: "rhythm", Mode: trimtab.Act, Time: now, Running: 1, Kills: 1, Given: 10,
		Services: []colocation.ServiceHere{{Workload: "web"}}, Jobs: []colocation.Job{{ID: "batch/" + host, State: "running"}}}
	for i := range decisions {
		c.Decisions = append(c.Decisions, colocation.HostDecision{Time: now.Add(-time.Duration(i) * time.Second), Verb: "CutBE", Why: fmt.Sprint(decisions - i), Periods: 1})
	}
	if decisions > 0 {
		c.Last = &c.Decisions[0]
	}
	return c
}

func TestTheJobsOfAllHostsAreShownAndWhoIsSilentIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := New(Config{Pool: "p"})
		if v.HasColocations(time.Now()) {
			t.Error("nobody spoke")
		}
		v.Observe(word("b", 1))
		time.Sleep(jobsSilent + time.Second)
		v.Observe(word("a", 2))
		stranger := word("c", 1)
		stranger.Pool = colocation.JobsPool("other")
		v.Observe(stranger)
		got := v.Colocations(time.Now(), JobFilter{})
		if len(got.Hosts) != 2 || got.Hosts[0].Host != "a" || got.Hosts[0].Silent || !got.Hosts[1].Silent || got.Running != 2 || got.Kills != 2 || got.Given != 20 {
			t.Errorf("%+v", got)
		}
		if s := got.Hosts[1].State(); !strings.HasPrefix(s, "silent for ") {
			t.Error(s)
		}
		if found := v.Colocations(time.Now(), JobFilter{Job: "batch/b"}); len(found.Hosts) != 1 || found.Hosts[0].Host != "b" {
			t.Errorf("%+v", found)
		}
		if found := v.Colocations(time.Now(), JobFilter{Service: "web"}); len(found.Hosts) != 2 {
			t.Errorf("%+v", found)
		}
		if c, ok := v.Colocation("b", time.Now()); !ok || !c.Silent || c.Jobs[0].ID != "batch/b" {
			t.Errorf("%+v %v", c, ok)
		}
		time.Sleep(jobsGone)
		if _, ok := v.Colocation("b", time.Now()); ok || len(v.Colocations(time.Now(), JobFilter{}).Hosts) != 1 {
			t.Error("b is still there")
		}
	})
}

func TestDecisionsOfEarlierWordsAreKeptUpToABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := New(Config{Pool: "p"})
		for range 30 {
			v.Observe(word("a", 10)) // the last ten of which it made eight anew
			time.Sleep(8 * time.Second)
		}
		c, _ := v.Colocation("a", time.Now())
		if len(c.Decisions) != MaxHostDecisions {
			t.Errorf("%d decisions", len(c.Decisions))
		}
		for i := 1; i < len(c.Decisions); i++ {
			if !c.Decisions[i].Time.Before(c.Decisions[i-1].Time) {
				t.Fatalf("decision %d of %v is not before %v", i, c.Decisions[i].Time, c.Decisions[i-1].Time)
			}
		}
	})
}
