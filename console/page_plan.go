package console

import (
	"net/http"
	"time"

	"github.com/trimtab/trimtab/console/view"
)

// planPage is the data of plan.html; Planned is nil before the first plan.
type planPage struct {
	Frame frame
	*view.Planned
	Moves []view.Decision
	More  int
	// Approves says that this process can send commands.
	Approves bool
}

func (s *site) drawPlan(w http.ResponseWriter, r *http.Request) {
	p := planPage{Frame: s.frame(r, "plan", "Plan", "/api/v1/plan"), Planned: s.view.Planned(), Approves: s.options.Send != nil}
	p.Frame.Script = "plan.js"
	if p.Planned != nil {
		p.Moves, _ = p.Frame.Sorted("moves", view.Moved(p.Plan)).([]view.Decision)
		p.More = max(0, len(p.Moves)-rowsPerPage)
		p.Moves = p.Moves[:len(p.Moves)-p.More]
	}
	s.render(w, http.StatusOK, "plan.html", &p)
}

// Lasts returns when the plan's lease expires unless a newer plan comes.
func (p *planPage) Lasts() time.Time { return p.Time.Add(p.Lease.Duration()) }

// Over reports whether the lease has ended.
func (p *planPage) Over() bool { return time.Now().After(p.Lasts()) }
