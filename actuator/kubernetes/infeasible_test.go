package kubernetes_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
)

// Item 1.4 of the specification: the policy is in no API object, and is learnt from the
// first message.
func TestAfterAResizeAnsweredInfeasibleTheGuaranteedPodsOfThatNodeAreBarredFromGrowingThere(t *testing.T) {
	const static = `Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"`
	const large = "Node didn't have enough capacity: cpu, requested: 2000, capacity: 1000"
	for name, test := range map[string]struct {
		class, message, otherNode string
		barred                    bool
	}{
		"of its node":                       {"Guaranteed", static, "n1", true},
		"of another node":                   {"Guaranteed", static, "n2", false},
		"of its node, which is too small":   {"Guaranteed", large, "n1", false},
		"Burstable, which no policy is for": {"Burstable", static, "n1", false},
	} {
		t.Run(name, func(t *testing.T) {
			resources := `{"limits":{"cpu":"500m","memory":"64Mi"},"requests":{"cpu":"500m","memory":"64Mi"}}`
			if test.class != "Guaranteed" {
				resources = burstable
			}
			c := open(t, 2, resources)
			for i := range 2 {
				c.Edit(kubetest.PodPath(i), func(o kubetest.Object) {
					if i == 1 {
						kubetest.Sub(o, "spec")["nodeName"] = test.otherNode
					}
				})
			}
			c.sync()
			pass := c.later()
			first, other := c.nthLimit(0), c.nthLimit(1)
			if err := write(t.Context(), first, 2); err != nil {
				t.Fatal(err)
			}
			c.conditions(kubetest.Object{"type": "PodResizePending", "reason": "Infeasible", "message": test.message})
			if why := first.Traits().Hopeless(t.Context()); !strings.Contains(why, test.message) {
				t.Fatalf("hopeless: %q", why)
			}
			read(t, other)
			st := other.Traits().Status(t.Context())
			if bound := strings.Contains(st.By, test.message) && st.Most == 0.5; bound != test.barred {
				t.Errorf("the planner is told %v by %q", st.Most, st.By)
			}
			if err := write(t.Context(), other, 1); errors.Is(err, trimtab.ErrRefused) != test.barred {
				t.Errorf("the other one: %v", err)
			}
			pass(61 * time.Minute)
			if err := write(t.Context(), other, 1); err != nil {
				t.Errorf("an hour later: %v", err)
			}
		})
	}
}

// nthLimit opens the CPU knob of the i-th pod.
func (c *cluster) nthLimit(i int) actuator.Knob {
	c.t.Helper()
	at := actuator.Location{Path: podsAt}
	found, err := c.pods.Find(c.t.Context(), at)
	if err != nil || len(found) <= i {
		c.t.Fatalf("find %s: %v, %v", at.Path, found, err)
	}
	k, err := c.pods.Open(at.Instance(found[i].Name), trimtab.CPU)
	if err != nil {
		c.t.Fatal(err)
	}
	return k
}
