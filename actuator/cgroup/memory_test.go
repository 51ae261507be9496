package cgroup_test

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/trimtab/trimtab/actuator/knobtest"
	"github.com/trimtab/trimtab/internal/hostfs"
)

const mib = 1 << 20

func reopenMemory(undo []byte) (actuator.Knob, error) { return cgroup.ReopenMemory(undo) }

func openMemory(t *testing.T, c cgroup.Config) *cgroup.Memory {
	t.Helper()
	k, err := cgroup.OpenMemory(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	return k
}

// memoryRoot returns the hierarchy with the memory controller, of this host's
// version, in which this process may make groups; else it skips, with the proof.
func memoryRoot(t *testing.T) string {
	t.Helper()
	root := cpuRoot(t)
	if twin := hostfs.Sibling(root, "memory"); twin != "" {
		root = twin
	}
	if err := openMemory(t, cgroup.Config{Root: root, Path: makeGroup(t, root).Path()}).Probe(t.Context()); err != nil {
		skip(t, "no writable memory hierarchy: %v", err)
	}
	return root
}

// kernelMemory returns the file of a real group by its name in version 1 or 2.
func kernelMemory(t *testing.T, root, group, v1, v2 string) string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(root, group, v2)); err == nil {
		v1 = v2
	}
	return strings.TrimSpace(content(t, root, group, v1))
}

func TestRealMemoryMeetsTheContractOfKnobs(t *testing.T) {
	root := memoryRoot(t)
	knobtest.Run(t, func(t *testing.T) knobtest.Fixture {
		g := makeGroup(t, root)
		return knobtest.Fixture{
			Knob: openMemory(t, cgroup.Config{Root: root, Path: g.Path()}), Reopen: reopenMemory, Least: 8 * mib, Most: 1024 * mib,
			Vanish: func() { os.Remove(filepath.Join(root, g.Path())) },
		}
	})
}

// setContent plays the kernel.
func setContent(t *testing.T, root, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// memoryFiles are those of a group in the form of version 2.
func memoryFiles(group, limit string, current, inactive int) map[string]string {
	return map[string]string{
		group + "/memory.max": limit + "\n", group + "/memory.current": strconv.Itoa(current) + "\n",
		group + "/memory.stat": fmt.Sprintf("anon 1\nfile 2\ninactive_anon 3\ninactive_file %d\n", inactive),
	}
}

func TestVersion2MemoryFilesMeetTheContractOfKnobs(t *testing.T) {
	knobtest.Run(t, func(t *testing.T) knobtest.Fixture {
		root := tree(t, memoryFiles("shop/checkout", "max", 5*mib, mib))
		return knobtest.Fixture{
			Knob: openMemory(t, cgroup.Config{Root: root, Path: "shop/checkout"}), Reopen: reopenMemory, Least: 16 * mib, Most: 65536 * mib,
			Vanish: func() { os.RemoveAll(filepath.Join(root, "shop/checkout")) },
			Use:    func(v float64) { setContent(t, root, "shop/checkout/memory.current", strconv.Itoa(int(v)+mib)+"\n") },
		}
	})
}

func TestVersion1MemoryFilesMeetTheContractOfKnobs(t *testing.T) {
	knobtest.Run(t, func(t *testing.T) knobtest.Fixture {
		root := tree(t, map[string]string{"a/memory.limit_in_bytes": "9223372036854771712\n", "a/memory.usage_in_bytes": "0\n", "a/memory.stat": "cache 0\ntotal_inactive_file 0\n"})
		return knobtest.Fixture{
			Knob: openMemory(t, cgroup.Config{Root: root, Path: "a"}), Reopen: reopenMemory, Least: 8 * mib, Most: 1024 * mib,
			Vanish: func() { os.RemoveAll(filepath.Join(root, "a")) },
			Use:    func(v float64) { setContent(t, root, "a/memory.usage_in_bytes", strconv.Itoa(int(v))+"\n") },
		}
	})
}

// The floor of the package comment: 9/8 of (usage − inactive cache).
func TestMemoryIsNeverLoweredBelowWhatIsInUse(t *testing.T) {
	root := tree(t, memoryFiles("a", strconv.Itoa(1024*mib), 500*mib, 100*mib))
	k := openMemory(t, cgroup.Config{Root: root, Path: "a"})
	floor, err := k.Floor(t.Context())
	if err != nil || floor.Value != 450*mib {
		t.Fatalf("floor %v, %v, want 450 MiB", floor, err)
	}
	if err := k.Write(t.Context(), trimtab.Units(449*mib)); !errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), "450MiB are in use") {
		t.Errorf("449 MiB: %v", err)
	}
	if got := content(t, root, "a/memory.max"); got != "1073741824\n" {
		t.Errorf("it wrote %q", got)
	}
	if err := k.Write(t.Context(), trimtab.Units(450*mib)); err != nil {
		t.Errorf("450 MiB: %v", err)
	}
	// A raise is free, though the floor has come to lie above it.
	if err := os.WriteFile(filepath.Join(root, "a/memory.current"), []byte(strconv.Itoa(560*mib)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := k.Write(t.Context(), trimtab.Units(460*mib)); err != nil {
		t.Errorf("raise to 460 MiB: %v", err)
	}
	for _, stat := range []string{"anon 1\n", "inactive_file many\n", "inactive_file\n", ""} {
		if err := os.WriteFile(filepath.Join(root, "a/memory.stat"), []byte(stat), 0o644); err != nil {
			t.Fatal(err)
		}
		if floor, err := k.Floor(t.Context()); err != nil || floor.Value != 630*mib {
			t.Errorf("%q: floor %v, %v: what cannot be read is in use", stat, floor, err)
		}
	}
}

func TestMemoryOverThatOfAGroupAboveIsNotInForce(t *testing.T) {
	files := memoryFiles("a/b", strconv.Itoa(64*mib), mib, 0)
	files["a/memory.max"] = strconv.Itoa(128 * mib)
	k := openMemory(t, cgroup.Config{Root: tree(t, files), Path: "a/b"})
	if s := k.Status(t.Context()); s == nil || s.Most != 128*mib || !s.Caps || !strings.Contains(s.By, "above, a") {
		t.Errorf("%+v, want the 128 MiB of a", s)
	}
	// The kernel takes it, as it takes a baseline that was found so.
	if err := errors.Join(k.Write(t.Context(), trimtab.Units(129*mib)), k.Write(t.Context(), trimtab.Unlimited())); err != nil {
		t.Error(err)
	}
}

func TestMemoryOfAForeignUnitOrWithoutControllerIsRefused(t *testing.T) {
	files := memoryFiles("x.service", "max", 0, 0)
	files[systemdsOwn] = ""
	root := tree(t, files)
	k := openMemory(t, cgroup.Config{Root: root, Path: "x.service"})
	for _, err := range []error{k.MayWrite(t.Context()), k.Write(t.Context(), trimtab.Units(64*mib))} {
		if !errors.Is(err, trimtab.ErrRefused) {
			t.Errorf("%v, want refused", err)
		}
	}
	if err := openMemory(t, cgroup.Config{Root: tree(t, map[string]string{"a/cpu.max": unlimited}), Path: "a"}).Probe(t.Context()); !errors.Is(err, trimtab.ErrUnsupported) {
		t.Errorf("%v, want unsupported", err)
	}
	for _, path := range []string{"", "..", "/a", "../x"} {
		if _, err := cgroup.OpenMemory(cgroup.Config{Root: root, Path: path}); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func memoryPlan(sequence uint64, actions ...trimtab.Action) *trimtab.Plan {
	return &trimtab.Plan{Pool: "p", Epoch: 1, Sequence: sequence, Step: 1, Last: true, Time: time.Now(), Capacity: 4, Lease: 30,
		Capacities: map[string]float64{"cpu": 4, "memory": 1024 * mib}, Actions: actions}
}

func memoryAction(expect trimtab.Amount, set float64) trimtab.Action {
	return trimtab.Action{KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: "w", Resource: "memory"}, Expect: expect, Set: trimtab.Units(set), Mode: trimtab.Act}
}

// The knob with its actuator: clamped to what is in use, which the holding
// tells; never over the memory of the pool; as near to the baseline in the end
// as what is in use then allows.
func TestAnActuatorKeepsWhatIsInUseFromPlansAndRestores(t *testing.T) {
	root := tree(t, memoryFiles("a", strconv.Itoa(256*mib), 100*mib, 20*mib))
	use := func(current int) {
		if err := os.WriteFile(filepath.Join(root, "a/memory.current"), []byte(strconv.Itoa(current)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	a, err := actuator.Open(t.Context(), actuator.Config{Host: "h", Pool: "p", Dir: t.TempDir(), Reopen: reopenMemory,
		Targets: []actuator.Target{{KnobID: trimtab.KnobID{Workload: "w", Resource: "memory"}, Knob: openMemory(t, cgroup.Config{Root: root, Path: "a"}), Min: 16 * mib, Max: 2048 * mib, Mode: trimtab.Act}}})
	if err != nil {
		t.Fatal(err)
	}
	if h := a.Holding().Targets[0]; h.Min != 90*mib || h.Max != 2048*mib {
		t.Errorf("holding %+v, want that it says what is in use", h)
	}
	o := a.Handle(t.Context(), memoryPlan(1, memoryAction(trimtab.Units(256*mib), 32*mib)))
	if r := o.Results[0]; r.Status != trimtab.Written || r.Found.Value != 90*mib || !strings.Contains(r.Reason, "in use") {
		t.Errorf("lowered below what is in use: %+v", r)
	}
	o = a.Handle(t.Context(), memoryPlan(2, memoryAction(trimtab.Units(90*mib), 1025*mib)))
	if r := o.Results[0]; r.Status != trimtab.Refused || !strings.Contains(r.Reason, "of memory") {
		t.Errorf("over the memory of the pool: %+v", r)
	}
	o = a.Handle(t.Context(), memoryPlan(3, memoryAction(trimtab.Units(90*mib), 512*mib)))
	if r := o.Results[0]; r.Status != trimtab.Written || r.Found.Value != 512*mib {
		t.Errorf("a raise: %+v", r)
	}
	use(420 * mib) // over the baseline of 256 MiB
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := content(t, root, "a/memory.max"); got != strconv.Itoa(450*mib) {
		t.Errorf("restored to %s, want the 450 MiB that 400 in use need", got)
	}
}

// held is what holdMemory's process takes, in bytes.
const held = 12_000_000

// holdMemory starts a process in the group that takes held, and 100 kB for a while
// with each call of more.
func holdMemory(t *testing.T, g *cgroup.Group) (more func()) {
	t.Helper()
	cmd := exec.Command("sh", "-c", `read go; x=$(head -c 12000000 /dev/zero | tr "\0" x); echo ready
		while read go; do y=$(head -c 100000 /dev/zero | tr "\0" y); echo ready; done`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if err := g.AddProcess(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	more = func() {
		t.Helper()
		if _, err := in.Write([]byte("go\n")); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 8)); err != nil {
			t.Fatal(err)
		}
	}
	more()
	return more
}

func TestMemoryHighOfSomebodyElseStaysAndAProcessOverItLives(t *testing.T) {
	root := memoryRoot(t)
	g := makeGroup(t, root)
	high := filepath.Join(root, g.Path(), "memory.high")
	if _, err := os.Stat(high); err != nil {
		t.Skipf("version 1 has no memory.high: %v", err)
	}
	k := openMemory(t, cgroup.Config{Root: root, Path: g.Path()})
	more := holdMemory(t, g)
	// A little over it and no more: the kernel slows a group the more, the further
	// it is over.
	if err := os.WriteFile(high, []byte(strings.TrimSpace(content(t, root, g.Path(), "memory.current"))), 0); err != nil {
		t.Fatal(err)
	}
	set := content(t, high)
	more()
	if events := content(t, root, g.Path(), "memory.events"); strings.Contains(events, "high 0\n") {
		t.Errorf("nothing was over memory.high: %s", events)
	}
	floor, err := k.Floor(t.Context())
	if err != nil || floor.Value < held*9/8 {
		t.Fatalf("floor %v, %v, and 12 MB are in use", floor, err)
	}
	if err := k.Write(t.Context(), floor); err != nil {
		t.Fatal(err)
	}
	more()
	if got := content(t, high); got != set {
		t.Errorf("memory.high became %q, was %q", got, set)
	}
	if events := content(t, root, g.Path(), "memory.events"); !strings.Contains(events, "oom_kill 0\n") {
		t.Errorf("killed: %s", events)
	}
}

// A real process holds real memory: the kernel is never asked to take it.
func TestARealProcessKeepsTheMemoryThatItUses(t *testing.T) {
	root := memoryRoot(t)
	g := makeGroup(t, root)
	k := openMemory(t, cgroup.Config{Root: root, Path: g.Path()})
	holdMemory(t, g)
	floor, err := k.Floor(t.Context())
	if err != nil || floor.Value < held*9/8 {
		t.Fatalf("floor %v, %v, and 12 MB are in use", floor, err)
	}
	if err := k.Write(t.Context(), trimtab.Units(8*mib)); !errors.Is(err, trimtab.ErrRefused) {
		t.Errorf("lowered to 8 MiB: %v", err)
	}
	if err := k.Write(t.Context(), floor); err != nil {
		t.Errorf("lowered to the floor: %v", err)
	}
	if got := kernelMemory(t, root, g.Path(), "memory.limit_in_bytes", "memory.max"); got != strconv.Itoa(int(floor.Value)) {
		t.Errorf("the kernel has %s, want %v", got, floor)
	}
	if failed := kernelMemory(t, root, g.Path(), "memory.oom_control", "memory.events"); !strings.Contains(failed, "oom_kill 0") {
		t.Errorf("oom: %s", failed)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if v, err := k.Read(ctx); err != nil || v != floor {
		t.Errorf("read %v, %v", v, err)
	}
}
