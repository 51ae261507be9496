package jobs

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/trimtab/trimtab/speculation"
)

// paperJobs is how many jobs ROSE's batch experiment has, paperTasks how many tasks in all.
const (
	paperJobs  = 60
	paperTasks = 214_880
)

// full returns a manager with so many jobs and tasks, and hosts of which each runs some.
func full(tb testing.TB, jobs, tasks, hosts, here int) (*Manager, *fleet) {
	tb.Helper()
	c := config()
	c.Queued, c.Here, c.Starts, c.QueueTimeout, c.StateEvery = here, here, 100_000, time.Hour, Defaults().StateEvery
	m, err := New(start(), c, nil)
	if err != nil {
		tb.Fatal(err)
	}
	f := &fleet{m: m, now: start(), lists: map[string]*speculation.Placements{}}
	for i := range hosts {
		f.names = append(f.names, fmt.Sprintf("host-%04d", i))
	}
	f.reports()
	m.Candidates(f.names)
	for i := range jobs {
		j := batch(fmt.Sprintf("job-%d", i), tasks/jobs)
		if i < tasks%jobs {
			j = batch(fmt.Sprintf("job-%d", i), tasks/jobs+1)
		}
		if err := m.Request(f.now, &speculation.JobRequest{Pool: "batch", Verb: speculation.SubmitJob, ID: fmt.Sprint(i), Job: j}); err != nil {
			tb.Fatal(err)
		}
	}
	f.second()
	f.second()
	return m, f
}

// fleet is hosts that run what they get.
type fleet struct {
	m      *Manager
	now    time.Time
	names  []string
	number uint64
	lists  map[string]*speculation.Placements
	out    Output
	bytes  int
	done   int
}

// reports sends one of each host: the first of its attempts has ended, the others run.
func (f *fleet) reports() {
	f.number++
	for _, name := range f.names {
		r := &speculation.Machine{Host: name, Pool: "batch", Life: 1, Report: f.number}
		if l := f.lists[name]; l != nil {
			r.Epoch, r.Sequence = l.Epoch, l.Sequence
			for i, p := range l.Tasks {
				a := speculation.Attempt{AttemptID: p.AttemptID, State: speculation.AttemptRunning}
				if i == 0 {
					a.State, a.Outcome = speculation.AttemptEnded, "exited"
					f.done++
				}
				r.Attempts = append(r.Attempts, a)
			}
		}
		if err := f.m.Machine(f.now, r); err != nil {
			panic(err)
		}
	}
}

func (f *fleet) second() {
	f.now = f.now.Add(time.Second)
	f.out = f.m.Tick(f.now)
	for _, p := range f.out.Placements {
		f.lists[p.Host] = p
	}
	for _, r := range f.out.Store {
		f.bytes += len(r.Value)
	}
}

func heapBytes() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

func TestTheTasksOfThePapersExperimentFitInMemory(t *testing.T) {
	before := heapBytes()
	m, f := full(t, paperJobs, paperTasks, 210, 20)
	after := heapBytes()
	f.out = Output{}
	each := float64(after-before) / paperTasks
	t.Logf("%d jobs, %d tasks: %.0f MB, %.0f B a task, records of %.1f MB", len(m.jobs.byName), m.jobs.tasks, float64(after-before)/1e6, each, float64(f.bytes)/1e6)
	if m.jobs.tasks != paperTasks || each > 1000 {
		t.Fatalf("%d tasks, %.0f B each", m.jobs.tasks, each)
	}
	runtime.KeepAlive(f)
}

func TestATickAllocatesForWhatChangedNotForWhatThereIs(t *testing.T) {
	allocated := func(tasks int) float64 {
		_, f := full(t, 10, tasks, 50, 5)
		return testing.AllocsPerRun(5, func() {
			f.reports()
			f.second()
		})
	}
	small, large := allocated(2_000), allocated(50_000)
	t.Logf("%.0f allocations with 2,000 tasks, %.0f with 50,000", small, large)
	if large > 1.5*small {
		t.Fatalf("%.0f allocations with 2,000 tasks, %.0f with 50,000", small, large)
	}
}

// BenchmarkTick is a second in which nothing, or each of 210 hosts, reports and one of its
// tasks ends; of so many tasks.
func BenchmarkTick(b *testing.B) {
	for _, tasks := range []int{paperTasks / 100, paperTasks / 10, paperTasks} {
		b.Run(fmt.Sprintf("idle/tasks=%d", tasks), func(b *testing.B) {
			m, f := full(b, paperJobs, tasks, 210, 8)
			m.Candidates(nil)
			f.second()
			for b.Loop() {
				f.second()
			}
		})
		b.Run(fmt.Sprintf("busy/tasks=%d", tasks), func(b *testing.B) {
			_, f := full(b, paperJobs, tasks, 210, 8)
			f.bytes, f.done = 0, 0
			n := 0
			for b.Loop() {
				f.reports()
				f.second()
				n++
				if f.m.jobs.tasks == 0 || f.done > tasks/2 {
					b.StopTimer()
					f.bytes, f.done, n = 0, 0, 0
					_, f = full(b, paperJobs, tasks, 210, 8)
					b.StartTimer()
				}
			}
			b.ReportMetric(float64(f.bytes)/float64(n), "stored-B/op")
		})
	}
}

func BenchmarkNew(b *testing.B) {
	s := newStore()
	m, f := full(b, paperJobs, paperTasks, 210, 8)
	cl := s.client()
	m.store.fenced = true
	for _, j := range m.jobs.byName { // all of it again
		j.stored.head = true
		for i := range j.tasks {
			m.write(j, int32(i))
		}
		j.stored.parts, _, _ = split(j.Tasks)
	}
	if err := cl.put(m.Tick(f.now).Store, 1<<30); err != nil {
		b.Fatal(err)
	}
	stored := s.records()
	b.ReportMetric(float64(len(stored)), "records")
	for b.Loop() {
		if _, err := New(f.now, m.config, stored); err != nil {
			b.Fatal(err)
		}
	}
}
