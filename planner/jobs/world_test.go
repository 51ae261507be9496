package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/speculation"
)

// The world is a slow and obvious account of what runs: hosts that follow the protocol to
// the letter, as badly as it allows, a network that loses, repeats, delays and reorders,
// a store, and managers that die.
type world struct {
	t     *rapid.T
	rng   *rand.Rand
	calm  bool
	now   time.Time
	store *store

	config  Config
	epoch   uint64
	manager *Manager
	client  *client
	stored  bool      // it has stored something
	back    time.Time // when a manager is made again
	// zombie is one that was replaced and does not know it; torn: it wrote something that
	// nobody will know of.
	zombie       *Manager
	zombieClient *client
	torn         bool

	agents []*agent
	wire   []message
	// process is what runs of each task, started every attempt that ever was.
	process  map[string]speculation.AttemptID
	started  map[speculation.AttemptID]bool
	accepted map[string]int // confirmed jobs and their tasks
}

type message struct {
	at     time.Time
	to     *agent // nil: the manager
	list   *speculation.Placements
	report *speculation.Machine
}

func (w *world) send(m message) {
	if !w.calm && w.rng.IntN(5) == 0 {
		return
	}
	for again := true; again; again = !w.calm && w.rng.IntN(10) == 0 {
		m.at = w.now
		if w.rng.IntN(3) == 0 {
			m.at = m.at.Add(time.Duration(w.rng.IntN(3000)) * time.Millisecond)
		}
		if !w.calm && w.rng.IntN(20) == 0 {
			m.at = m.at.Add(time.Duration(w.rng.IntN(120)) * time.Second)
		}
		w.wire = append(w.wire, m)
	}
}

func (w *world) deliver() {
	var later []message
	due := w.wire
	w.wire = nil
	for _, m := range due {
		switch {
		case m.at.After(w.now):
			later = append(later, m)
		case m.to != nil:
			m.to.carry(m.list)
		default:
			for _, to := range []*Manager{w.manager, w.zombie} {
				if to == nil || to == w.zombie && w.rng.IntN(2) == 0 {
					continue
				}
				if err := to.Machine(w.now, m.report); err != nil && !errors.Is(err, trimtab.ErrStale) {
					w.t.Fatal(err)
				}
			}
		}
	}
	w.wire = append(later, w.wire...)
}

// manage is one second of the manager.
func (w *world) manage() {
	if w.manager == nil {
		if w.now.Before(w.back) {
			return
		}
		w.epoch += uint64(w.rng.IntN(2)) // or another run of the same epoch
		w.config.Epoch = w.epoch
		m, err := New(w.now, w.config, w.store.records())
		if err != nil {
			w.t.Fatal(err)
		}
		if len(m.Unreadable()) > 0 {
			w.t.Fatal(m.Unreadable())
		}
		w.manager, w.client = m, w.store.client()
		w.torn = w.torn && w.zombie != nil
		for job, tasks := range w.accepted {
			if m.jobs.byName[job] == nil || len(m.jobs.byName[job].tasks) != tasks {
				w.t.Fatalf("job %s is lost", job)
			}
		}
	}
	if !w.turn(w.manager, w.client, true) {
		w.manager, w.stored, w.back = nil, false, w.now.Add(time.Duration(w.rng.IntN(40))*time.Second)
		return
	}
	w.stored = true
	w.sameFromStore()
	if !w.calm && w.rng.IntN(100) == 0 {
		if w.rng.IntN(2) == 0 { // it does not know that it was replaced
			w.zombie, w.zombieClient, w.torn = w.manager, w.client, false
		}
		w.manager, w.stored, w.back = nil, false, w.now.Add(time.Duration(w.rng.IntN(60))*time.Second)
	}
}

// haunt is one second of a manager that was replaced. By its lock it knows that it must
// not answer; but what it had begun to store it may go on with.
func (w *world) haunt() {
	if w.zombie == nil || w.rng.IntN(3) > 0 {
		return
	}
	if before := w.store.count; !w.turn(w.zombie, w.zombieClient, false) {
		w.zombie, w.torn = nil, w.store.count > before
	}
}

// turn is one tick of a manager.
func (w *world) turn(m *Manager, c *client, leads bool) bool {
	var names []string
	for _, a := range w.agents {
		if w.calm || w.rng.IntN(5) > 0 {
			names = append(names, a.name)
		}
	}
	m.Candidates(names)
	asked := w.request(m)
	out := m.Tick(w.now)
	for _, name := range out.Forgotten { // it had ended long ago
		delete(w.accepted, name)
	}
	limit := len(out.Store)
	if !w.calm && w.rng.IntN(40) == 0 {
		limit = w.rng.IntN(limit + 1)
	}
	if c.put(out.Store, limit) != nil {
		return false
	}
	if asked != nil {
		w.accepted[asked.Name] = len(asked.Tasks)
	}
	if !leads && len(out.Store) == 0 {
		return true
	}
	for _, s := range out.States {
		if err := s.Validate(); err != nil {
			w.t.Fatal(err)
		}
	}
	for _, p := range out.Placements {
		if err := p.Validate(); err != nil {
			w.t.Fatal(err)
		}
		for _, a := range w.agents {
			if a.name == p.Host {
				w.send(message{to: a, list: p})
			}
		}
	}
	return true
}

// request asks for something, sometimes.
func (w *world) request(m *Manager) *speculation.BatchJob {
	if w.calm || w.rng.IntN(4) > 0 {
		return nil
	}
	names := m.Jobs()
	r := speculation.JobRequest{Pool: "batch", ID: fmt.Sprint(w.now), Host: w.agents[w.rng.IntN(len(w.agents))].name, Task: fmt.Sprintf("t%d", w.rng.IntN(40))}
	switch {
	case len(names) == 0 || len(names) < 4 && w.rng.IntN(4) == 0:
		r.Verb, r.Job = speculation.SubmitJob, batch(fmt.Sprintf("j%d", w.rng.IntN(4)), 1+w.rng.IntN(40))
		r.Job.Priority = w.rng.IntN(3)
	case w.rng.IntN(40) == 0:
		r.Verb, r.Job.Name = speculation.CancelJob, names[w.rng.IntN(len(names))]
	case w.rng.IntN(4) == 0:
		r.Verb, r.Job.Name = speculation.RevokeGrant, names[w.rng.IntN(len(names))]
	default:
		j := m.jobs.byName[names[w.rng.IntN(len(names))]]
		r.Verb, r.Job.Name = speculation.GrantTask, j.name
		if len(j.live) > 0 && w.rng.IntN(4) > 0 {
			a := j.live[w.rng.IntN(len(j.live))]
			r.Task = a.id.Task
			if w.rng.IntN(3) == 0 {
				r.Host = a.host.name
			}
		}
	}
	if m.Request(w.now, &r) != nil || r.Verb != speculation.SubmitJob {
		return nil
	}
	delete(w.accepted, r.Job.Name) // until this one is confirmed
	return &r.Job
}

// sameFromStore fails if what is stored is not what the manager knows.
func (w *world) sameFromStore() {
	if w.rng.IntN(20) > 0 || w.torn || w.zombie != nil {
		return
	}
	c := w.config
	m, err := New(w.now, c, w.store.records())
	if err != nil {
		w.t.Fatal(err)
	}
	if a, b := fmt.Sprint(m.Jobs()), fmt.Sprint(w.manager.Jobs()); a != b {
		w.t.Fatalf("jobs %s are stored, %s are known", a, b)
	}
	for name, j := range w.manager.jobs.byName {
		other := m.jobs.byName[name]
		for k := range j.stored.states {
			a, _ := json.Marshal(j.chunk(k))
			b, _ := json.Marshal(other.chunk(k))
			if j.cancelled == "" && !bytes.Equal(a, b) {
				w.t.Fatalf("job %s is\n%s\nand stored is\n%s", name, a, b)
			}
		}
	}
}

// bounded fails if a task was tried more often than allowed, or anything is inconsistent.
func (w *world) bounded() {
	if w.manager == nil {
		return
	}
	for _, j := range w.manager.jobs.byName {
		running, finished := 0, 0
		for i := range j.tasks {
			t := &j.tasks[i]
			if int(t.failures) > j.Retries+1 || int(t.refused) > w.config.RefusedLimit+1 || int(t.lost) > w.config.LostLimit+1 {
				w.t.Fatalf("task %s/%d was tried too often: %+v", j.name, i, t)
			}
			if t.ended() != (t.live == nil && t.status != waiting) || t.live != nil && (t.live.gone || t.live.host.byID[t.live.id] != t.live) {
				w.t.Fatalf("task %s/%d: %+v", j.name, i, t)
			}
			if t.ended() {
				finished++
			}
			if t.live != nil && t.live.runs() {
				running++
			}
		}
		if running != j.running || finished != j.finished || (finished == len(j.tasks)) == j.ended.IsZero() {
			w.t.Fatalf("job %s: %d run, %d have ended, counted %d and %d, ended %v", j.name, running, finished, j.running, j.finished, j.ended)
		}
	}
	for _, h := range w.manager.hosts.byName {
		if len(h.live) != len(h.byID) || len(h.live)-h.running > w.config.Queued+60 || len(h.live) > w.config.Here {
			w.t.Fatalf("host %+v", h)
		}
	}
}

func newWorld(t *rapid.T) *world {
	seed := rapid.Uint64().Draw(t, "seed")
	c := config()
	c.Lease, c.QueueTimeout, c.KillTimeout, c.HostTimeout, c.Epoch = 20*time.Second, 15*time.Second, 25*time.Second, 12*time.Second, 1
	c.MaxBackoff, c.LostLimit, c.Seed, c.Queued = 30*time.Second, 5, seed, 3
	c.Dispatch, c.Keep = Dispatch(seed%2), time.Duration(1+seed%5)*time.Minute
	w := &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 2)), now: start(), store: newStore(), config: c, epoch: 1,
		process: map[string]speculation.AttemptID{}, started: map[speculation.AttemptID]bool{}, accepted: map[string]int{},
	}
	for i := range 3 {
		w.agents = append(w.agents, &agent{w: w, name: fmt.Sprintf("h%d", i), rate: .95 + .1*w.rng.Float64(), back: w.now, known: map[speculation.AttemptID]*process{}})
	}
	return w
}

func (w *world) second() {
	w.now = w.now.Add(time.Second)
	w.deliver()
	for _, a := range w.agents {
		a.step()
	}
	w.haunt()
	w.manage()
	w.bounded()
}

func TestWhateverIsLostOrDiesNoTaskRunsTwiceAtOnceAndEachEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range 600 {
			w.second()
		}
		w.calm, w.zombie = true, nil
		for range 6000 {
			w.second()
			if w.manager != nil && !slices.ContainsFunc(w.manager.jobs.order, func(j *job) bool { return j.ended.IsZero() }) {
				break
			}
		}
		for _, j := range w.manager.jobs.order {
			if j.ended.IsZero() {
				t.Fatalf("job %s has not ended: %+v", j.name, w.manager.State(w.now, j.name))
			}
			for i := range j.tasks {
				if s := j.tasks[i].status; s != done && s != failed && s != cancelled || s == cancelled && j.cancelled == "" {
					t.Fatalf("task %d of %s is %v", i, j.name, s)
				}
			}
		}
		for job := range w.accepted {
			if w.manager.jobs.byName[job] == nil {
				t.Fatalf("job %s is lost", job)
			}
		}
		if len(w.process) > 0 {
			for range 60 {
				w.second()
			}
			if len(w.process) > 0 {
				t.Fatalf("%v still run", w.process)
			}
		}
	})
}
