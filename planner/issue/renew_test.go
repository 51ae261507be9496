package issue_test

import (
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/issue"
)

// accepts tells what a host has, which has accepted a plan.
func accepts(i *issue.Issuer, at time.Time, w string, sequence uint64, now float64) {
	h := holding(w, 0, now)
	h.Time, h.Sequence, h.LeaseLeft = at, sequence, trimtab.SecondsOf(lease)
	i.Ledger.Hold(at, h)
}

// lent is a pool in which b has a core that a lends, by plan 1, and the time.
func lent(t *testing.T) (*issue.Issuer, time.Time) {
	t.Helper()
	i := pool(t)
	i.Issue(began, issue.Decision{Shrinks: set("a", 2, 1), Grows: set("b", 2, 3)})
	at := began.Add(time.Second)
	accepts(i, at, "a", 1, 1)
	accepts(i, at, "b", 1, 2)
	if p := i.Release(began.Add(confirm)); p == nil || len(p.Actions) != 1 || p.BorrowLease.Duration() != lease-confirm {
		t.Fatalf("%+v: want the grow, until the end of the lease that a has since plan 1", p)
	}
	accepts(i, began.Add(confirm), "b", 1, 3)
	return i, began.Add(confirm)
}

func TestWhatIsBorrowedEndsNoLaterThanTheLeasesOfThoseThatLend(t *testing.T) {
	i, _ := lent(t)
	for _, after := range []time.Duration{20 * time.Second, 40 * time.Second} {
		at := began.Add(after)
		accepts(i, at, "b", 1, 3)
		if p := i.Issue(at, issue.Decision{}); p.BorrowLease.Duration() != lease-after || p.Lease.Duration() != lease {
			t.Errorf("borrowed for %v of a lease of %v, want until a minute after plan 1", p.BorrowLease, p.Lease)
		}
	}
}

func TestAPlanGoesOutOnceMoreWhenThoseThatLendHaveAcceptedIt(t *testing.T) {
	i, _ := lent(t)
	at := began.Add(30 * time.Second)
	p := i.Issue(at, issue.Decision{})
	if p.BorrowLease.Duration() != lease/2 || !p.Last || i.Waits() {
		t.Fatalf("borrowed for %v: want half a lease, and a plan that holds up no other", p.BorrowLease)
	}
	if again := i.Release(at); again != nil {
		t.Fatalf("%+v: a has not accepted it yet", again)
	}
	if !i.Answer(&trimtab.Outcome{Pool: "p", Host: knob("a").Host, Epoch: 1, Sequence: p.Sequence, Step: 1, Time: at}) {
		t.Error("the answer of a host that lends is no news")
	}
	at = at.Add(time.Second)
	again := i.Release(at)
	if again == nil || again.Sequence != p.Sequence || again.Step != 2 || len(again.Actions) != 0 || again.BorrowLease.Duration() != lease-time.Second {
		t.Fatalf("%+v: want step 2, and what is borrowed on nearly the whole lease", again)
	}
	if i.Release(at) != nil {
		t.Error("it goes out twice")
	}
}

func TestAPlanThatNobodyWhoLendsHasAcceptedIsNotRepeated(t *testing.T) {
	i, _ := lent(t)
	at := began.Add(30 * time.Second)
	i.Issue(at, issue.Decision{})
	if again := i.Release(at.Add(confirm)); again != nil {
		t.Errorf("%+v: it says nothing new", again)
	}
}

func TestWhereAllBaselinesFitNothingIsBorrowed(t *testing.T) {
	i := pool(t)
	accepts(i, began, "a", 0, 1)
	accepts(i, began, "b", 0, 2)
	if p := i.Issue(began.Add(time.Second), issue.Decision{}); p.BorrowLease != 0 {
		t.Errorf("borrowed for %v, and nobody has more than a baseline", p.BorrowLease)
	}
}
