package actuator_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/colocation"
)

// unmet is what the holding of a host says of one thing; "": nothing.
func unmet(h *host, what string) (why, do string) {
	for _, u := range h.Holding().Unmet {
		if u.What == what {
			return u.Why, u.Do
		}
	}
	return "", ""
}

func TestAFastLoopWhoseGroupAboveCannotBeSetSaysSoBeforeAPlanWantsIt(t *testing.T) {
	h, _ := quickHost(t, 1, 2)
	above := &quickKnob{fileKnob: &fileKnob{Path: filepath.Join(h.dir, "above"), readOnly: true}}
	h.put(above.fileKnob, units(8))
	h.config.Parent = above
	h.open()
	why, do := unmet(h, codes.UnmetFast)
	if !strings.Contains(why, "no quota moves between rounds: the group above cannot be set: ") || !strings.Contains(why, "somebody else's") || !strings.Contains(do, "take fast.parent out") {
		t.Errorf("%q, do %q", why, do)
	}
	above.readOnly = false
	if o := h.Handle(t.Context(), h.withEnvelopes(1, 3, 1, 2)); o.Refused != "" {
		t.Fatal(o.Refused)
	}
	if why, _ := unmet(h, codes.UnmetFast); why != "" {
		t.Errorf("once it can be set: %q", why)
	}
	if err := os.Remove(above.Path); err != nil {
		t.Fatal(err)
	}
	h.Handle(t.Context(), h.withEnvelopes(2, 3, 1, 2))
	if why, do = unmet(h, codes.UnmetFast); !strings.Contains(why, "no such file") || !strings.Contains(do, "make the group that fast.parent names") {
		t.Errorf("gone: %q, do %q", why, do)
	}
}

func TestAQuotaThatCannotMoveBetweenRoundsIsTold(t *testing.T) {
	h, quick := quickHost(t, 1, 2)
	quick[0].unfit = trimtab.ErrUnsupported
	h.open()
	h.Handle(t.Context(), h.withEnvelopes(1, 3, 1, 2))
	if why, do := unmet(h, codes.UnmetFast); !strings.Contains(why, "the quota of w0 does not move between rounds") || do != actuator.MoveRemedy {
		t.Errorf("%q, do %q", why, do)
	}
}

// Found: a pool of 0.7 cores became one of 0.59, and nothing said why.
func TestCapacityThatOtherPoolsClaimIsToldWithWhoClaimsIt(t *testing.T) {
	all := pools(t, 2, row(0.5), row(1.41), row(0.2))
	for i, name := range []string{"shop", "other", colocation.JobsPool("shop")} {
		all[i].config.Pool = name
	}
	all[0].config.Limits.Capacity = map[string]float64{"cpu": 0.7}
	a, b, c := all[0].open(), all[1].open(), all[2]
	tick(a, b, a)
	why, do := unmet(a, codes.UnmetClaims)
	if !strings.Contains(why, "the pool has 0.59 cores here, not 0.7 cores: pool other (process ") || !strings.Contains(why, "claims up to 1.41 cores") || do == "" {
		t.Errorf("%q, do %q", why, do)
	}
	c.open()
	tick(c, a)
	if why, do = unmet(a, codes.UnmetClaims); !strings.Contains(why, "best-effort jobs beside it claim up to 0.2 cores") || !strings.Contains(do, "beside: {jobs: {capacity: {cpu: …}}}") {
		t.Errorf("beside its own jobs: %q, do %q", why, do)
	}
	if why, _ = unmet(c, codes.UnmetClaims); why != "" {
		t.Errorf("jobs were promised nothing: %q", why)
	}
}
