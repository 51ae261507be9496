package services

import (
	"testing"

	"pgregory.net/rapid"
)

// Where one host is full and another is not, the kernel alone shares the full one equally, and
// the service that is there alone is late; who knows all holds back the instance of the other.
func TestOfTwoHostsTheKernelAloneFailsTheServiceOnTheFullOneAndTheOracleDoesNot(t *testing.T) {
	s, err := Named("two-hosts", 120)
	if err != nil {
		t.Fatal(err)
	}
	kernel, err := Rule(s, "weights", 1)
	if err != nil {
		t.Fatal(err)
	}
	oracle, err := Rule(s, "oracle:social", 1)
	if err != nil {
		t.Fatal(err)
	}
	if kernel.Share(1) > 0.5 || kernel.Share(0) < 0.95 || kernel.Share(2) < 0.95 {
		t.Errorf("the kernel alone: %.3f, %.3f, %.3f in time", kernel.Share(0), kernel.Share(1), kernel.Share(2))
	}
	for i := range s.Services {
		if oracle.Share(i) < 0.95 {
			t.Errorf("the oracle: %s has %.3f in time", s.Services[i].Name, oracle.Share(i))
		}
	}
	if _, err := Rule(s, "proportional", 1); err == nil {
		t.Error("a rule that knows one host is played on two")
	}
}

func TestTheLoadBalancerSendsEachRequestOnceAndToWhoHasTheFewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		qs := make([]*queue, rapid.IntRange(2, 4).Draw(t, "instances"))
		b := &balancer{}
		for i := range qs {
			qs[i] = &queue{waiting: make([]request, rapid.IntRange(0, 5).Draw(t, "open"))}
			b.members = append(b.members, i)
		}
		n := rapid.IntRange(0, 20).Draw(t, "requests")
		for k := range n {
			b.coming = append(b.coming, Request{At: float64(k) * step / 100})
		}
		b.advance(qs, 0)
		sent, least := 0, n+5
		for _, q := range qs {
			sent, least = sent+len(q.coming), min(least, q.open())
		}
		for i, q := range qs {
			if len(q.coming) > 0 && q.open() > least+1 {
				t.Errorf("instance %d has %d open, another %d", i, q.open(), least)
			}
		}
		if sent != n {
			t.Errorf("%d of %d requests were sent", sent, n)
		}
	})
}
