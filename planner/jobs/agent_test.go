package jobs

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab/speculation"
)

// agent is a host that follows the protocol.
type agent struct {
	w    *world
	name string
	// rate is that of its clock.
	rate         float64
	up           bool
	back         time.Time
	life, number uint64
	epoch, seq   uint64
	sent         map[uint64]time.Duration // when each report was sent, by its own clock
	next         time.Time
	known        map[speculation.AttemptID]*process
}

type process struct {
	state   speculation.AttemptState
	outcome string
	code    int
	// lease is when it ends, by the host's clock; slack how late its end is noticed.
	lease time.Duration
	slack time.Duration
	end   time.Time // by itself
	fails bool
	// dying is when a kill has its effect; zero: it was not killed.
	dying time.Time
}

func (a *agent) clock() time.Duration {
	return time.Duration(a.rate * float64(a.w.now.Sub(start())))
}

func name(id speculation.AttemptID) string { return id.Job + "/" + id.Task }

// run starts a process; here is what must never happen.
func (a *agent) run(id speculation.AttemptID, p *process) {
	w := a.w
	if other, twice := w.process[name(id)]; twice {
		w.t.Fatalf("%v: %v starts on %s while %v runs", w.now.Sub(start()), id, a.name, other)
	}
	if w.started[id] {
		w.t.Fatalf("%v starts a second time", id)
	}
	if w.manager != nil && w.stored {
		if s := w.manager.State(w.now, id.Job); s != nil {
			for _, t := range s.Tasks {
				if t.Name == id.Task && (t.State == "done" || t.State == "failed" || t.State == "cancelled") {
					w.t.Fatalf("%v starts after the task has ended: %+v", id, t)
				}
			}
		}
	}
	w.started[id], w.process[name(id)] = true, id
	p.state, p.end, p.fails = speculation.AttemptRunning, w.now.Add(time.Duration(1+w.rng.IntN(40))*time.Second), w.rng.IntN(3) == 0
}

func (a *agent) stop(id speculation.AttemptID, p *process, outcome string, code int) {
	if p.state == speculation.AttemptRunning {
		delete(a.w.process, name(id))
		p.state = speculation.AttemptEnded
	} else {
		p.state = speculation.AttemptRefused
	}
	p.outcome, p.code = outcome, code
}

func (p *process) over() bool {
	return p.state == speculation.AttemptEnded || p.state == speculation.AttemptRefused
}

// step is one second of a host.
func (a *agent) step() {
	w := a.w
	if !a.up {
		for _, id := range a.ids() { // its watchdog keeps the leases
			p := a.known[id]
			if !p.over() && a.clock() >= p.lease+p.slack {
				a.stop(id, p, "lost", 0)
			}
		}
		if w.now.Before(a.back) {
			return
		}
		for _, id := range a.ids() { // what is left of it is killed, and some known again
			p := a.known[id]
			if !p.over() {
				a.stop(id, p, "lost", 0)
			}
			if w.rng.IntN(2) == 0 {
				delete(a.known, id)
			}
		}
		a.up, a.life, a.number, a.epoch, a.seq, a.sent = true, a.life+1+uint64(w.rng.IntN(5)), 0, 0, 0, map[uint64]time.Duration{}
		a.next = w.now
	}
	changed := a.work()
	if changed || !w.now.Before(a.next) {
		a.report()
	}
	if !w.calm && w.rng.IntN(150) == 0 {
		a.up, a.back = false, w.now.Add(time.Duration(w.rng.IntN(90))*time.Second)
	}
}

// ids are those of the known attempts, in order.
func (a *agent) ids() []speculation.AttemptID {
	return slices.SortedFunc(maps.Keys(a.known), func(x, y speculation.AttemptID) int { return strings.Compare(x.String(), y.String()) })
}

// work lets attempts start and end.
func (a *agent) work() (changed bool) {
	w := a.w
	for _, id := range a.ids() {
		p := a.known[id]
		was := p.state
		switch {
		case p.over():
		case !p.dying.IsZero() && !w.now.Before(p.dying) || a.clock() >= p.lease+p.slack:
			a.stop(id, p, "killed", 0)
		case p.state == speculation.AttemptRunning && !w.now.Before(p.end) && p.fails:
			a.stop(id, p, "exited", 1)
		case p.state == speculation.AttemptRunning && !w.now.Before(p.end):
			a.stop(id, p, "exited", 0)
		case p.state == speculation.AttemptRunning && !w.calm && w.rng.IntN(300) == 0:
			a.stop(id, p, "killed", 0) // throttled
		case p.state == speculation.AttemptQueued && p.dying.IsZero() && a.clock() < p.lease && w.rng.IntN(4) == 0:
			a.run(id, p)
		}
		changed = changed || p.state != was
	}
	return changed
}

func (a *agent) report() {
	w := a.w
	a.number++
	a.sent[a.number] = a.clock()
	a.next = w.now.Add(5 * time.Second)
	r := &speculation.Machine{Host: a.name, Pool: "batch", Time: w.now, Life: a.life, Report: a.number, Epoch: a.epoch, Sequence: a.seq}
	for _, id := range a.ids() {
		p := a.known[id]
		t := speculation.Attempt{AttemptID: id, State: p.state, Outcome: p.outcome, Code: p.code}
		if p.state == speculation.AttemptRunning && w.rng.IntN(2) == 0 {
			t.Progress = pointer(w.rng.Float64())
		}
		r.Attempts = append(r.Attempts, t)
	}
	w.send(message{report: r})
}

// carry carries out a list.
func (a *agent) carry(l *speculation.Placements) {
	w := a.w
	sent, ok := a.sent[l.Report]
	if !a.up || l.Life != a.life || !ok || l.Epoch < a.epoch || l.Epoch == a.epoch && l.Sequence <= a.seq {
		return
	}
	a.epoch, a.seq = l.Epoch, l.Sequence
	listed := map[speculation.AttemptID]bool{}
	for _, t := range l.Tasks {
		listed[t.AttemptID] = true
		p := a.known[t.AttemptID]
		lease := sent + l.Lease.Duration()
		switch {
		case p == nil && t.Kill != "":
			if w.rng.IntN(2) == 0 { // both are allowed
				a.known[t.AttemptID] = &process{state: speculation.AttemptRefused}
			}
		case p == nil && lease <= a.clock():
		case p == nil && (len(a.known) > 4 || w.rng.IntN(10) == 0):
			a.known[t.AttemptID] = &process{state: speculation.AttemptRefused, outcome: "queue full"}
		case p == nil:
			a.known[t.AttemptID] = &process{state: speculation.AttemptQueued, lease: lease, slack: time.Duration(w.rng.Int64N(int64(4 * time.Second)))}
		case p.over():
		default:
			p.lease = max(p.lease, lease)
			if t.Kill != "" {
				a.kill(p)
			}
		}
	}
	for _, id := range a.ids() {
		p := a.known[id]
		switch {
		case listed[id]:
		case p.over():
			delete(a.known, id)
		default:
			a.kill(p)
		}
	}
}

// kill lets a process end, soon; sometimes not for long.
func (a *agent) kill(p *process) {
	if p.dying.IsZero() {
		p.dying = a.w.now.Add(time.Duration(a.w.rng.IntN(3)) * time.Second)
		if a.w.rng.IntN(10) == 0 {
			p.dying = a.w.now.Add(time.Minute)
		}
	}
}
