//go:build integration

package grow

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/collector/memory"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/internal/shortage"
	"github.com/trimtab/trimtab/quantity"
)

const mib = 1 << 20

// TestMain makes this program one that takes memory, if it is told to: so many MiB at once, then by so
// many a second up to so many, which it holds until its input ends. A rate below 0 is how many of them it
// touches again and again.
func TestMain(m *testing.M) {
	var first, rate, last int
	if n, _ := fmt.Sscanf(os.Getenv("TRIMTAB_EAT"), "%d %d %d", &first, &rate, &last); n == 3 {
		eat(first, rate, last)
		return
	}
	os.Exit(m.Run())
}

func eat(first, rate, last int) {
	fmt.Scanln() // until it is in its group
	var held [][]byte
	began := time.Now()
	for len(held) < last {
		for want := min(last, first+int(float64(max(0, rate))*time.Since(began).Seconds())); len(held) < want; {
			b := make([]byte, mib)
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			held = append(held, b)
		}
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println("full")
	for i := 0; rate < 0; i++ {
		for j := 0; j < mib; j += 4096 {
			held[i%-rate][j]++
		}
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Scanln()
	runtime.KeepAlive(held)
}

// rig is a real group with a limit of 64 MiB, under an actuator that has a plan, and the loop.
type rig struct {
	t          *testing.T
	root, name string
	version    int
	set        *metric.Set
	actuator   *actuator.Actuator
}

func newRig(t *testing.T) *rig {
	root, err := hostfs.CPUHierarchy()
	if err == nil {
		err = cgroup.Writable(root)
	}
	if err != nil {
		t.Skipf("no writable hierarchy: %v", err)
	}
	r := &rig{t: t, root: root, name: fmt.Sprintf("trimtab-grow-%d-%d", os.Getpid(), time.Now().UnixNano()%1e9), version: 2, set: metric.NewSet()}
	g, err := cgroup.Create(root, r.name, "memory")
	if err != nil {
		t.Skipf("no group with memory: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := g.Remove(ctx); err != nil {
			t.Error(err)
		}
	})
	kind := cgroup.Kind()
	k, err := kind.Open(actuator.Location{Root: root, Path: r.name}, trimtab.Memory)
	if err == nil {
		err = k.Write(t.Context(), trimtab.Units(64*mib))
	}
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(k.String(), "v1") {
		r.version = 1
	}
	a, err := actuator.Open(t.Context(), actuator.Config{Host: "h", Pool: "p", Dir: t.TempDir(), Reopen: kind.Reopen,
		FreeMemory: func() (float64, float64, error) { return hostfs.FreeMemory(root) },
		Targets:    []actuator.Target{{KnobID: trimtab.KnobID{Workload: "w", Resource: trimtab.Memory}, Knob: k, Min: 16 * mib, Max: 1024 * mib, Mode: trimtab.Act}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(context.Background()) })
	if o := a.Handle(t.Context(), &trimtab.Plan{Pool: "p", Epoch: 1, Sequence: 1, Step: 1, Last: true, Time: time.Now(), Capacity: 1, Lease: 600}); o.Refused != "" {
		t.Fatal(o.Refused)
	}
	r.actuator = a
	return r
}

// start begins to read and to raise.
func (r *rig) start() *rig {
	r.run(&Config{Margins: map[string]float64{"w": 0.07}})
	return r
}

// run begins to read, and the loop. What is to be probed is due after 5 s: the first reading has no refaults.
func (r *rig) run(c *Config) {
	t := r.t
	c.Knobs, c.Feed, c.Metrics, c.Logger = r.actuator, NewFeed(), r.set, slog.New(slog.NewTextHandler(t.Output(), nil))
	p, err := poll.Open(memory.Source(), poll.Config{Host: "h", Root: r.root, Targets: []poll.Target{{Workload: "w", Path: r.name}}, Bus: nowhere{}, Metrics: r.set, Seen: c.Feed.Take})
	if err != nil {
		t.Fatal(err)
	}
	l, prober := newLoop(c)
	prober.next[shortage.Name{Workload: "w"}] = due{at: hostfs.BootTime() + 5*time.Second}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- p.Run(ctx) }()
	go func() { ended <- l.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended; <-ended; prober.stop(); p.Close() })
}

// nowhere discards samples.
type nowhere struct{}

func (nowhere) Publish(context.Context, trimtab.Value) error { return nil }

// read reads the number in a file of the group, by its name in version 1 or 2; -1: there is none.
func (r *rig) read(v1, v2, key string) float64 {
	root, name := r.root, v2
	if r.version == 1 {
		root, name = hostfs.Sibling(r.root, "memory"), v1
	}
	b, err := os.ReadFile(filepath.Join(root, r.name, name))
	if err != nil {
		return -1
	}
	if key != "" {
		v, _ := hostfs.Keyed(string(b), key)
		return float64(v)
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(string(b)), 64)
	if err != nil {
		return -1
	}
	return v
}

func (r *rig) limit() float64 { return r.read("memory.limit_in_bytes", "memory.max", "") }
func (r *rig) use() float64   { return r.read("memory.usage_in_bytes", "memory.current", "") }
func (r *rig) events() float64 {
	if r.version == 1 {
		return r.read("memory.failcnt", "", "")
	}
	return r.read("", "memory.events", "high") + r.read("", "memory.events", "max")
}

// eater starts the program that takes memory, in the group; full tells when it has all, or was killed. end
// ends it.
func (r *rig) eater(first, rate, last int) (full <-chan bool, end func()) {
	r.t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), fmt.Sprintf("TRIMTAB_EAT=%d %d %d", first, rate, last), "GOGC=off")
	in, err := c.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.join(c.Process.Pid)
	in.Write([]byte("\n"))
	done := make(chan bool, 1)
	go func() {
		n, _ := out.Read(make([]byte, 16))
		done <- n > 0
	}()
	return done, func() { c.Process.Kill(); c.Wait() }
}

// follow watches the group every 10 ms until the program has all that it wants, and returns how long
// each shortage lasted: from the first event, or from 90% of the limit, to a larger limit.
func (r *rig) follow(full <-chan bool, end func()) (lived bool, took []time.Duration) {
	defer end()
	limit, events := r.limit(), r.events()
	var since time.Time
	for {
		select {
		case lived = <-full:
			return lived, took
		case <-time.After(10 * time.Millisecond):
		}
		now, e, use := r.limit(), r.events(), r.use()
		if now > limit && !since.IsZero() {
			took = append(took, time.Since(since))
			since = time.Time{}
		} else if since.IsZero() && (e > events || use >= 0.9*now) {
			since = time.Now()
		}
		limit, events = now, e
	}
}

func TestAServiceThatGrowsIsRaisedBeforeItIsKilled(t *testing.T) {
	for _, rate := range []int{2, 5, 10} {
		t.Run(fmt.Sprintf("%d MiB a second", rate), func(t *testing.T) {
			r, last := newRig(t), 40+max(40, 10*rate)
			t.Parallel()
			r.start()
			lived, took := r.follow(r.eater(40, rate, last))
			t.Logf("version %d: larger limit after %v, %.0f MiB at last", r.version, took, r.limit()/mib)
			if !lived || r.limit() < float64(last)*mib {
				t.Errorf("version %d: it lived: %v, with a limit of %.0f MiB", r.version, lived, r.limit()/mib)
			}
		})
	}
}

// A leap past the limit: version 2 slows it down at the soft edge until the limit rises. Version 1 has no
// such edge: the process is killed, and the next one begins with what this one asked for.
func TestALeapIsSlowedDownOrTheNextInstanceBeginsHigher(t *testing.T) {
	r := newRig(t).start()
	kills := 0
	for range 8 {
		limit := r.limit()
		lived, took := r.follow(r.eater(160, 0, 160))
		t.Logf("version %d: lived: %v, larger limit after %v, now %.0f MiB", r.version, lived, took, r.limit()/mib)
		if lived {
			if r.version == 2 && kills > 0 {
				t.Errorf("%d were killed although the kernel has memory.high", kills)
			}
			return
		}
		kills++
		killed := time.Now()
		for end := time.Now().Add(10 * time.Second); r.limit() <= limit; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("after kill %d the limit is still %.0f MiB", kills, limit/mib)
			}
		}
		t.Logf("larger limit %v after the kill", time.Since(killed))
	}
	t.Errorf("%d were killed", kills)
}

// A group that rests near its limit meets it, or its soft edge, since files are written in it: that is seen
// without any rise of what it uses.
func TestAGroupThatMeetsItsLimitIsRaised(t *testing.T) {
	for range 4 {
		t.Run("", func(t *testing.T) {
			r := newRig(t)
			t.Parallel()
			r.meet(t)
		})
	}
}

func (r *rig) meet(t *testing.T) {
	if r.version == 2 {
		t.Skip("the guest has only files in memory: the leap shows how its soft edge is answered")
	}
	full, end := r.eater(58, 0, 58)
	defer end()
	if !<-full {
		t.Fatal("it was killed")
	}
	time.Sleep(time.Second)
	r.start()
	time.Sleep(7 * time.Second) // longer than the window of a rise
	limit, events := r.limit(), r.events()
	c := exec.Command("sh", "-c", "read go; while :; do head -c 32000000 /dev/zero >"+filepath.Join(t.TempDir(), "file")+"; done")
	in, err := c.StdinPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	defer c.Process.Kill()
	r.join(c.Process.Pid)
	in.Write([]byte("\n"))
	var since time.Time
	for end := time.Now().Add(30 * time.Second); r.limit() <= limit && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if since.IsZero() && r.events() > events {
			since = time.Now()
		}
	}
	if r.limit() <= limit {
		t.Fatalf("limit %.0f MiB, use %.0f MiB, %v events", r.limit()/mib, r.use()/mib, r.events()-events)
	}
	if since.IsZero() {
		since = time.Now() // it was raised between two looks
	}
	t.Logf("from the first event to a larger limit: %v", time.Since(since))
}

// A program holds 48 MiB and touches 24 of them again and again: the agent takes memory away by the kernel's
// memory.reclaim, and tells a need between the two. On an emulated CPU a step may have tasks wait so long that the probe ends
// with the first one: then the need is what was in use.
func TestAProbeFindsWhatAGroupTouches(t *testing.T) {
	r := newRig(t)
	if r.version == 1 {
		t.Skip("version 1 has no memory.reclaim")
	}
	for _, name := range []string{"memory.max", "memory.high"} {
		if err := os.WriteFile(filepath.Join(r.root, r.name, name), []byte("max"), 0); err != nil {
			t.Fatal(err)
		}
	}
	full, end := r.eater(48, -24, 48)
	defer end()
	if !<-full {
		t.Fatal("it was killed")
	}
	found, began := make(chan *trimtab.Sample, 1), time.Now()
	r.run(&Config{Probes: map[string]Probe{"w": {Every: time.Hour}}, Bus: finding{found: found}})
	select {
	case v := <-found:
		t.Logf("of 48 MiB 24 and the program are touched, and %.1f were found to be needed in %v, with %.1f in use", v.Value/mib, time.Since(began).Round(time.Second), r.use()/mib)
		if v.Quantity != quantity.MemoryNeeded || v.Value < 24*mib || v.Value > 60*mib {
			t.Errorf("%+v: want 24 to 60 MiB", v)
		}
	case <-time.After(6 * time.Minute):
		t.Error("nothing was found within 6 minutes")
	}
}

// finding hands on what a probe tells.
type finding struct {
	bus.Bus
	found chan<- *trimtab.Sample
}

func (f finding) Publish(_ context.Context, v trimtab.Value) error {
	f.found <- v.(*trimtab.Sample)
	return nil
}

// join puts a process into the group.
func (r *rig) join(pid int) {
	r.t.Helper()
	root := r.root
	if r.version == 1 {
		root = hostfs.Sibling(root, "memory")
	}
	if err := os.WriteFile(filepath.Join(root, r.name, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
		r.t.Fatal(err)
	}
}
