//go:build integration

package fast

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/metric"
)

// fastRig is two real groups under one above, with a loop over them.
type fastRig struct {
	t      *testing.T
	root   string
	above  string
	groups []string
	a      *actuator.Actuator
	loop   *loop
	plan   uint64
	config actuator.Config
}

// newFastRig makes the groups; the loop ticks only in run.
func newFastRig(t *testing.T, quotas ...float64) *fastRig {
	t.Helper()
	root, err := hostfs.CPUHierarchy()
	if err == nil {
		err = cgroup.Writable(root)
	}
	if err != nil {
		t.Skipf("no writable cpu hierarchy: %v", err)
	}
	r := &fastRig{t: t, root: root, above: fmt.Sprintf("trimtab-fast-%d-%d", os.Getpid(), time.Now().UnixNano()%1e9)}
	r.group(r.above)
	r.favour(r.above)
	dir := t.TempDir()
	kind := cgroup.Kind()
	open := func(path string) actuator.Knob {
		k, err := kind.Open(actuator.Location{Root: root, Path: path}, trimtab.CPU)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	r.config = actuator.Config{Host: "h", Pool: "p", Dir: filepath.Join(dir, "journal"), LockDir: filepath.Join(dir, "locks"), Reopen: kind.Reopen, Fast: true, Parent: open(r.above)}
	for i, q := range quotas {
		path := r.above + "/g" + strconv.Itoa(i)
		r.group(path)
		k := open(path)
		if err := k.Write(t.Context(), trimtab.Units(q)); err != nil {
			t.Fatal(err)
		}
		r.groups = append(r.groups, path)
		r.config.Targets = append(r.config.Targets, actuator.Target{KnobID: trimtab.KnobID{Workload: "w" + strconv.Itoa(i), Resource: trimtab.CPU}, Knob: k, Min: 0.02, Max: 2, Mode: trimtab.Act})
	}
	a, err := actuator.Open(t.Context(), r.config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(context.Background()) })
	r.a, r.loop = a, newLoop(a, "h", metric.NewSet(), slog.New(slog.DiscardHandler))
	return r
}

func (r *fastRig) group(path string) {
	g, err := cgroup.Create(r.root, path)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := g.Remove(ctx); err != nil {
			r.t.Error(err)
		}
	})
}

// favour gives a group the greatest weight, so that it gets what its quota allows beside
// whatever else the machine does.
func (r *fastRig) favour(path string) {
	r.t.Helper()
	k, err := cgroup.OpenWeight(cgroup.Config{Root: r.root, Path: path})
	if err == nil {
		err = errors.Join(k.Write(r.t.Context(), trimtab.Units(10000)), k.Close())
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// envelopes hands the actuator a plan that lets all be moved.
func (r *fastRig) envelopes(capacity, lendable, lease float64, targets ...float64) {
	r.t.Helper()
	r.plan++
	p := &trimtab.Plan{Pool: "p", Epoch: 1, Sequence: r.plan, Step: 1, Last: true, Time: time.Now(), Capacity: capacity, Lease: trimtab.Seconds(lease), Lendable: map[string]float64{"h": lendable}}
	for i, v := range targets {
		p.Envelopes = append(p.Envelopes, trimtab.Enveloped{KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: "w" + strconv.Itoa(i), Resource: trimtab.CPU}, At: trimtab.Units(v),
			Envelope: &trimtab.Envelope{Floor: 0.3 * v, Target: v, Ceiling: 4 * v, Budget: 0.05, Late: 0.006, Lend: true, Borrow: true, Burst: v}})
	}
	if o := r.a.Handle(r.t.Context(), p); o.Refused != "" {
		r.t.Fatal(o.Refused)
	}
}

// burn keeps a CPU busy in a group until the test ends, or stop is called.
func (r *fastRig) burn(group int) (stop func()) {
	r.t.Helper()
	c := exec.Command("sh", "-c", "while :; do :; done")
	if err := c.Start(); err != nil {
		r.t.Fatal(err)
	}
	stop = func() { _ = c.Process.Kill(); _ = c.Wait() } // it only burns
	r.t.Cleanup(stop)
	r.write(r.groups[group]+"/cgroup.procs", strconv.Itoa(c.Process.Pid))
	if twin := hostfs.Accounting(r.root); twin != "" {
		if err := os.WriteFile(filepath.Join(twin, r.groups[group], "cgroup.procs"), []byte(strconv.Itoa(c.Process.Pid)), 0); err != nil {
			r.t.Fatal(err)
		}
	}
	return stop
}

func (r *fastRig) write(name, value string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.root, name), []byte(value), 0); err != nil {
		r.t.Fatal(err)
	}
}

// set reads the quota of a group, in cores.
func (r *fastRig) set(path string) float64 {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.root, path, "cpu.max"))
	if err == nil {
		q, err := hostfs.ParseCPUMax(string(b))
		if err != nil {
			r.t.Fatal(err)
		}
		return q.Amount().Value
	}
	b, err = os.ReadFile(filepath.Join(r.root, path, "cpu.cfs_quota_us"))
	if err != nil {
		r.t.Fatal(err)
	}
	v, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		r.t.Fatal(err)
	}
	if v < 0 {
		return math.Inf(1)
	}
	return float64(v) / 1e5
}

// run ticks for a while, and checks at every tick that nobody is below its floor and that
// the sum is within the capacity.
func (r *fastRig) run(d time.Duration, capacity float64, until func() bool) bool {
	r.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		r.loop.frame.Round(context.Background(), time.Time{})
		sum := 0.0
		for i := range r.loop.look.Groups {
			g := &r.loop.look.Groups[i]
			v := r.set(r.groups[int(g.Workload[1]-'0')])
			if sum += v; v < g.Envelope.Floor-2e-3 {
				r.t.Errorf("%s has %v, its floor is %v", g.Workload, v, g.Envelope.Floor)
			}
		}
		if sum > capacity+4e-3 {
			r.t.Errorf("the sum is %v, over %v", sum, capacity)
		}
		if until != nil && until() {
			return true
		}
	}
	return false
}

func TestABurstInARealGroupIsHeldWithinASecondAndTheLoanEndsWithIt(t *testing.T) {
	r := newFastRig(t, 0.2, 0.4)
	r.envelopes(0.7, 0.1, 30, 0.2, 0.4)
	if v := r.set(r.above); v != 0.7 {
		t.Fatalf("the group above has %v", v)
	}
	r.run(500*time.Millisecond, 0.7, nil)
	stop := r.burn(0)
	if !r.run(2*time.Second, 0.7, func() bool { return r.set(r.groups[0]) > 0.4 }) {
		t.Errorf("after 2 s of more work than its quota it has %v of a target of 0.2, the other %v", r.set(r.groups[0]), r.set(r.groups[1]))
	}
	h := r.a.Holding()
	if k := h.Targets[0]; k.Now.Value != 0.2 || k.Fast == nil || k.Fast.Set <= 0.4 {
		t.Errorf("%+v %+v", k, k.Fast)
	}
	stop()
	if !r.run(6*time.Second, 0.7, func() bool { return r.set(r.groups[0]) <= 0.2 }) {
		t.Errorf("the loan does not end: %v", r.set(r.groups[0]))
	}
}

func TestWhatIsUsedOfARealParentStaysWithinTheCapacity(t *testing.T) {
	r := newFastRig(t, 0.2, 0.2)
	r.envelopes(0.5, 0.1, 30, 0.2, 0.2)
	defer r.burn(0)()
	defer r.burn(1)()
	q := r.config.Parent.Traits().Quick
	if q == nil {
		t.Fatal("no quick knob")
	}
	r.run(time.Second, 0.5, nil)
	was, began := usedOf(t, q), time.Now()
	r.run(2*time.Second, 0.5, nil)
	used, most := usedOf(t, q)-was, 0.5*(time.Since(began)+hostfs.DefaultPeriod*time.Microsecond).Seconds()
	if used > most*1.02 { // the time begins and ends within a period of the quota
		t.Errorf("%v core-seconds were used of %v", used, most)
	}
}

func usedOf(t *testing.T, q actuator.Quick) float64 {
	t.Helper()
	c, err := q.Look()
	if err != nil {
		t.Fatal(err)
	}
	return c.Used
}

func TestAForeignWriteDuringALoanIsLeftAloneAndNobodyPaysForItWithItsOwn(t *testing.T) {
	r := newFastRig(t, 0.2, 0.4)
	r.envelopes(1.5, 0.9, 30, 0.2, 0.4)
	defer r.burn(0)()
	r.run(2*time.Second, 1.5, func() bool { return r.set(r.groups[0]) > 0.4 })
	quota, text := "/cpu.cfs_quota_us", "90000"
	if _, err := os.Stat(filepath.Join(r.root, r.groups[0], "cpu.max")); err == nil {
		quota, text = "/cpu.max", "90000 100000"
	}
	r.write(r.groups[0]+quota, text) // over the ceiling of 0.8
	r.run(time.Second, 1.5, nil)
	if v := r.set(r.groups[0]); v != 0.9 {
		t.Errorf("what somebody else set is %v now", v)
	}
	r.a.Tick(t.Context())
	if p := r.a.Holding().Targets[0].Problem; !strings.Contains(p, "somebody else") {
		t.Errorf("the holding says %q", p)
	}
}

func TestALoopThatWasStoppedReturnsAllToTheirTargetsAtOnce(t *testing.T) {
	r := newFastRig(t, 0.2, 0.4)
	r.envelopes(0.7, 0.1, 30, 0.2, 0.4)
	defer r.burn(0)()
	r.run(2*time.Second, 0.7, func() bool { return r.set(r.groups[0]) > 0.4 })
	time.Sleep(time.Second) // as SIGSTOP does
	r.loop.frame.Round(context.Background(), time.Time{})
	if a, b := r.set(r.groups[0]), r.set(r.groups[1]); a != 0.2 || b != 0.4 {
		t.Errorf("after a gap of a second %v and %v are set", a, b)
	}
}

func TestAGroupThatVanishesWhileItHasBorrowedFreesWhatItHad(t *testing.T) {
	r := newFastRig(t, 0.2, 0.2)
	r.envelopes(0.4, 0, 30, 0.2, 0.2)
	stop := r.burn(0)
	r.run(2*time.Second, 0.4, func() bool { return r.set(r.groups[0]) > 0.3 })
	stop()
	for _, dir := range []string{r.root, hostfs.Accounting(r.root)} {
		if dir == "" {
			continue
		}
		for range 50 {
			if err := os.Remove(filepath.Join(dir, r.groups[0])); err == nil || os.IsNotExist(err) {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	defer r.burn(1)()
	if !r.runOther(3*time.Second, func() bool { return r.set(r.groups[1]) > 0.3 }) {
		t.Errorf("the other has %v", r.set(r.groups[1]))
	}
}

// runOther is run without the checks, for groups of which one is gone.
func (r *fastRig) runOther(d time.Duration, until func() bool) bool {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if r.loop.frame.Round(context.Background(), time.Time{}); until() {
			return true
		}
	}
	return false
}

func TestAFullHostAsksForARoundAndRaisesNobody(t *testing.T) {
	r := newFastRig(t, 0.2, 0.2)
	r.envelopes(0.4, 0, 60, 0.2, 0.2)
	defer r.burn(0)()
	defer r.burn(1)()
	asked := func() bool {
		for _, k := range r.a.Holding().Targets {
			if k.Fast != nil && k.Fast.Ask != nil {
				return true
			}
		}
		return false
	}
	if !r.run(9*time.Second, 0.4, asked) {
		t.Error("no round is asked for")
	}
}

func TestWhenTheLeaseEndsRealGroupsHaveTheirBaselines(t *testing.T) {
	r := newFastRig(t, 0.2, 0.4)
	r.envelopes(0.7, 0.1, 2, 0.2, 0.4)
	defer r.burn(0)()
	r.run(2500*time.Millisecond, 0.7, nil)
	r.a.Tick(t.Context())
	if a, b, c := r.set(r.groups[0]), r.set(r.groups[1]), r.set(r.above); a != 0.2 || b != 0.4 || !math.IsInf(c, 1) {
		t.Errorf("%v, %v under %v", a, b, c)
	}
}

// number reads a file of a group with one number; -1: there is none.
func (r *fastRig) number(name string) int {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.root, name))
	if errors.Is(err, os.ErrNotExist) {
		return -1
	}
	v, bad := strconv.Atoi(strings.TrimSpace(string(b)))
	if err = errors.Join(err, bad); err != nil {
		r.t.Fatal(err)
	}
	return v
}

func TestWeightsFollowTargetsInAPoolOfWholeCPUsAndGoBackWithTheBurst(t *testing.T) {
	r := newFastRig(t, 0.25, 0.5)
	weight, burst, usual := "/cpu.shares", "/cpu.cfs_burst_us", 1024
	if r.number(r.groups[0]+weight) < 0 {
		weight, burst, usual = "/cpu.weight", "/cpu.max.burst", 100
	}
	r.write(r.groups[1]+weight, strconv.Itoa(2*usual)) // an operator's stays
	r.envelopes(1, 0.2, 2, 0.25, 0.5)
	if a, b := r.number(r.groups[0]+weight), r.number(r.groups[1]+weight); a != usual/4 || b != 2*usual {
		t.Errorf("weights %d and %d of usually %d", a, b, usual)
	}
	r.run(time.Second, 1, nil) // lends, so that a burst is set
	if v := r.number(r.groups[0] + burst); v == 0 {
		t.Error("no burst is set")
	}
	time.Sleep(1200 * time.Millisecond) // the lease ends
	r.loop.frame.Round(context.Background(), time.Time{})
	r.a.Tick(t.Context())
	for i, want := range []float64{0.25, 0.5} {
		if v, b := r.set(r.groups[i]), r.number(r.groups[i]+burst); v != want || b > 0 {
			t.Errorf("group %d has %v and a burst of %d µs after the lease", i, v, b)
		}
	}
	if a, b := r.number(r.groups[0]+weight), r.number(r.groups[1]+weight); a != usual || b != 2*usual {
		t.Errorf("weights %d and %d after the lease, of usually %d", a, b, usual)
	}
}

func TestBurstGoesBackWhereTheQuotaIsWhatItWas(t *testing.T) {
	r := newFastRig(t, 0.25, 0.5)
	r.envelopes(0.9, 0, 30, 0.25, 0.5)
	r.run(time.Second, 0.9, nil)
	time.Sleep(500 * time.Millisecond)
	r.loop.frame.Round(context.Background(), time.Time{}) // late: all return to their targets, which are the baselines
	if r.set(r.groups[0]) != 0.25 || r.number(r.groups[0]+"/cpu.cfs_burst_us") == 0 {
		t.Skipf("quota %v, burst %d: nothing to take back", r.set(r.groups[0]), r.number(r.groups[0]+"/cpu.cfs_burst_us"))
	}
	if err := r.a.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if v := r.number(r.groups[0] + "/cpu.cfs_burst_us"); v > 0 {
		t.Errorf("the burst is %d µs after the end", v)
	}
}

// ahead is a fastActuator whose time goes on by a period at each look, and whose groups use more
// and less, so that about two of ten looks move one.
type ahead struct {
	*actuator.Actuator
	ticks int
	used  []float64
}

func (m *ahead) FastLook(look *actuator.FastLook) {
	m.Actuator.FastLook(look)
	m.ticks++
	look.At += time.Duration(m.ticks) * 100 * time.Millisecond
	look.Until = math.MaxInt64
	if m.used == nil {
		m.used = make([]float64, len(look.Counters))
	}
	for i := range look.Counters {
		m.used[i] += 0.001 * float64(1+((m.ticks/10+i)%3))
		look.Counters[i].Used = m.used[i]
	}
}

// BenchmarkTickOf100RealGroups is what a tick costs with all reads and writes; ten of them
// are a second: ns/op over 1e8 is the share of a core.
func BenchmarkTickOf100RealGroups(b *testing.B) {
	root, err := hostfs.CPUHierarchy()
	if err == nil {
		err = cgroup.Writable(root)
	}
	if err != nil {
		b.Skipf("no writable cpu hierarchy: %v", err)
	}
	dir, kind, prefix := b.TempDir(), cgroup.Kind(), fmt.Sprintf("trimtab-fast-bench-%d-", os.Getpid())
	c := actuator.Config{Host: "h", Pool: "p", Dir: filepath.Join(dir, "journal"), Reopen: kind.Reopen, Fast: true, JournalSize: 1 << 20}
	p := &trimtab.Plan{Pool: "p", Epoch: 1, Sequence: 1, Step: 1, Last: true, Time: time.Now(), Capacity: 10, Lease: 3600, Lendable: map[string]float64{"h": 5}}
	for i := range 100 {
		path := prefix + strconv.Itoa(i)
		g, err := cgroup.Create(root, path)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = g.Remove(context.Background()) })
		k, err := kind.Open(actuator.Location{Root: root, Path: path}, trimtab.CPU)
		if err == nil {
			err = k.Write(b.Context(), trimtab.Units(0.05))
		}
		if err != nil {
			b.Fatal(err)
		}
		id := trimtab.KnobID{Workload: "w" + strconv.Itoa(i), Resource: trimtab.CPU}
		c.Targets = append(c.Targets, actuator.Target{KnobID: id, Knob: k, Min: 0.01, Max: 2, Mode: trimtab.Act})
		id.Pool, id.Host = "p", "h"
		p.Envelopes = append(p.Envelopes, trimtab.Enveloped{KnobID: id, At: trimtab.Units(0.05), Envelope: &trimtab.Envelope{Floor: 0.015, Target: 0.05, Ceiling: 0.2, Budget: 0.05, Late: 0.006, Lend: true, Borrow: true}})
	}
	a, err := actuator.Open(b.Context(), c)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { a.Close(context.Background()) })
	if o := a.Handle(b.Context(), p); o.Refused != "" {
		b.Fatal(o.Refused)
	}
	set := metric.NewSet()
	l := newLoop(&ahead{Actuator: a}, "h", set, slog.New(slog.DiscardHandler))
	l.frame.Round(context.Background(), time.Time{})
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		l.frame.Round(context.Background(), time.Time{})
	}
	writes := 0
	for _, s := range l.status {
		writes += s.Writes
	}
	b.ReportMetric(float64(writes)/float64(b.N)/100*10, "writes/s/group")
}
