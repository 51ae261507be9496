package admission

import (
	"testing"
	"time"
)

// waiting is a controller with one request in service and one of class 1 of 3 that waits.
func waiting() (c *Controller, first, second *Ticket) {
	c = New(Settings{Within: time.Second, Classes: 3})
	c.SetEnvelope(0, Envelope{Max: 1, Until: time.Hour})
	first, second = &Ticket{Class: 1}, &Ticket{Class: 1, Decide: func(Verdict) {}}
	c.Arrive(0, first)
	c.Arrive(0, second)
	return c, first, second
}

func TestAClassIsStrainedOnceARequestHasWaitedHalfAsLongAsItMayAndForATimeAfterwards(t *testing.T) {
	c, first, _ := waiting()
	for now := 100 * time.Millisecond; now <= 600*time.Millisecond; now += 100 * time.Millisecond {
		if c.Tick(now); c.Strained(1) != (now > 500*time.Millisecond) {
			t.Errorf("after %v: %v", now, c.Strained(1))
		}
	}
	if c.Strained(0) || !c.Strained(2) {
		t.Error("a more important class is strained, or a less important one is not")
	}
	c.Done(600*time.Millisecond, first, Answered) // the second one starts
	for now := 700 * time.Millisecond; now < 7*time.Second; now += 100 * time.Millisecond {
		if c.Tick(now); c.Strained(1) != (now < 600*time.Millisecond+strains) {
			t.Errorf("after %v: %v", now, c.Strained(1))
		}
	}
}

func TestARefusedRequestStrainsItsClass(t *testing.T) {
	c, _, second := waiting()
	c.Expire(50*time.Millisecond, second)
	if c.Tick(100 * time.Millisecond); !c.Strained(1) || c.Strained(0) {
		t.Error("not strained")
	}
}
