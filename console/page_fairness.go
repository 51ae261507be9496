package console

import (
	"net/http"
	"time"

	"github.com/trimtab/trimtab"
)

// fairness is what fairness.html shows: the audit of the newest plan that has
// one.
type fairness struct {
	Frame frame
	trimtab.Audit
	Objective, Plan string
	Time            time.Time
}

// audited returns the newest plan if it was audited, else nil.
func (v *View) audited() *trimtab.Plan {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.plan == nil || v.plan.Audit == nil {
		return nil
	}
	return v.plan
}

func (s *site) drawFairness(w http.ResponseWriter, _ *http.Request) {
	f := fairness{Frame: s.frame("fairness", "Fairness", "/api/v1/plan")}
	if p := s.view.audited(); p != nil {
		f.Audit, f.Objective, f.Plan, f.Time = *p.Audit, p.Objective, p.ID(), p.Time
	}
	s.render(w, http.StatusOK, "fairness.html", &f)
}

// usedBar is what is used of a resource, with a mark at what is demanded.
func usedBar(r trimtab.AuditedResource) bar {
	length := max(r.Capacity, r.Demanded)
	b := bar{Fill: along(r.Used, length), Class: "fill", Ticks: []barTick{{along(r.Demanded, length), "need", "demanded " + Number(r.Demanded)}}}
	if r.Demanded > r.Capacity {
		b.Ticks = append(b.Ticks, barTick{along(r.Capacity, length), "tick", "capacity " + Number(r.Capacity)})
	}
	return b
}

// shareBar is a workload's dominant share, with a mark at its entitlement.
func (f *fairness) ShareBar(w trimtab.AuditedWorkload) bar {
	length := 0.0
	for i := range f.Workloads {
		length = max(length, f.Workloads[i].Share, f.Workloads[i].Entitlement)
	}
	return bar{Fill: along(w.Share, length), Class: "fill", Ticks: []barTick{{along(w.Entitlement, length), "tick", "entitled to " + Percent(w.Entitlement)}}}
}

func satisfactionBar(w trimtab.AuditedWorkload) bar {
	return utilityBar(Row{Utility: w.Satisfaction})
}
