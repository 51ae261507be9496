package batch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/bus/bustest"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/speculation"
)

// playedHost is a host that runs what it is told to, each task for some seconds.
type playedHost struct {
	t    *testing.T
	bus  bus.Bus
	name string

	mu       sync.Mutex
	known    map[speculation.AttemptID]*speculation.Attempt
	newest   [2]uint64
	report   uint64
	runs     *taskRuns
	lifetime time.Duration
}

// taskRuns counts how often each task runs at a time and did in all.
type taskRuns struct {
	mu         sync.Mutex
	now, ended map[string]int
	most       int
}

func (h *playedHost) tell() {
	h.mu.Lock()
	h.report++
	m := &speculation.Machine{Host: h.name, Pool: "p", Time: time.Now(), Life: 1, Report: h.report, Epoch: h.newest[0], Sequence: h.newest[1],
		Load: map[string]float64{"cpu": .1, "memory": .2}, Attempts: []speculation.Attempt{}}
	for _, a := range h.known {
		m.Attempts = append(m.Attempts, *a)
	}
	h.mu.Unlock()
	_ = h.bus.Publish(context.Background(), m)
}

// take carries out a list.
func (h *playedHost) take(p *speculation.Placements) {
	h.mu.Lock()
	defer h.mu.Unlock()
	order := [2]uint64{p.Epoch, p.Sequence}
	if order[0] < h.newest[0] || order[0] == h.newest[0] && order[1] <= h.newest[1] {
		return
	}
	h.newest = order
	listed := map[speculation.AttemptID]bool{}
	for _, task := range p.Tasks {
		listed[task.AttemptID] = true
		if h.known[task.AttemptID] == nil {
			h.known[task.AttemptID] = &speculation.Attempt{AttemptID: task.AttemptID, State: speculation.AttemptRunning, Class: task.Class}
			go h.run(task.AttemptID)
		}
	}
	for id, a := range h.known {
		if !listed[id] && a.State == speculation.AttemptEnded {
			delete(h.known, id)
		}
	}
}

func (h *playedHost) run(id speculation.AttemptID) {
	h.runs.mu.Lock()
	h.runs.now[id.Task]++
	h.runs.most = max(h.runs.most, h.runs.now[id.Task])
	h.runs.mu.Unlock()
	time.Sleep(h.lifetime)
	h.runs.mu.Lock()
	h.runs.now[id.Task]--
	h.runs.ended[id.Task]++
	h.runs.mu.Unlock()
	h.mu.Lock()
	h.known[id] = &speculation.Attempt{AttemptID: id, State: speculation.AttemptEnded, Class: speculation.OversubscribedTask, Outcome: "exited"}
	h.mu.Unlock()
	h.tell()
}

// live reports every 5 s until ctx ends.
func (h *playedHost) live(ctx context.Context) {
	stop, err := h.bus.Subscribe(ctx, bus.Subscription{Kind: speculation.KindPlacements, Key: "p/" + h.name, Handle: func(_ context.Context, d bus.Delivery) error {
		h.take(d.Value.(*speculation.Placements))
		return nil
	}})
	if err != nil {
		h.t.Error(err)
		return
	}
	defer stop()
	for ctx.Err() == nil {
		h.tell()
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Second):
		}
	}
}

// faulty is a bus whose buckets do not store everything, and do not always say so.
type faulty struct {
	bus.Bus
	mu  sync.Mutex
	rng *rand.Rand
}

func (f *faulty) Bucket(ctx context.Context, name string) (bus.Bucket, error) {
	b, err := f.Bus.Bucket(ctx, name)
	if name == "jobs" {
		return faultyBucket{b, f}, err
	}
	return b, err
}

type faultyBucket struct {
	bus.Bucket
	of *faulty
}

func (b faultyBucket) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	b.of.mu.Lock()
	what := b.of.rng.IntN(20)
	b.of.mu.Unlock()
	switch what {
	case 0:
		return 0, errors.New("not stored")
	case 1:
		_, err := b.Bucket.Update(ctx, key, value, revision)
		return 0, errors.Join(errors.New("the answer is lost"), err)
	}
	return b.Bucket.Update(ctx, key, value, revision)
}

// batchWorld is a bus with hosts, and a console that hears how jobs stand.
type batchWorld struct {
	*testing.T
	bus    bus.Bus
	runs   *taskRuns
	hosts  []*playedHost
	mu     sync.Mutex
	states map[string]*speculation.JobState
}

func openBatchWorld(t *testing.T, ctx context.Context, b bus.Bus, hosts int) *batchWorld {
	w := &batchWorld{T: t, bus: b, runs: &taskRuns{now: map[string]int{}, ended: map[string]int{}}, states: map[string]*speculation.JobState{}}
	stop, err := b.Subscribe(ctx, bus.Subscription{Kind: speculation.KindJobState, Handle: func(_ context.Context, d bus.Delivery) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.states[d.Value.(*speculation.JobState).Name] = d.Value.(*speculation.JobState)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	context.AfterFunc(ctx, stop)
	for i := range hosts {
		h := &playedHost{t: t, bus: b, name: fmt.Sprint("host-", i), known: map[speculation.AttemptID]*speculation.Attempt{}, runs: w.runs, lifetime: time.Duration(3+i) * time.Second}
		w.hosts = append(w.hosts, h)
		go h.live(ctx)
	}
	return w
}

// manager runs a planner's job manager until stop is called.
func (w *batchWorld) manager(ctx context.Context, name string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	c := config.Default()
	c.Pool.Name, c.Beside.Manager = "p", &config.TaskManager{Policy: "MMF", Mode: "RP", Candidates: 10, Widen: 2, Worst: new(0.1), Keep: new(0.6), Dispatch: "random",
		Lease: 30 * time.Second, QueueTimeout: time.Minute, Thresholds: map[string]float64{"cpu": .8}, Weights: map[string]float64{"cpu": 1, "memory": 1}}
	m := jobManager{config: managerConfig(c), rule: newSelector(c.Beside.Manager), bus: w.bus, logger: slog.New(slog.NewTextHandler(w.Output(), nil)), metrics: metric.NewSet(), ready: func(string) {}, raised: new(time.Time)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := m.alone(name, false).RunTerm(ctx, m.lead); err != nil {
			w.Error(err)
		}
	}()
	return func() { cancel(); <-done }
}

func (w *batchWorld) submit(job string, tasks int) {
	r := &speculation.JobRequest{Pool: "p", Verb: speculation.SubmitJob, Time: time.Now(), ID: "r-" + job, By: "me", Job: speculation.BatchJob{Name: job, Retries: 1}}
	for i := range tasks {
		r.Job.Tasks = append(r.Job.Tasks, speculation.BatchTask{Name: fmt.Sprint("t", i), TaskSpec: speculation.TaskSpec{Command: []string{"/bin/true"}, Cores: 1, Memory: 1 << 20}})
	}
	if err := w.bus.Publish(w.Context(), r); err != nil {
		w.Fatal(err)
	}
}

// state is how a job stands, as far as a console was told.
func (w *batchWorld) state(job string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.states[job]; s != nil {
		return s.State
	}
	return ""
}

func (w *batchWorld) ranOnceEach(tasks int, exactly bool) {
	w.Helper()
	w.runs.mu.Lock()
	defer w.runs.mu.Unlock()
	if w.runs.most != 1 {
		w.Errorf("a task ran %d times at once", w.runs.most)
	}
	for i := range tasks {
		if n := w.runs.ended[fmt.Sprint("t", i)]; n < 1 || exactly && n != 1 {
			w.Errorf("task %d ran %d times", i, n)
		}
	}
}

func TestAJobRunsOnTheHostsThatReportThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := openBatchWorld(t, ctx, bustest.NewMemory(), 3)
		stop := w.manager(ctx, "a")
		w.submit("j", 40)
		time.Sleep(5 * time.Minute)
		if got := w.state("j"); got != speculation.StateDone {
			t.Errorf("the job is %q", got)
		}
		w.ranOnceEach(40, true)
		stop()
		cancel()
		_ = w.bus.Close()
		synctest.Wait()
	})
}

func TestNoTaskIsLostOrRunsTwiceAtOnceWhenPlannersComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := openBatchWorld(t, ctx, bustest.NewMemory(), 3)
		stop := w.manager(ctx, "a")
		w.submit("j", 60)
		for i := range 10 {
			time.Sleep(time.Duration(1+3*i%7) * time.Second)
			next := w.manager(ctx, fmt.Sprint("b", i)) // stands by
			stop()
			stop = next
		}
		time.Sleep(10 * time.Minute)
		if got := w.state("j"); got != speculation.StateDone {
			t.Errorf("the job is %q", got)
		}
		w.ranOnceEach(60, true)
		stop()
		cancel()
		_ = w.bus.Close()
		synctest.Wait()
	})
}

func TestHostsThatFollowALaterTermAreLedAgainWhenTheStoreIsSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := openBatchWorld(t, ctx, bustest.NewMemory(), 2)
		for _, h := range w.hosts {
			h.mu.Lock()
			h.newest = [2]uint64{500, 3}
			h.mu.Unlock()
		}
		stop := w.manager(ctx, "a")
		w.submit("j", 10)
		time.Sleep(10 * time.Minute)
		if got := w.state("j"); got != speculation.StateDone {
			t.Errorf("the job is %q", got)
		}
		w.ranOnceEach(10, true)
		stop()
		cancel()
		_ = w.bus.Close()
		synctest.Wait()
	})
}

func TestNoTaskIsLostOrRunsTwiceAtOnceWhileTheStoreFails(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			w := openBatchWorld(t, ctx, &faulty{Bus: bustest.NewMemory(), rng: rand.New(rand.NewPCG(seed, 1))}, 3)
			stop := w.manager(ctx, "a")
			w.submit("j", 40)
			time.Sleep(time.Hour)
			if got := w.state("j"); got != speculation.StateDone {
				t.Errorf("the job is %q", got)
			}
			w.ranOnceEach(40, false)
			stop()
			cancel()
			_ = w.bus.Close()
			synctest.Wait()
		})
	}
}

func TestEveryBatchSectionThatIsTakenIsOneThatTheManagerTakes(t *testing.T) {
	for _, section := range []string{"{}", "{lease: 10s, queue_timeout: 1s}", "{lease: 10m, queue_timeout: 24h, keep: 0, worst: 0, policy: RB, mode: UP, dispatch: round-robin}",
		"{keep: 1, worst: 0.5, candidates: 100000, widen: 100, policy: QLB, thresholds: {pressure_io: 0.1}, weights: {load: 100}}"} {
		cfg, err := config.Parse("f", []byte("beside: {manager: "+section+"}"))
		if err != nil {
			t.Fatal(err)
		}
		c, s := managerConfig(cfg), newSelector(cfg.Beside.Manager)
		c.Epoch = 1
		if err := errors.Join(c.Validate(), s.check()); err != nil {
			t.Errorf("%s: %v", section, err)
		}
	}
}
