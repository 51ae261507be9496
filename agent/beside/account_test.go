package beside

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/arbiter"
	"github.com/trimtab/trimtab/actuator/task"
	"github.com/trimtab/trimtab/collector/load"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/speculation"
)

// limit is a CPU quota in memory, which a fast loop may move.
type limit struct {
	name  string
	of    map[string]float64 // all limits of the host
	check func()
}

func (l *limit) String() string                 { return l.name }
func (l *limit) Resource() string               { return trimtab.CPU }
func (l *limit) Probe(context.Context) error    { return nil }
func (l *limit) MayWrite(context.Context) error { return nil }
func (l *limit) Ready(bool) error               { return nil }
func (l *limit) Undo() []byte                   { return []byte(l.name) }
func (l *limit) Close() error                   { return nil }
func (l *limit) Place() (string, error)         { return "/" + l.name, nil }
func (l *limit) Traits() actuator.Traits        { return actuator.Traits{Location: l.Place, Quick: l} }
func (l *limit) Nearest(a trimtab.Amount) trimtab.Amount {
	return trimtab.Units(math.Round(100*a.Value) / 100)
}
func (l *limit) Read(context.Context) (trimtab.Amount, error) {
	return trimtab.Units(l.of[l.name]), nil
}
func (l *limit) Look() (actuator.Counters, error) {
	return actuator.Counters{Set: trimtab.Units(l.of[l.name])}, nil
}
func (l *limit) Move(v trimtab.Amount, _ float64) (trimtab.Amount, error) {
	return l.Nearest(v), l.Write(context.Background(), v)
}
func (l *limit) Write(_ context.Context, a trimtab.Amount) error {
	l.of[l.name] = l.Nearest(a).Value
	l.check()
	return nil
}

// hostOfAll is a host of 3 cores and 1000 MiB with every loop that gives out some of it: services
// with loans between them, best-effort jobs, and the tasks of two pools. Each may be killed.
type hostOfAll struct {
	*rapid.T
	locks    string
	limits   map[string]float64
	pools    []*poolOfAll
	tasks    []*tasksOfAll
	sequence uint64
	readings []load.Reading
	// once has the tasks that were granted once.
	once map[task.ID]bool
}

const (
	allCores  = 3.0
	allMemory = 1000 << 20
)

// poolOfAll is an actuator of services or jobs.
type poolOfAll struct {
	*actuator.Actuator
	config actuator.Config
	names  []string
}

// tasksOfAll are the tasks of a pool; dead: their agent was killed, and they run on.
type tasksOfAll struct {
	*taskWorld
	dir   string
	group string
	dead  bool
}

func newHostOfAll(outer *testing.T, t *rapid.T, readings []load.Reading) *hostOfAll {
	dir, err := os.MkdirTemp("/dev/shm", "trimtab-test-")
	if err != nil {
		dir = outer.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h := &hostOfAll{T: t, locks: filepath.Join(dir, "locks"), limits: map[string]float64{}, once: map[task.ID]bool{}, readings: readings}
	for _, pool := range []string{"default", colocation.JobsPool("default")} {
		p := &poolOfAll{config: actuator.Config{Host: "h", Pool: pool, Dir: filepath.Join(dir, "journal", strconv.Itoa(len(h.pools))), LockDir: h.locks, JournalSize: 64 << 10, Shared: true,
			KeepOnStop: true, Fast: len(h.pools) == 0, Measure: func() (map[string]float64, error) { return map[string]float64{trimtab.CPU: allCores}, nil }}}
		p.config.Reopen = func(undo []byte) (actuator.Knob, error) { return &limit{string(undo), h.limits, h.fits}, nil }
		for range 2 {
			name := fmt.Sprint("w", len(h.limits))
			h.limits[name] = 0.3
			p.names = append(p.names, name)
			p.config.Targets = append(p.config.Targets, actuator.Target{KnobID: trimtab.KnobID{Workload: name, Resource: trimtab.CPU}, Knob: &limit{name, h.limits, h.fits}, Min: 0.1, Max: 8, Mode: trimtab.Act})
		}
		h.pools = append(h.pools, p)
		h.open(p)
	}
	for i := range 2 {
		a := &tasksOfAll{dir: filepath.Join(dir, "tasks", strconv.Itoa(i)), group: filepath.Join(dir, "groups", strconv.Itoa(i))}
		if err := os.MkdirAll(a.group, 0o700); err != nil {
			t.Fatal(err)
		}
		h.tasks = append(h.tasks, a)
		h.begin(outer, a)
	}
	return h
}

func (h *hostOfAll) open(p *poolOfAll) {
	var err error
	if p.Actuator, err = actuator.Open(context.Background(), p.config); err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { _ = p.Close(context.Background()) })
	p.Tick(context.Background())
}

// begin starts an agent with tasks, those of a killed one having been ended by their watchdog.
func (h *hostOfAll) begin(outer *testing.T, a *tasksOfAll) {
	if a.taskWorld != nil {
		for id := range a.run.tasks {
			_ = a.run.change(id, func(i *task.Info) { i.State = task.Ended })
		}
	}
	a.populate()
	a.dead, a.taskWorld = false, newTaskWorld(outer, ", mode: UP, tasks: 20, regular: {cpu: 2, memory: 600MiB}")
	n := 0
	a.loads.read = func() load.Reading { n++; r := h.readings[n%len(h.readings)]; r.At = a.now; return r }
	boot, err := hostfs.BootID()
	if err != nil {
		h.Fatal(err)
	}
	who := arbiter.Claimant{Journal: a.dir, Pool: "default", PID: 1, Boot: boot, Group: a.group}
	capacity := map[string]float64{trimtab.CPU: allCores, trimtab.Memory: allMemory}
	logger := slog.New(slog.DiscardHandler)
	a.account = &taskAccount{arbiter: arbiter.New(filepath.Join(h.locks, "claims"), who, logger), logger: logger, settled: -time.Hour,
		measure: func() (map[string]float64, error) { return capacity, nil }, ratio: map[string]float64{trimtab.CPU: 1, trimtab.Memory: 0.4}}
	h.Cleanup(func() { _ = a.account.close(false) })
	a.seconds(2)
}

// populate makes the group show whether a task runs.
func (a *tasksOfAll) populate() {
	text := ""
	if a.taskWorld != nil {
		for _, i := range a.run.tasks {
			if i.State != task.Ended {
				text = "7\n"
			}
		}
	}
	_ = os.WriteFile(filepath.Join(a.group, "cgroup.procs"), []byte(text), 0o600)
}

// given returns what regular and speculative tasks have. A task whose grant was taken back keeps
// what it has, and is neither.
func (h *hostOfAll) given() (regular, idle [2]float64) {
	for _, a := range h.tasks {
		if a.taskWorld == nil {
			continue
		}
		for id, i := range a.run.tasks {
			of := &idle
			if i.Class == task.Regular {
				of, h.once[id] = &regular, true
			}
			if i.State != task.Ended && (i.Class == task.Regular || !h.once[id]) {
				of[0] += a.run.specs[id].Cores.Value
				of[1] += a.run.specs[id].Memory.Value
			}
		}
	}
	return regular, idle
}

// fits compares all that is given out with what the host has.
func (h *hostOfAll) fits() {
	regular, idle := h.given()
	cores := regular[0]
	for _, v := range h.limits {
		cores += v
	}
	if cores > allCores+0.03 || regular[1] > allMemory+1 { // knobs round to hundredths
		h.Errorf("limits %v and granted tasks of %v cores, %v bytes are more than the host has", h.limits, regular[0], regular[1])
	}
	if idle[0] > allCores+0.01 || idle[1] > 0.4*allMemory+1 {
		h.Errorf("speculative tasks of all pools have %v cores and %v bytes", idle[0], idle[1])
	}
}

// plan hands a pool a random plan.
func (h *hostOfAll) plan(p *poolOfAll) {
	h.sequence++
	plan := &trimtab.Plan{Pool: p.config.Pool, Epoch: 1, Sequence: h.sequence, Step: 1, Last: rapid.Bool().Draw(h.T, "last"), Time: time.Now(), Capacity: 100, Lease: 600, Lendable: map[string]float64{"h": 1}}
	for _, name := range p.names {
		id := trimtab.KnobID{Pool: p.config.Pool, Host: "h", Workload: name, Resource: trimtab.CPU}
		v := float64(rapid.IntRange(1, 20).Draw(h.T, "tenths")) / 10
		action := trimtab.Action{KnobID: id, Expect: p.now(name), Set: trimtab.Units(v), Mode: trimtab.Act}
		if p.config.Fast && rapid.Bool().Draw(h.T, "lends") {
			action.Envelope = &trimtab.Envelope{Floor: 0.3 * v, Target: v, Ceiling: 4 * v, Budget: 0.05, Late: 0.006, Lend: true, Borrow: true}
		}
		plan.Actions = append(plan.Actions, action)
	}
	p.Handle(context.Background(), plan)
}

func (p *poolOfAll) now(name string) trimtab.Amount {
	for _, k := range p.Holding().Targets {
		if k.Workload == name {
			return k.Now
		}
	}
	return trimtab.Amount{}
}

// lend moves quotas as a fast loop does.
func (h *hostOfAll) lend(p *poolOfAll) {
	var look actuator.FastLook
	p.FastLook(&look)
	var moves []actuator.FastMove
	for i := range look.Groups {
		moves = append(moves, actuator.FastMove{Group: i, Set: float64(rapid.IntRange(1, 40).Draw(h.T, "tenths")) / 10})
	}
	p.FastMove(look.Generation, moves, nil)
}

// list has a planner list the tasks that run and some new ones, and changes what is granted.
func (h *hostOfAll) list(a *tasksOfAll) {
	var all []speculation.Placement
	for _, id := range slices.SortedFunc(maps.Keys(a.run.tasks), func(x, y task.ID) int { return strings.Compare(x.String(), y.String()) }) {
		if p, ok := a.ledger.Find(id); ok && rapid.IntRange(0, 9).Draw(h.T, "stays") > 0 {
			all = append(all, p.Placement)
		}
	}
	for range rapid.IntRange(0, 5).Draw(h.T, "new") {
		h.sequence++
		p := place(fmt.Sprint("t", h.sequence))
		p.Spec.Cores, p.Spec.Memory = float64(rapid.IntRange(1, 15).Draw(h.T, "tenths"))/10, float64(rapid.IntRange(32, 300).Draw(h.T, "MiB"))*(1<<20)
		all = append(all, p)
	}
	for i := range all {
		all[i].Class = rapid.SampledFrom([]speculation.TaskClass{speculation.OversubscribedTask, speculation.RegularTask}).Draw(h.T, "class")
	}
	a.list(all...)
}

func TestWhateverLoopsOfAHostGiveOutIsInOneAccountWhoeverIsKilled(t *testing.T) {
	var readings []load.Reading // once for all: they are files
	for w := newTaskWorld(t, ""); len(readings) < 8; w.now += time.Second {
		readings = append(readings, w.loads.read())
	}
	granted, speculative := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		h := newHostOfAll(t, r, readings)
		for range rapid.IntRange(1, 8).Draw(r, "operations") {
			p, a := rapid.SampledFrom(h.pools).Draw(r, "pool"), rapid.SampledFrom(h.tasks).Draw(r, "tasks")
			switch what := rapid.IntRange(0, 10).Draw(r, "what"); {
			case what < 2:
				h.plan(p)
			case what < 4:
				h.lend(h.pools[0])
			case what == 4: // a killed agent leaves its limits as they are, and begins again
				_ = p.Close(context.Background())
				h.open(p)
			case what == 5 && a.dead || what == 6 && a.dead:
				h.begin(t, a)
			case what == 5:
				a.dead = true
				_ = a.account.arbiter.Close(false)
			case !a.dead:
				h.list(a)
			}
			for _, p := range h.pools {
				p.Tick(context.Background())
			}
			for _, a := range h.tasks {
				if !a.dead {
					a.seconds(1)
				}
				a.populate()
			}
			h.fits()
			regular, idle := h.given()
			h.Logf("limits %v, granted %v, speculative %v, claims %v %v", h.limits, regular, idle, h.tasks[0].account.arbiter.Claimed("cpu"), h.tasks[1].account.arbiter.Claimed("cpu"))
		}
		regular, idle := h.given()
		if regular[0] > 0 {
			granted++
		}
		if idle[0] > 0 {
			speculative++
		}
	})
	if t.Logf("%d hosts with granted tasks, %d with speculative ones", granted, speculative); granted == 0 || speculative == 0 {
		t.Error("too few to say anything")
	}
}
