package console

import (
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/console/view"
)

func TestThePageOfAPlanOffersToApproveOnlyWhatCanBeApplied(t *testing.T) {
	now := time.Now()
	v := view.New(view.Config{Pool: "cpu", Resource: "cpu", Capacity: 8, Round: time.Minute, Workloads: []view.Workload{{Name: "shop", Mode: trimtab.Recommend}}})
	h := Handler(v, Options{})
	page := func(has []string, lacks ...string) {
		t.Helper()
		code, body, _ := request(t, h, "GET", "/plan", "")
		for _, w := range has {
			if code != 200 || !strings.Contains(body, w) {
				t.Errorf("%d, no %q in\n%s", code, w, body)
			}
		}
		for _, w := range lacks {
			if strings.Contains(body, w) {
				t.Errorf("%q in\n%s", w, body)
			}
		}
	}
	page([]string{"No plan was made yet"})
	id := trimtab.KnobID{Pool: "cpu", Host: "h", Workload: "shop", Resource: "cpu"}
	p := &trimtab.Plan{Pool: "cpu", Epoch: 3, Sequence: 17, Step: 1, Last: true, Time: now, Lease: 30, Objective: "njc", Cause: trimtab.Cause{Kind: codes.CauseTick},
		Actions: []trimtab.Action{{KnobID: id, Mode: trimtab.Recommend, Expect: trimtab.Units(1), Set: trimtab.Units(2), Why: trimtab.Reason{Summary: "would be <raised>"}}}}
	v.Observe(p)
	page([]string{"3-17", "trimtab apply 3-17", "would be &lt;raised&gt;"}, "data-apply") // this process cannot send
	v.Observe(&trimtab.Holding{Pool: "cpu", Host: "h", Time: now, Targets: []trimtab.KnobState{{KnobID: id, Knob: "test", Now: trimtab.Units(1), Since: now, Max: 4, ReadOnly: "the group is another program's"}}})
	page([]string{"It cannot be approved", "the group is another program"}, "trimtab apply")
	p2 := *p
	p2.Sequence, p2.Actions = 18, []trimtab.Action{p.Actions[0]}
	p2.Actions[0].Mode = trimtab.Act
	v.Observe(&p2)
	page([]string{"It recommends nothing"}, "trimtab apply")
}
