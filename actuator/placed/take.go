package placed

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/speculation"
)

// Orders are the host's next operations, in this order.
type Orders struct {
	// Forget are attempts that are over and that the planner no longer lists.
	Forget []speculation.AttemptID
	// Kill are running attempts that must end. They are repeated until the ledger is told that they
	// have ended.
	Kill []Kill
	// Cancel are queued attempts that will never run.
	Cancel []speculation.AttemptID
	// Relabel are attempts whose class has changed.
	Relabel []Relabel
	// Renew are attempts whose lease is longer now: see [Attempt.Until].
	Renew []speculation.AttemptID
	// Queue are new attempts, to be started or refused.
	Queue []speculation.Placement
}

// Kill is an attempt to end, and why.
type Kill struct {
	ID  speculation.AttemptID
	Why string
}

// Relabel is an attempt with its new class.
type Relabel struct {
	ID    speculation.AttemptID
	Class speculation.TaskClass
}

// Take applies a list. A list that does not count changes nothing: the error is trimtab.ErrInvalid
// if it is malformed or for another host, and trimtab.ErrStale if it is for another run of the
// agent, older than the last, or too late.
func (l *Ledger) Take(now time.Duration, p *speculation.Placements) (Orders, error) {
	listed, err := l.check(p)
	if err != nil {
		return Orders{}, err
	}
	sent, known := l.sent[p.Report]
	until := sent + min(p.Lease.Duration(), l.config.MaxLease)
	if !known || now >= until {
		return Orders{}, fmt.Errorf("placements answer report %d, and their lease has ended: %w", p.Report, trimtab.ErrStale)
	}
	l.epoch, l.sequence, l.answered = p.Epoch, p.Sequence, p.Report
	var o Orders
	for _, id := range l.names() {
		l.follow(id, listed[id], until, &o)
	}
	for i := range p.Tasks {
		l.enter(now, &p.Tasks[i], until, &o)
	}
	return o, nil
}

// check returns the attempts of a list by name, if it counts.
func (l *Ledger) check(p *speculation.Placements) (map[speculation.AttemptID]*speculation.Placement, error) {
	if p.Pool != l.config.Pool || p.Host != l.config.Host {
		return nil, trimtab.Invalidf("placements for host %.60q of pool %.60q: this is %s of %s", p.Host, p.Pool, l.config.Host, l.config.Pool)
	}
	if !(p.Lease > 0) || len(p.Tasks) > speculation.MaxAttemptsHere {
		return nil, trimtab.Invalidf("placements of %d attempts with a lease of %vs: want at most %d, and a lease", len(p.Tasks), float64(p.Lease), speculation.MaxAttemptsHere)
	}
	if p.Life != l.config.Life {
		return nil, fmt.Errorf("placements for life %d, this is %d: %w", p.Life, l.config.Life, trimtab.ErrStale)
	}
	newest := cmp.Or(cmp.Compare(p.Epoch, l.epoch), cmp.Compare(p.Sequence, l.sequence), cmp.Compare(p.Report, l.answered))
	if newest <= 0 {
		return nil, fmt.Errorf("placements %d.%d are not newer than %d.%d: %w", p.Epoch, p.Sequence, l.epoch, l.sequence, trimtab.ErrStale)
	}
	listed, tasks := map[speculation.AttemptID]*speculation.Placement{}, map[speculation.AttemptID]bool{}
	for i := range p.Tasks {
		t := &p.Tasks[i]
		if err := t.AttemptID.Validate(); err != nil {
			return nil, fmt.Errorf("placements: %w", err)
		}
		if t.Class != speculation.OversubscribedTask && t.Class != speculation.RegularTask {
			return nil, trimtab.Invalidf("placements have attempt %v of class %.40q", t.AttemptID, t.Class)
		}
		if listed[t.AttemptID] != nil {
			return nil, trimtab.Invalidf("placements have attempt %v twice", t.AttemptID)
		}
		listed[t.AttemptID] = t
		if t.Kill != "" {
			continue // it follows an attempt that must end
		}
		of := speculation.AttemptID{Job: t.Job, Task: t.Task}
		if tasks[of] {
			return nil, trimtab.Invalidf("placements have two attempts at task %s/%s that are to run", t.Job, t.Task)
		}
		tasks[of] = true
	}
	return listed, nil
}

// names returns the known attempts, in order.
func (l *Ledger) names() []speculation.AttemptID {
	ids := make([]speculation.AttemptID, 0, len(l.attempts))
	for id := range l.attempts {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, compare)
	return ids
}

// follow applies a list's entry for a known attempt; nil: the list has none.
func (l *Ledger) follow(id speculation.AttemptID, p *speculation.Placement, until time.Duration, o *Orders) {
	a := l.attempts[id]
	switch {
	case p == nil && a.State == Running:
		l.kill(a, "the planner does not list it any more", o)
	case p == nil:
		if a.State == Queued {
			o.Cancel = append(o.Cancel, id)
		}
		delete(l.attempts, id)
		o.Forget = append(o.Forget, id)
	case a.State == Ended || a.State == Refused:
	case p.Kill != "" && a.State == Running:
		l.kill(a, p.Kill, o)
	case p.Kill != "":
		l.Refuse(id, p.Kill)
		o.Cancel = append(o.Cancel, id)
	default:
		if until > a.Until {
			a.Until = until
			o.Renew = append(o.Renew, id)
		}
		if p.Class != a.Class {
			o.Relabel = append(o.Relabel, Relabel{id, p.Class})
		}
	}
}

func (l *Ledger) kill(a *Attempt, why string, o *Orders) {
	a.Why = cmp.Or(a.Why, why)
	o.Kill = append(o.Kill, Kill{a.AttemptID, a.Why})
}

// enter adds an attempt that is new on this host.
func (l *Ledger) enter(now time.Duration, p *speculation.Placement, until time.Duration, o *Orders) {
	if l.attempts[p.AttemptID] != nil || len(l.attempts) >= speculation.MaxAttemptsHere {
		return
	}
	a := &Attempt{Placement: *p, Until: until}
	if why := cmp.Or(l.live(p), l.why(p)); why != "" {
		a.State, a.Why = Refused, why
	} else {
		o.Queue = append(o.Queue, *p)
	}
	l.attempts[p.AttemptID] = a
	l.mark(now, p.AttemptID)
}

// live returns the attempt at the same task that has not ended, as a text; "": none.
func (l *Ledger) live(p *speculation.Placement) string {
	if _, known := l.marks[task{p.Job, p.Task}]; !known {
		return ""
	}
	for _, a := range l.attempts {
		if a.Job == p.Job && a.Task == p.Task && (a.State == Queued || a.State == Running) {
			return fmt.Sprintf("attempt %d of this task has not ended here", a.Attempt)
		}
	}
	return ""
}

// Expire returns the attempts to end because no list renewed their lease.
func (l *Ledger) Expire(now time.Duration) (o Orders) {
	for _, id := range l.names() {
		a := l.attempts[id]
		if a.State != Queued && a.State != Running || now < a.Until {
			continue
		}
		if a.State == Queued {
			l.Refuse(id, "its lease ended in the queue")
			o.Cancel = append(o.Cancel, id)
			continue
		}
		l.kill(a, "its lease ended, and nobody renewed it", &o)
	}
	return o
}
