//go:build integration

package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/trimtab/trimtab/internal/trial"
)

// How long a pool is without a planner when the one that leads is killed: from
// SIGKILL to the first plan of the one that stood by. More of them, with their median and p99:
//
//	TRIMTAB_CASES=100 go test -tags integration -timeout 1h -run TestAKilledPlannerIsReplaced -v ./cmd/trimtab
func TestAKilledPlannerIsReplacedByTheOneThatStandsBy(t *testing.T) {
	t.Parallel()
	s := newStages(t)
	tr := trial.Start(t, 2)
	leads := s.start("planner", "planner")
	leads.becomesReady() // the streams are there
	for _, p := range []*program{s.start("analyzer", "analyzer"), s.start("agent", "agent-h1", "--host", "h1")} {
		p.becomesReady()
	}
	plans := func(p *program) float64 {
		return p.sum("trimtab_stage_outputs_total", "stage", "planner", "kind", "plan")
	}
	plan := func(p *program) {
		p.until("a plan", func() error {
			if plans(p) == 0 {
				return fmt.Errorf("none")
			}
			return nil
		})
	}
	plan(leads)
	for range tr.N {
		next := s.start("planner", "planner")
		next.becomesReady()
		if n := plans(next); n > 0 {
			tr.Failf("two planners lead: the one that stands by made %v plans", n)
		}
		began := time.Now()
		leads.kill(false)
		plan(next)
		tr.Took(time.Since(began))
		leads = next
	}
}
