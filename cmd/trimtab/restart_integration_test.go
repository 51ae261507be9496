//go:build integration

package main

import (
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/trial"
)

// R1: trimtab, with all its stages, is killed at random moments under load and
// started again. The times are those from a start to readiness.
func TestAKilledProgramLosesNoDecisionAndCarriesNoneOutTwice(t *testing.T) {
	t.Parallel()
	tr := trial.Start(t, 3)
	p := prepare(t, anyQuotas(t), "")
	p.serveBus(p.nats)
	p.start()
	p.serve()
	p.until("both limits moved", p.moved)
	var last trimtab.Plan
	slowest := time.Duration(0)
	for range tr.N {
		p.during(time.Duration(tr.Rand.Int64N(int64(3*time.Second))), func() { p.limits() })
		if plan, err := p.plan(); err == nil {
			last = plan
		}
		p.kill(false)
		p.run()
		began := time.Now()
		p.until("ready", func() error {
			p.limits()
			code, body, err := p.get("/-/ready")
			if err != nil || code != http.StatusOK {
				return fmt.Errorf("%d %s: %w", code, body, err)
			}
			return nil
		})
		tr.Took(time.Since(began))
		began = time.Now()
		p.until("a plan of a later epoch", func() error {
			p.limits()
			if plan, err := p.plan(); err != nil || plan.Epoch <= last.Epoch {
				return fmt.Errorf("plan %s after %s: %w", plan.ID(), last.ID(), err)
			}
			return nil
		})
		slowest = max(slowest, time.Since(began))
	}
	p.stop()
	if err := p.restored(); err != nil {
		t.Errorf("not at the baselines: %v\n%s", err, p.log())
	}
	answered, written := p.accounts()
	if answered == 0 || written == 0 {
		t.Errorf("nothing was tried: %d answers, %d writes", answered, written)
	}
	tr.Notef("%d plans answered, %d writes; a plan at most %.2f s after readiness, with rounds of 1 s", answered, written, slowest.Seconds())
}

// R6: trimtab is stopped as by SIGSTOP for longer than its lease, under load:
// its watchdog gives the baselines back, and when it goes on nothing is done
// that was planned before. The times are those from the end of the lease to the
// baselines, or more: from ten seconds after the stop.
func TestAProgramThatIsStoppedForLongerThanItsLeaseActsOnNothingOld(t *testing.T) {
	t.Parallel()
	tr := trial.Start(t, 1)
	p := prepare(t, anyQuotas(t), "")
	p.serveBus(p.nats)
	p.start()
	p.serve()
	for i := range tr.N {
		p.until("both limits moved", p.moved)
		stop := 15 * time.Second
		if i > 0 {
			stop = time.Minute
		}
		p.signal(syscall.SIGSTOP)
		began := time.Now()
		p.until("the baselines", p.restored)
		tr.Took(max(0, time.Since(began)-10*time.Second))
		p.during(stop-time.Since(began), func() {
			if err := p.restored(); err != nil {
				tr.Failf("moved while it was stopped: %v", err)
			}
		})
		p.signal(syscall.SIGCONT)
	}
	p.until("both limits moved", p.moved)
	if n := p.sum("trimtab_stage_panics_total"); n != 0 {
		tr.Failf("%v panics\n%s", n, p.log())
	}
	p.stop()
	answered, written := p.accounts()
	tr.Notef("%d plans answered, %d writes", answered, written)
}
