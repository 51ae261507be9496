package cgroup_test

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
)

// crowded is a host with two groups of 600 MiB each, on which 1 GiB can be used in all: their limits
// are more than it has. free is what is free of it.
type crowded struct {
	*actuator.Actuator
	t      *testing.T
	root   string
	config actuator.Config
	free   float64
	plans  uint64
}

func newCrowded(t *testing.T, free float64) *crowded {
	files := memoryFiles("a", strconv.Itoa(600*mib), 550*mib, 0)
	for name, text := range memoryFiles("b", strconv.Itoa(600*mib), 50*mib, 0) {
		files[name] = text
	}
	for _, group := range []string{"a", "b"} {
		files[group+"/memory.high"] = "max\n"
	}
	c := &crowded{t: t, root: tree(t, files), free: free}
	c.config = actuator.Config{Host: "h", Pool: "p", Dir: t.TempDir(), Reopen: reopenMemory, FreeMemory: func() (float64, float64, error) { return c.free, 1024*mib - c.free, nil }}
	for _, group := range []string{"a", "b"} {
		c.config.Targets = append(c.config.Targets, actuator.Target{KnobID: trimtab.KnobID{Workload: group, Resource: trimtab.Memory},
			Knob: openMemory(t, cgroup.Config{Root: c.root, Path: group}), Min: 16 * mib, Max: 2048 * mib, Mode: trimtab.Act})
	}
	c.open()
	return c
}

func (c *crowded) open() {
	c.t.Helper()
	a, err := actuator.Open(c.t.Context(), c.config)
	if err != nil {
		c.t.Fatal(err)
	}
	c.Actuator = a
}

// lease hands the actuator a plan without actions.
func (c *crowded) lease(actions ...trimtab.Action) *trimtab.Outcome {
	c.t.Helper()
	c.plans++
	o := c.Handle(c.t.Context(), &trimtab.Plan{Pool: "p", Epoch: 1, Sequence: c.plans, Step: 1, Last: true, Time: time.Now(), Capacity: 1, Lease: 60,
		Capacities: map[string]float64{trimtab.Memory: 1024 * mib}, Actions: actions})
	if o.Refused != "" {
		c.t.Fatal(o.Refused)
	}
	return o
}

// raise asks for a limit of workload a, in MiB.
func (c *crowded) raise(to float64) actuator.Raised {
	c.t.Helper()
	return c.Raise(c.t.Context(), []actuator.Raise{{KnobID: trimtab.KnobID{Workload: "a", Resource: trimtab.Memory}, To: to * mib, Why: "test"}})[0]
}

func (c *crowded) limit() string {
	return strings.TrimSpace(content(c.t, c.root, "a/memory.max"))
}

func TestALimitRisesBetweenPlansByWhatTheHostHasFreeWhateverTheSumOfTheLimits(t *testing.T) {
	c := newCrowded(t, 424*mib) // 600 are in use, of which a sixteenth stays free
	c.lease()
	if r := c.raise(720); r.Refused != "" || r.Found.Value != 720*mib || c.limit() != strconv.Itoa(720*mib) {
		t.Fatalf("%+v", r)
	}
	if h := c.Holding().Targets[0]; h.Now.Value != 720*mib || h.Problem != "" || h.Baseline.Value != 600*mib {
		t.Errorf("the planner hears of %+v", h)
	}
	if high := strings.TrimSpace(content(t, c.root, "a/memory.high")); high != strconv.Itoa(675*mib) {
		t.Errorf("the soft edge is %s", high)
	}
	// 424 less 37.5 less the 120 that were promised.
	if r := c.raise(2000); r.Refused != "" || r.Found.Value < 986*mib || r.Found.Value > 987*mib {
		t.Errorf("a raise is cut to what is free: %+v", r)
	}
	if r := c.raise(2000); !strings.Contains(r.Refused, "free memory") {
		t.Errorf("a promise counts as taken: %+v", r)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if high := strings.TrimSpace(content(t, c.root, "a/memory.high")); c.limit() != strconv.Itoa(618*mib+768*1024) || high != "max" {
		t.Errorf("restored to %s and %s, and 550 MiB are in use", c.limit(), high)
	}
}

func TestAPlanRaisesByWhatTheHostHasFreeToo(t *testing.T) {
	c := newCrowded(t, 424*mib)
	id := trimtab.KnobID{Pool: "p", Host: "h", Workload: "a", Resource: trimtab.Memory}
	set := func(from, to float64) trimtab.Result {
		return c.lease(trimtab.Action{KnobID: id, Expect: trimtab.Units(from * mib), Set: trimtab.Units(to * mib), Mode: trimtab.Act}).Results[0]
	}
	if r := set(600, 700); r.Status != trimtab.Written {
		t.Errorf("%+v", r)
	}
	if high := strings.TrimSpace(content(t, c.root, "a/memory.high")); high != strconv.Itoa(656*mib+256*1024) {
		t.Errorf("after the plan the soft edge is %s", high)
	}
	if r := set(700, 1100); r.Status != trimtab.Refused || !strings.Contains(r.Reason, "free memory") {
		t.Errorf("%+v", r)
	}
}

func TestNoLimitRisesBetweenPlansUnlessOneIsInForceAndTheLimitIsTrimtabs(t *testing.T) {
	c := newCrowded(t, 424*mib)
	if r := c.raise(700); r.Refused != "no plan is in force" {
		t.Errorf("%+v", r)
	}
	c.lease()
	c.free = 30 * mib
	if r := c.raise(700); !strings.Contains(r.Refused, "0 MiB of free memory") {
		t.Errorf("a full host: %+v", r)
	}
	c.free = 424 * mib
	for what, to := range map[string]float64{"lower": 500, "the same": 600} {
		if r := c.raise(to); r.Refused == "" || c.limit() != strconv.Itoa(600*mib) {
			t.Errorf("%s: %+v", what, r)
		}
	}
	if r := c.raise(700); r.Refused != "" {
		t.Fatalf("%+v", r)
	}
	setContent(t, c.root, "a/memory.max", strconv.Itoa(650*mib))
	if r := c.raise(800); !strings.Contains(r.Refused, "somebody else") {
		t.Errorf("another program set it: %+v", r)
	}
	setContent(t, c.root, "a/memory.max", "max")
	if r := c.raise(800); r.Refused == "" || c.limit() != "max" {
		t.Errorf("no limit: %+v", r)
	}
}

// The other program, as the MemoryQoS of a kubelet, may come before trimtab or after it.
func TestTheSoftEdgeOfAnotherProgramIsKeptAndSaid(t *testing.T) {
	for _, later := range []bool{false, true} {
		c := newCrowded(t, 424*mib)
		c.lease()
		if later {
			c.raise(650)
		}
		setContent(t, c.root, "a/memory.high", strconv.Itoa(580*mib)+"\n")
		if r := c.raise(700); r.Refused != "" {
			t.Fatalf("%+v", r)
		}
		if high := content(t, c.root, "a/memory.high"); high != strconv.Itoa(580*mib)+"\n" {
			t.Errorf("memory.high is %q", high)
		}
		said := false
		for _, u := range c.Holding().Unmet {
			said = said || strings.Contains(u.Why, "another program set memory.high of cgroup a to 580MiB")
		}
		if !said {
			t.Errorf("%+v", c.Holding().Unmet)
		}
	}
}

// After a kill of the actuator the journal alone takes the soft edge away.
func TestTheJournalKnowsOfTheSoftEdge(t *testing.T) {
	c := newCrowded(t, 424*mib)
	c.lease()
	if r := c.raise(700); r.Refused != "" {
		t.Fatalf("%+v", r)
	}
	undo := openMemory(t, cgroup.Config{Root: c.root, Path: "a"})
	if _, err := undo.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	k, err := cgroup.ReopenMemory(undo.Undo())
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	setContent(t, c.root, "a/memory.current", strconv.Itoa(mib))
	if err := k.Write(t.Context(), trimtab.Units(600*mib)); err != nil {
		t.Fatal(err)
	}
	if err := k.Settle(); err != nil || strings.TrimSpace(content(t, c.root, "a/memory.high")) != "max" {
		t.Errorf("%v: %s", err, content(t, c.root, "a/memory.high"))
	}
}

func TestRealMemoryHasASoftEdgeBelowItsLimit(t *testing.T) {
	root := memoryRoot(t)
	g := makeGroup(t, root)
	k := openMemory(t, cgroup.Config{Root: root, Path: g.Path()})
	edge := filepath.Join(root, g.Path(), "memory.high")
	if err := k.Write(t.Context(), trimtab.Units(256*mib)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(k.String(), "v1") {
		if k.Beside() != "" || k.Settle() != nil {
			t.Error("version 1 has none, and needs none set back")
		}
		return
	}
	if got := strings.TrimSpace(content(t, edge)); got != strconv.Itoa(240*mib) {
		t.Errorf("memory.high is %s", got)
	}
	if err := k.Write(t.Context(), trimtab.Units(64*mib)); err != nil || strings.TrimSpace(content(t, edge)) != strconv.Itoa(60*mib) {
		t.Errorf("lowered: %v, %s", err, content(t, edge))
	}
	if err := k.Settle(); err != nil || strings.TrimSpace(content(t, edge)) != "max" {
		t.Errorf("set back: %v, %s", err, content(t, edge))
	}
}
