package jobs

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/trimtab/trimtab/speculation"
)

func start() time.Time { return time.Date(2026, 11, 24, 2, 0, 0, 0, time.UTC) }

func pointer(v float64) *float64 { return &v }

// store is a key-value store with compare-and-swap.
type store struct {
	values    map[string][]byte
	revisions map[string]int
	count     int
}

func newStore() *store { return &store{values: map[string][]byte{}, revisions: map[string]int{}} }

func (s *store) records() []Record {
	var out []Record
	for _, k := range slices.Sorted(maps.Keys(s.values)) {
		out = append(out, Record{k, s.values[k]})
	}
	return out
}

var errConflict = errors.New("conflict")

// client is what one manager knows of the store.
type client struct {
	store *store
	seen  map[string]int
}

func (s *store) client() *client { return &client{s, maps.Clone(s.revisions)} }

// put stores all, or up to the first that another client wrote, or up to the limit.
func (c *client) put(records []Record, limit int) error {
	for i, r := range records {
		if i >= limit || c.store.revisions[r.Key] != c.seen[r.Key] {
			return errConflict
		}
		c.store.count++
		c.store.revisions[r.Key], c.seen[r.Key] = c.store.count, c.store.count
		if c.store.values[r.Key] = r.Value; r.Value == nil {
			delete(c.store.values, r.Key)
		}
	}
	return nil
}

// bench is one manager, and hosts that a test speaks for.
type bench struct {
	t      *testing.T
	m      *Manager
	config Config
	store  *store
	client *client
	now    time.Time
	out    Output
	lists  map[string]*speculation.Placements
	number map[string]uint64
	life   map[string]uint64
}

func config() Config {
	c := Defaults()
	c.Pool, c.Epoch, c.Seed, c.StateEvery = "batch", 7, 1, 0
	return c
}

func newBench(t *testing.T, c Config, hosts ...string) *bench {
	t.Helper()
	b := &bench{t: t, config: c, store: newStore(), now: start(), lists: map[string]*speculation.Placements{}, number: map[string]uint64{}, life: map[string]uint64{}}
	b.restart()
	b.m.Candidates(hosts)
	for _, h := range hosts {
		b.report(h)
	}
	return b
}

// restart makes another manager of what is stored.
func (b *bench) restart() {
	b.t.Helper()
	b.config.Epoch++
	m, err := New(b.now, b.config, b.store.records())
	if err != nil {
		b.t.Fatal(err)
	}
	if len(m.Unreadable()) > 0 {
		b.t.Fatal(m.Unreadable())
	}
	if b.m != nil {
		m.Candidates(b.m.candidates.names)
	}
	b.m, b.client = m, b.store.client()
}

// tick lets time pass, and stores.
func (b *bench) tick(d time.Duration) Output {
	b.t.Helper()
	b.now = b.now.Add(d)
	b.out = b.m.Tick(b.now)
	if err := b.client.put(b.out.Store, len(b.out.Store)); err != nil {
		b.t.Fatal(err)
	}
	for _, p := range b.out.Placements {
		b.lists[p.Host] = p
		if err := p.Validate(); err != nil {
			b.t.Fatal(err)
		}
	}
	for _, s := range b.out.States {
		if err := s.Validate(); err != nil {
			b.t.Fatal(err)
		}
	}
	return b.out
}

// say sends a report of a host with attempts, which has carried out its newest list.
func (b *bench) say(host string, attempts ...speculation.Attempt) error {
	b.number[host]++
	b.life[host] = max(b.life[host], 1)
	r := &speculation.Machine{Host: host, Pool: "batch", Time: b.now, Life: b.life[host], Report: b.number[host], Attempts: attempts}
	if p := b.lists[host]; p != nil && p.Life == r.Life {
		r.Epoch, r.Sequence = p.Epoch, p.Sequence
	}
	return b.m.Machine(b.now, r)
}

func (b *bench) report(host string, attempts ...speculation.Attempt) {
	b.t.Helper()
	if err := b.say(host, attempts...); err != nil {
		b.t.Fatal(err)
	}
}

// idle lets time pass, in which hosts report every 5 s what they report.
func (b *bench) idle(d time.Duration, hosts map[string][]speculation.Attempt) {
	b.t.Helper()
	for ; d > 0; d -= 5 * time.Second {
		for _, h := range slices.Sorted(maps.Keys(hosts)) {
			b.report(h, hosts[h]...)
		}
		b.tick(min(d, 5*time.Second))
	}
}

func batch(name string, tasks int) speculation.BatchJob {
	j := speculation.BatchJob{Name: name, Retries: 2}
	for i := range tasks {
		j.Tasks = append(j.Tasks, speculation.BatchTask{Name: fmt.Sprintf("t%d", i), TaskSpec: speculation.TaskSpec{Command: []string{"/bin/work", fmt.Sprint(i)}, Cores: 1, Memory: 1 << 28}})
	}
	return j
}

func (b *bench) ask(r speculation.JobRequest) error {
	r.Pool = "batch"
	if r.ID == "" {
		r.ID = fmt.Sprint(r.Verb, r.Job.Name, b.now.UnixNano())
	}
	return b.m.Request(b.now, &r)
}

func (b *bench) submit(j speculation.BatchJob) {
	b.t.Helper()
	if err := b.ask(speculation.JobRequest{Verb: speculation.SubmitJob, Job: j, By: "ann"}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) grant(job, task, host string) error {
	return b.ask(speculation.JobRequest{Verb: speculation.GrantTask, Job: speculation.BatchJob{Name: job}, Task: task, Host: host})
}

func (b *bench) cancel(job string) error {
	return b.ask(speculation.JobRequest{Verb: speculation.CancelJob, Job: speculation.BatchJob{Name: job}, By: "ann"})
}

// task returns how a task stands.
func (b *bench) task(job, task string) speculation.TaskState {
	b.t.Helper()
	if s := b.m.State(b.now, job); s != nil {
		for _, t := range s.Tasks {
			if t.Name == task {
				return t
			}
		}
	}
	b.t.Fatalf("no task %s/%s", job, task)
	return speculation.TaskState{}
}

// wants fails the test if a task does not stand so.
func (b *bench) wants(job, task, state, host string) {
	b.t.Helper()
	if s := b.task(job, task); s.State != state || s.Host != host {
		b.t.Fatalf("%s/%s is %s on %q (%s), want %s on %q", job, task, s.State, s.Host, s.Why, state, host)
	}
}

// listed returns what the newest list of a host says of a task, or nil.
func (b *bench) listed(host, task string) *speculation.Placement {
	if p := b.lists[host]; p != nil {
		for i := range p.Tasks {
			if p.Tasks[i].Task == task {
				return &p.Tasks[i]
			}
		}
	}
	return nil
}

func attemptAt(job, task string, n int, state speculation.AttemptState) speculation.Attempt {
	return speculation.Attempt{AttemptID: speculation.AttemptID{Job: job, Task: task, Attempt: n}, State: state}
}

func exited(job, task string, n, code int) speculation.Attempt {
	a := attemptAt(job, task, n, speculation.AttemptEnded)
	a.Outcome, a.Code = "exited", code
	return a
}

func ended(job, task string, n int, outcome string) speculation.Attempt {
	a := attemptAt(job, task, n, speculation.AttemptEnded)
	a.Outcome = outcome
	return a
}

func running(job, task string, n int, progress float64) speculation.Attempt {
	a := attemptAt(job, task, n, speculation.AttemptRunning)
	a.Progress = pointer(progress)
	return a
}
