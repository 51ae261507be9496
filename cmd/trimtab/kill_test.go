package main

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/trimtab/trimtab/internal/trial"
)

// seed is random, or TEST_SEED, and printed.
func seed(t *testing.T) *rand.Rand {
	t.Helper()
	n := rand.Uint64()
	if s := os.Getenv("TEST_SEED"); s != "" {
		var err error
		if n, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("TEST_SEED=%d", n)
	return rand.New(rand.NewPCG(n, 0))
}

// R15: programs are killed at random moments, some with their watchdog, and
// then restored, or started again.
func TestAKilledProgramIsRestoredAsByExecStopPost(t *testing.T) {
	t.Parallel()
	tr := trial.Start(t, trial.Some(4, 8))
	random, kills := tr.Rand, tr.N
	type fate struct {
		wait           time.Duration
		early          bool
		dog, restarted bool
	}
	fates := make([]fate, kills)
	for i := range fates {
		fates[i] = fate{time.Duration(random.Int64N(int64(1500 * time.Millisecond))), random.IntN(4) == 0, i%2 == 0, i%4 >= 2}
	}
	for i, f := range fates {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			p := prepare(t, anyQuotas(t), "")
			before := p.foreign()
			if f.early {
				p.run() // and perhaps never ready
			} else {
				p.start()
				p.serve()
				p.until("both limits moved", p.moved)
			}
			p.during(f.wait, func() { p.limits() })
			p.kill(f.dog)
			if f.restarted {
				p.start()
				p.during(f.wait, func() { p.limits() })
				p.stop()
				tr.Case()
			} else {
				began := time.Now()
				code, out := p.command("restore", "--storage.path", p.storage())
				took := time.Since(began)
				t.Logf("killed after %v, watchdog too: %v; restore took %v", f.wait, f.dog, took)
				if code != exitDone {
					t.Errorf("restore: code %d: %s", code, out)
				}
				tr.Took(took)
				if took > time.Minute { // it hangs
					t.Errorf("restore took %v", took)
				}
			}
			if err := p.restored(); err != nil {
				t.Errorf("not at the baselines: %v\n%s", err, p.log())
			}
			p.until("the end of every process", p.noneLeft)
			p.sameForeign(before)
		})
	}
}

func TestTheWatchdogRestoresWhenTheLeaseOfAKilledProgramEnds(t *testing.T) {
	t.Parallel()
	p := prepare(t, anyQuotas(t), "")
	before := p.foreign()
	p.start()
	p.serve()
	p.until("both limits moved", p.moved)
	p.kill(false)
	began := time.Now()
	p.until("the baselines", p.restored)
	t.Logf("baselines back %v after the kill, with a lease of 10 s", time.Since(began))
	p.until("the end of every process", p.noneLeft)
	p.sameForeign(before)
}
