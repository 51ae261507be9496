package view

import (
	"fmt"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/newest"
)

// Advice is a row of decisions that say the same: the newest, since when, and how many
// there are.
type Advice struct {
	*Decision
	// First is the plan of the oldest, of Since.
	First string
	Since time.Time
	Count int
}

// maxGrouped bounds how many decisions one page of advice reads.
const maxGrouped = 5000

// Advices is [Model.Decisions] with decisions that say the same as the one before on
// the resource put together: at most limit of them.
func (v *Model) Advices(workload, before string, limit int, now time.Time) (out []Advice, next string, total int, err error) {
	from, err := readCursor(before)
	if err != nil {
		return nil, "", 0, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.workloads.all[workload]
	if s == nil {
		return nil, "", 0, nil
	}
	read := 0
	var last *Decision
	for d := range s.before(from) {
		shown := d.shown(now, v.config.Round)
		same := newestOf(out, d.Action.Resource)
		switch {
		case same != nil && same.says(shown):
			same.First, same.Since, same.Count = d.Plan, d.Time, same.Count+1
		case (len(out) >= limit || read >= maxGrouped) && d.position() != last.position():
			return out, last.Cursor(), s.stored(), nil
		default:
			out = append(out, Advice{shown, d.Plan, d.Time, 1})
		}
		last = d
		read++
	}
	return out, "", s.stored(), nil
}

// newestOf returns the last of a list that is on a resource, or nil.
func newestOf(all []Advice, resource string) *Advice {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Action.Resource == resource {
			return &all[i]
		}
	}
	return nil
}

// says reports whether an older decision is the same advice.
func (a *Advice) says(older *Decision) bool {
	x, y := &a.Action, &older.Action
	return x.Mode == trimtab.Recommend && y.Mode == trimtab.Recommend && x.Expect == y.Expect && x.Set == y.Set &&
		x.Why.Binding == y.Why.Binding && statusOf(a.Decision) == statusOf(older)
}

// Held returns for how long the advice has been the same; "": it is the first.
func (a *Advice) Held() string {
	if a.Count < 2 {
		return ""
	}
	return fmt.Sprintf("same advice for %s, %d times", Age(trimtab.SecondsOf(a.Time.Sub(a.Since))), a.Count)
}

// Cursor names the decision for [Model.Decisions]: those before it are older.
func (d *Decision) Cursor() string { return d.position().String() }

// After returns the cursor of a page that begins with this decision.
func (d *Decision) After() string { return newest.At(d.Epoch, d.Sequence, d.Step+1).String() }
