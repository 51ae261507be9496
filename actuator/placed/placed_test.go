package placed

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/speculation"
)

func ledger(t *testing.T) *Ledger {
	t.Helper()
	l, err := New(Config{Pool: "p", Host: "h", Life: 7, MaxLease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func id(n int) speculation.AttemptID { return speculation.AttemptID{Job: "j", Task: "a", Attempt: n} }

// list is one that counts, for attempts at one task.
func list(sequence, report uint64, tasks ...speculation.Placement) *speculation.Placements {
	return &speculation.Placements{Pool: "p", Host: "h", Life: 7, Epoch: 1, Sequence: sequence, Report: report, Lease: 30, Tasks: tasks}
}

func run(n int) speculation.Placement {
	return speculation.Placement{AttemptID: id(n), Class: speculation.OversubscribedTask}
}

func TestALeaseCountsFromWhenTheReportWasSentAndNotFromTheAnswer(t *testing.T) {
	l := ledger(t)
	n := l.Report(100 * time.Second)
	if _, err := l.Take(129*time.Second, list(1, n, run(1))); err != nil {
		t.Fatal(err)
	}
	if a, _ := l.Find(id(1)); a.Until != 130*time.Second {
		t.Errorf("until %v", a.Until)
	}
	if !l.Start(129*time.Second, id(1)) {
		t.Error("not started")
	}
	// An answer that is as old renews nothing.
	if _, err := l.Take(130*time.Second, list(2, n, run(1))); !errors.Is(err, trimtab.ErrStale) {
		t.Error(err)
	}
	if o := l.Expire(130 * time.Second); len(o.Kill) != 1 || o.Kill[0].Why != "its lease ended, and nobody renewed it" {
		t.Errorf("%+v", o)
	}
}

func TestAnAttemptThatWasForgottenIsNotStartedAgain(t *testing.T) {
	l := ledger(t)
	n := l.Report(0)
	for sequence, tasks := range [][]speculation.Placement{{run(2)}, {}, {run(2)}, {run(1)}, {}, {run(3)}} {
		o, err := l.Take(1, list(uint64(sequence+1), n, tasks...))
		if err != nil {
			t.Fatal(err)
		}
		if sequence == 0 {
			l.Start(1, id(2))
			l.End(id(2))
		}
		if want := sequence == 0 || sequence == 5; (len(o.Queue) > 0) != want {
			t.Errorf("list %d: %+v", sequence, o)
		}
	}
	if a, _ := l.Find(id(3)); a.State != Queued {
		t.Errorf("%+v", a)
	}
}

func TestAnAttemptOfAFormerLifeIsToldAndNotStarted(t *testing.T) {
	l := ledger(t)
	l.Adopt(0, id(1), speculation.RegularTask)
	n := l.Report(0)
	o, err := l.Take(0, list(1, n, run(1)))
	if a, _ := l.Find(id(1)); err != nil || len(o.Queue) > 0 || a.State != Ended || a.Class != speculation.RegularTask {
		t.Errorf("%+v, %+v, %v", o, a, err)
	}
	if o, err := l.Take(0, list(2, n)); err != nil || len(o.Forget) != 1 {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestAListThatMakesNoSenseChangesNothing(t *testing.T) {
	for name, change := range map[string]func(p *speculation.Placements){
		"another host":          func(p *speculation.Placements) { p.Host = "x" },
		"another pool":          func(p *speculation.Placements) { p.Pool = "x" },
		"another life":          func(p *speculation.Placements) { p.Life = 8 },
		"no lease":              func(p *speculation.Placements) { p.Lease = 0 },
		"a lease of no number":  func(p *speculation.Placements) { p.Lease = trimtab.Seconds(math.NaN()) },
		"an unknown report":     func(p *speculation.Placements) { p.Report = 99 },
		"twice the same":        func(p *speculation.Placements) { p.Tasks = append(p.Tasks, p.Tasks[0]) },
		"two of one task":       func(p *speculation.Placements) { p.Tasks = append(p.Tasks, run(2)) },
		"a name that is a path": func(p *speculation.Placements) { p.Tasks[0].Job = "../x" },
		"an unknown class":      func(p *speculation.Placements) { p.Tasks[0].Class = "" },
		"more than can be known": func(p *speculation.Placements) {
			p.Tasks = make([]speculation.Placement, speculation.MaxAttemptsHere+1)
		},
	} {
		l := ledger(t)
		p := list(1, l.Report(0), run(1))
		change(p)
		if o, err := l.Take(0, p); err == nil || !errors.Is(err, trimtab.ErrInvalid) && !errors.Is(err, trimtab.ErrStale) || len(o.Queue) > 0 || len(l.Attempts()) > 0 {
			t.Errorf("%s: %+v, %v", name, o, err)
		}
		if epoch, sequence := l.Newest(); epoch != 0 || sequence != 0 {
			t.Errorf("%s: newest %d.%d", name, epoch, sequence)
		}
	}
}

func TestWhatIsKeptOfTasksThatWereHereIsBounded(t *testing.T) {
	l := ledger(t)
	for i := range maxMarks + 10 {
		l.mark(time.Duration(i), speculation.AttemptID{Job: "j", Task: fmt.Sprint(i), Attempt: 1})
	}
	if n := len(l.marks); n > maxMarks || n < maxMarks/2 {
		t.Errorf("%d", n)
	}
}

func TestALedgerNeedsAName(t *testing.T) {
	for _, c := range []Config{{Host: "h", Life: 1}, {Pool: "p", Life: 1}, {Pool: "p", Host: "h"}} {
		if _, err := New(c); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
