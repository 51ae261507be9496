package console

import (
	"net/http"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/console/view"
)

// fairness is the data of fairness.html; its Plan is empty until a plan was audited.
type fairness struct {
	Frame frame
	trimtab.Audit
	Objective, Plan string
	Time            time.Time
}

func (s *site) drawFairness(w http.ResponseWriter, r *http.Request) {
	f := fairness{Frame: s.frame(r, "fairness", "Fairness", "/api/v1/fairness")}
	if a, ok := s.view.Audited(); ok {
		f.Audit, f.Objective, f.Plan, f.Time = *a.Audit, a.Objective, a.Plan, a.Time
	}
	s.render(w, http.StatusOK, "fairness.html", &f)
}

// usedBar shows the used part of a resource, with a mark at the demand.
func usedBar(r trimtab.AuditedResource) bar {
	length := max(r.Capacity, r.Demanded)
	b := bar{Fill: along(r.Used, length), Class: "fill", Ticks: []barTick{{along(r.Demanded, length), "need", "demanded " + view.Number(r.Demanded)}}}
	if r.Demanded > r.Capacity {
		b.Ticks = append(b.Ticks, barTick{along(r.Capacity, length), "tick", "capacity " + view.Number(r.Capacity)})
	}
	return b
}

// ShareBar is a workload's dominant share, with a mark at its entitlement.
func (f *fairness) ShareBar(w trimtab.AuditedWorkload) bar {
	length := 0.0
	for i := range f.Workloads {
		length = max(length, f.Workloads[i].Share, f.Workloads[i].Entitlement)
	}
	return bar{Fill: along(w.Share, length), Class: "fill", Ticks: []barTick{{along(w.Entitlement, length), "tick", "entitled to " + view.Percent(w.Entitlement)}}}
}

func satisfactionBar(w trimtab.AuditedWorkload) bar {
	return utilityBar(view.Row{Utility: w.Satisfaction})
}
