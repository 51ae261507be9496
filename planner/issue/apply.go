package issue

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
)

// maxRecommended is the number of latest plans with recommendations that can still be applied by
// name.
const maxRecommended = 32

// WouldBe precedes "raised" or "lowered" in the reason of an action in mode recommend: nothing is
// written until a person applies the plan.
const WouldBe = "would be "

func advises(plan *trimtab.Plan) bool {
	for n := range plan.Actions {
		if plan.Actions[n].Mode == trimtab.Recommend {
			return true
		}
	}
	return false
}

// Apply returns a decision that carries out the recommended actions of an earlier plan, once:
// shrinks first, grows as they are confirmed. If the plan is unknown, or anything has changed
// since, the decision has no actions; its Cause says so and Held says what differs.
func (i *Issuer) Apply(now time.Time, c *trimtab.Command) Decision {
	d := Decision{Plan: trimtab.Plan{Cause: trimtab.Cause{Kind: codes.CauseApply, Ref: c.Plan, By: c.Asker()}, Held: map[string]trimtab.Held{}}}
	refuse := func(why string) Decision {
		d.Cause.Kind, d.Cause.Text = codes.CauseRefused, why
		d.Shrinks, d.Grows = nil, nil
		return d
	}
	if age := now.Sub(c.Time); age > i.Lease { // a plan made then would have expired
		return refuse(fmt.Sprintf("asked for %v ago", age.Round(time.Second)))
	}
	at := slices.IndexFunc(i.recommended, func(q *trimtab.Plan) bool { return q.ID() == c.Plan })
	switch {
	case at < 0:
		return refuse("no recommendation of that name waits")
	case i.Paused():
		return refuse("paused")
	}
	why := "the state has changed"
	for _, a := range i.recommended[at].Actions {
		if a.Mode != trimtab.Recommend {
			continue
		}
		a.Mode = trimtab.Act
		a.Why.Summary = strings.Replace(a.Why.Summary, WouldBe, "", 1)
		e := i.Ledger.Knob(a.KnobID)
		r := slices.IndexFunc(i.Resources, func(r Resource) bool { return r.Name == a.Resource })
		switch {
		case e == nil || e.Gone() || r < 0 || !i.Writable(a.Workload):
			d.Held[a.Workload] = trimtab.Held{Code: codes.HeldNoKnob, Text: "its knob is gone"}
		case e.Held.Problem != "":
			d.Held[a.Workload] = trimtab.Held{Code: codes.HeldKnob, Text: "knob: " + e.Held.Problem}
		case e.Held.ReadOnly != "":
			d.Held[a.Workload] = trimtab.Held{Code: codes.HeldKnob, Text: "knob: " + e.Held.ReadOnly}
			why = "a knob may not be written"
		case !e.Held.Now.Equal(a.Expect, grain*i.Resources[r].Unit):
			d.Held[a.Workload] = trimtab.Held{Code: codes.HeldChanged, Text: fmt.Sprintf("found %s, the plan expected %s", e.Held.Now, a.Expect)}
		case a.Set.Less(a.Expect):
			d.Shrinks = append(d.Shrinks, a)
		default:
			d.Grows = append(d.Grows, a)
		}
	}
	if len(d.Held) > 0 {
		return refuse(why)
	}
	d.Applies = c.Plan
	i.recommended = slices.Delete(i.recommended, at, at+1)
	return d
}
