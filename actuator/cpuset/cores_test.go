package cpuset

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/actuator/knobtest"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// write makes or replaces files.
func write(t *testing.T, root string, files map[string]string) string {
	t.Helper()
	for name, content := range files {
		file := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func content(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// fourCores is a machine with two threads a core: 0 and 4, 1 and 5, 2 and 6, 3 and 7.
func fourCores(t *testing.T) *Machine {
	files := map[string]string{"online": "0-7\n"}
	for n := range 8 {
		files[fmt.Sprintf("cpu%d/topology/core_cpus_list", n)] = fmt.Sprintf("%d,%d\n", n%4, n%4+4)
	}
	return &Machine{dir: write(t, t.TempDir(), files)}
}

func open(t *testing.T, c Config) *Cores {
	t.Helper()
	k, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	return k
}

func at(root, path string) Config { return Config{Config: cgroup.Config{Root: root, Path: path}} }

func reopening(m *Machine) func(undo []byte) (actuator.Knob, error) {
	return func(undo []byte) (actuator.Knob, error) { return actuator.OrNil(reopen(undo, m)) }
}

// version2 is a tree of plain files with groups, each with its cpuset.cpus.
func version2(t *testing.T, groups map[string]string) string {
	files := map[string]string{"cpuset.cpus.effective": "0-7\n"}
	for group, cpus := range groups {
		files[group+"/cpuset.cpus"], files[group+"/cpuset.cpus.effective"] = cpus+"\n", "0-7\n"
	}
	return write(t, t.TempDir(), files)
}

// version1 is the same of version 1.
func version1(t *testing.T, groups map[string]string) string {
	files := map[string]string{"cpuset.cpus": "0-7\n", "cpuset.effective_cpus": "0-7\n"}
	for group, cpus := range groups {
		files[group+"/cpuset.cpus"], files[group+"/cpuset.effective_cpus"] = cpus+"\n", cpus+"\n"
	}
	return write(t, t.TempDir(), files)
}

func TestVersion2CoresMeetTheContractOfKnobs(t *testing.T) {
	four := trimtab.Units(4)
	knobtest.Run(t, func(t *testing.T) knobtest.Fixture {
		root, m := version2(t, map[string]string{"shop": "", "shop/web": "", "idle": ""}), fourCores(t)
		c := at(root, "shop/web")
		c.Machine = m
		return knobtest.Fixture{
			Knob: open(t, c), Reopen: reopening(m), Least: 1, Most: 4, Unlimited: &four,
			Vanish: func() { os.RemoveAll(filepath.Join(root, "shop/web")) },
			TakeEffect: func() {
				set := content(t, root, "shop/web/cpuset.cpus")
				if set == "" {
					set = "0-7"
				}
				write(t, root, map[string]string{"shop/web/cpuset.cpus.effective": set})
			},
		}
	})
}

func TestVersion1CoresMeetTheContractOfKnobs(t *testing.T) {
	four := trimtab.Units(4)
	knobtest.Run(t, func(t *testing.T) knobtest.Fixture {
		root, m := version1(t, map[string]string{"web": "0-7"}), fourCores(t)
		c := at(root, "web")
		c.Machine = m
		return knobtest.Fixture{
			Knob: open(t, c), Reopen: reopening(m), Least: 1, Most: 4, Unlimited: &four,
			Vanish: func() { os.RemoveAll(filepath.Join(root, "web")) },
			TakeEffect: func() {
				write(t, root, map[string]string{"web/cpuset.effective_cpus": content(t, root, "web/cpuset.cpus")})
			},
		}
	})
}

// realRoot returns the hierarchy with cpusets of this host, with a group of its own
// in it for the test, which may make groups there; else it skips, with the proof.
func realRoot(t *testing.T) (root, group string) {
	t.Helper()
	root, err := hostfs.CPUHierarchy()
	name := fmt.Sprintf("trimtab-test-%d-%d", os.Getpid(), time.Now().UnixNano()%1e9)
	var g *cgroup.Group
	if err == nil {
		g, err = cgroup.Create(root, name, "cpuset")
	}
	if err == nil {
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			if err := g.Remove(ctx); err != nil {
				t.Error(err)
			}
		})
		err = open(t, at(rootOf(root), name)).MayWrite(t.Context())
	}
	if err == nil && len(mustCores(t, rootOf(root))) < 2 {
		err = errors.New("there is one core only")
	}
	if err == nil {
		return rootOf(root), name
	}
	if os.Getenv("TRIMTAB_GUEST") != "" {
		t.Fatalf("no writable cpusets: %v", err)
	}
	t.Skipf("no writable cpusets: %v", err)
	return "", ""
}

// mustCores lists the cores that a root has.
func mustCores(t *testing.T, root string) []Set {
	t.Helper()
	k := open(t, at(root, "x"))
	whole, err := k.wholeOf(versionOf(root), ".")
	if err != nil {
		t.Fatal(err)
	}
	topology, err := new(Machine).Topology()
	if err != nil {
		t.Fatal(err)
	}
	return topology.Cores(whole)
}

func versionOf(root string) int {
	if _, err := os.Stat(filepath.Join(root, effective1)); err == nil {
		return 1
	}
	return 2
}

// child makes a group in another; of version 1 it has what its parent has.
func child(t *testing.T, root, group, name string) string {
	t.Helper()
	name = filepath.Join(group, name)
	dir := filepath.Join(root, name)
	if versionOf(root) == 2 {
		if err := os.WriteFile(filepath.Join(root, group, "cgroup.subtree_control"), []byte("+cpuset"), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(dir) })
	if versionOf(root) == 1 {
		set(t, dir, "cpuset.mems", content(t, root, group, "cpuset.mems"))
		set(t, dir, "cpuset.cpus", content(t, root, group, "cpuset.cpus"))
	}
	return name
}

func set(t *testing.T, dir, file, value string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, file), []byte(value+"\n"), 0); err != nil {
		t.Fatal(err)
	}
}

func TestRealCoresMeetTheContractOfKnobs(t *testing.T) {
	root, group := realRoot(t)
	all := trimtab.Units(float64(len(mustCores(t, root))))
	n := 0
	knobtest.Run(t, func(t *testing.T) knobtest.Fixture {
		n++
		name := child(t, root, group, fmt.Sprint(n))
		return knobtest.Fixture{Knob: open(t, at(root, name)), Reopen: reopening(nil), Least: 1, Most: all.Value, Unlimited: &all,
			Vanish: func() { os.Remove(filepath.Join(root, name)) }, TakeEffect: func() {}}
	})
}

func TestCoresToWhichSpeculativeTasksAreBoundAreFree(t *testing.T) {
	root, group := realRoot(t)
	cores := mustCores(t, root)
	low := at(root, child(t, root, group, "latency-critical"))
	guests := child(t, root, group, Guests)
	task := child(t, root, guests, "job@task@1")
	for _, core := range cores { // wherever the knob looks first
		set(t, filepath.Join(root, task), cpusFile, core.String())
		k := open(t, low)
		if err := k.Write(t.Context(), trimtab.Units(float64(len(cores)))); err != nil {
			t.Errorf("beside a task on %v: %v", core, err)
		}
		if err := k.Write(t.Context(), trimtab.Units(1)); err != nil {
			t.Error(err)
		}
	}
}

func TestRealGroupsGetDifferentCoresAndTheirExactMasksBack(t *testing.T) {
	root, group := realRoot(t)
	cores := mustCores(t, root)
	low, high := at(root, child(t, root, group, "latency-critical")), at(root, child(t, root, group, "best-effort"))
	high.High = true
	had := content(t, root, low.Path, cpusFile)
	last := cores[len(cores)-1].String()
	set(t, filepath.Join(root, high.Path), cpusFile, last)
	h := newHost(t, open(t, low), open(t, high))
	h.plan(t, trimtab.Written, 0, 1)
	if got := content(t, root, low.Path, cpusFile); got != cores[0].String() {
		t.Errorf("the latency-critical group has %q, want %v", got, cores[0])
	}
	if len(cores) == 2 {
		h.plan(t, trimtab.Failed, 1, 2) // the kernel would let it
		if why := h.reason; !strings.Contains(why, "1 are free") || !strings.Contains(why, low.Path) {
			t.Errorf("refused: %s", why)
		}
	}
	set(t, filepath.Join(root, low.Path), cpusFile, cores[0].String())
	if err := h.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a, b := content(t, root, low.Path, cpusFile), content(t, root, high.Path, cpusFile); a != had || b != last {
		t.Errorf("after the stop %q and %q, want %q and %q", a, b, had, last)
	}
}

// The kernel lets nobody empty the set of a group in which a process lives: it gets
// what its parent has in the only other way that there is.
func TestAProcessMayRunWhereItMightBeforeWhenCoresAreRestored(t *testing.T) {
	root, group := realRoot(t)
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	name := child(t, root, group, "populated")
	set(t, filepath.Join(root, name), "cgroup.procs", fmt.Sprint(cmd.Process.Pid))
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }) // before the group goes
	allowed := func() string {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(b), "Cpus_allowed_list:")
		line, _, _ := strings.Cut(rest, "\n")
		return strings.TrimSpace(line)
	}
	before := allowed()
	k := open(t, at(root, name))
	was, err := k.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	undo, cores := k.Undo(), mustCores(t, root)
	if err := k.Write(t.Context(), trimtab.Units(1)); err != nil || allowed() != cores[0].String() {
		t.Errorf("it may run on %s, want %v; %v", allowed(), cores[0], err)
	}
	other, err := reopen(undo, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	if err := other.Restore(t.Context(), undo); err != nil || allowed() != before {
		t.Errorf("it may run on %s, and might on %s; %v", allowed(), before, err)
	}
	if now, err := k.Read(t.Context()); err != nil || now != was && now != trimtab.Units(float64(len(cores))) {
		t.Errorf("it reads %v, %v, and read %v", now, err, was)
	}
}

func TestHardwareThreadsOfARealCoreStayTogether(t *testing.T) {
	root, group := realRoot(t)
	cores := mustCores(t, root)
	if len(union(cores)) == len(cores) {
		if os.Getenv("TRIMTAB_GUEST") == "hardware threads" {
			t.Fatalf("cores %v have one thread each", cores)
		}
		t.Skip("each core has one thread: run make guest-short")
	}
	k := open(t, at(root, child(t, root, group, "threads")))
	for n := range cores {
		if err := k.Write(t.Context(), trimtab.Units(float64(n+1))); err != nil {
			t.Fatal(err)
		}
		if got, want := content(t, root, k.Group(), cpusFile), union(cores[:n+1]).String(); got != want {
			t.Errorf("%d cores are CPUs %q, want %q of %v", n+1, got, want, cores)
		}
		now, err := k.Effective(t.Context())
		if err != nil || now != trimtab.Units(float64(n+1)) {
			t.Errorf("%v in force, %v", now, err)
		}
	}
}

// host is an actuator with knobs of cores.
type host struct {
	*actuator.Actuator
	config actuator.Config
	n      uint64
	reason string
}

func newHost(t *testing.T, knobs ...*Cores) *host {
	t.Helper()
	h := &host{config: actuator.Config{Host: "h", Pool: "p", Dir: t.TempDir(), Reopen: reopening(knobs[0].config.Machine)}}
	for i, k := range knobs {
		h.config.Targets = append(h.config.Targets, actuator.Target{
			KnobID: trimtab.KnobID{Workload: fmt.Sprint("w", i), Resource: "cores"}, Knob: k, Min: 1, Max: 4, Mode: trimtab.Act,
		})
	}
	var err error
	if h.Actuator, err = actuator.Open(t.Context(), h.config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Actuator.Close(context.Background()) })
	return h
}

// plan gives one workload so many cores.
func (h *host) plan(t *testing.T, want trimtab.Status, workload int, cores float64) {
	t.Helper()
	h.n++
	id := trimtab.KnobID{Pool: "p", Host: "h", Workload: fmt.Sprint("w", workload), Resource: "cores"}
	var now trimtab.Amount
	for _, k := range h.Holding().Targets {
		if k.KnobID == id {
			now = k.Now
		}
	}
	o := h.Handle(t.Context(), &trimtab.Plan{
		Pool: "p", Epoch: 1, Sequence: h.n, Step: 1, Last: true, Time: time.Now(), Capacity: 100, Lease: 30, Capacities: map[string]float64{"cores": 100},
		Actions: []trimtab.Action{{KnobID: id, Expect: now, Set: trimtab.Units(cores), Mode: trimtab.Act}},
	})
	if o.Refused == "" && len(o.Results) == 1 && o.Results[0].Status == trimtab.Pending {
		o.Results[0].Status = trimtab.Written // plain files put nothing in force
	}
	if o.Refused != "" || len(o.Results) != 1 || o.Results[0].Status != want {
		t.Fatalf("outcome %+v, want %s", o, want)
	}
	h.reason = o.Results[0].Reason
}

// crashAndRestore restores from the journal alone, as another process does when this
// one was killed.
func (h *host) crashAndRestore(t *testing.T) actuator.Report {
	t.Helper()
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(h.config.Dir)); err != nil {
		t.Fatal(err)
	}
	r, err := actuator.Restore(t.Context(), copied, h.config.Reopen)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAnotherProcessRestoresTheExactMask(t *testing.T) {
	for name, tree := range map[string]func(*testing.T, map[string]string) string{"version 1": version1, "version 2": version2} {
		root := tree(t, map[string]string{"a": "2-3,6-7", "b": "0,4"})
		c := at(root, "a")
		c.Machine = fourCores(t)
		h := newHost(t, open(t, c))
		for _, n := range []float64{1, 3, 2} {
			h.plan(t, trimtab.Written, 0, n)
		}
		if got := content(t, root, "a/cpuset.cpus"); got != "1-2,5-6" {
			t.Errorf("%s: it has %q", name, got)
		}
		h.crashAndRestore(t)
		if got := content(t, root, "a/cpuset.cpus"); got != "2-3,6-7" {
			t.Errorf("%s: restored to %q", name, got)
		}
	}
}
