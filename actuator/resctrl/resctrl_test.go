package resctrl_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/knobtest"
	"github.com/trimtab/trimtab/actuator/resctrl"
	"github.com/trimtab/trimtab/internal/rdt"
	"github.com/trimtab/trimtab/internal/rdt/rdttest"
)

func TestKnobsOfEachCPUMeetTheContractOfKnobs(t *testing.T) {
	for _, c := range []struct {
		name, resource string
		spec           rdttest.Spec
		least, most    float64
	}{
		{"ways", trimtab.LLC, server(), 1, 10},
		{"ways, at least two", trimtab.LLC, rdttest.Spec{Ways: 20, MinBits: 2, NoBandwidth: true}, 2, 19},
		{"ways of code and data", trimtab.LLC, rdttest.Spec{Ways: 12, CDP: true, Domains: []int{0, 3}}, 1, 11},
		{"percent", trimtab.MemBW, server(), 10, 90},
		{"percent in steps of 5 from 20 on, no cache", trimtab.MemBW, rdttest.Spec{Gran: 5, Min: 20}, 20, 95},
		{"fractions of 8 of an Arm CPU", trimtab.MemBW, rdttest.Spec{MPAM: 3, Domains: []int{0, 1}}, 13, 88},
		{"fractions of 16 of an Arm CPU", trimtab.MemBW, rdttest.Spec{MPAM: 4}, 6, 94},
		{"fractions of 64 of an Arm CPU", trimtab.MemBW, rdttest.Spec{MPAM: 6}, 2, 97},
		{"fractions of 256 of an Arm CPU, whose least is 0", trimtab.MemBW, rdttest.Spec{MPAM: 8}, 1, 99},
		{"MiB/s", trimtab.MemBW, rdttest.Spec{Ways: 11, MBps: true, Domains: []int{0, 1}}, 1, 20000},
		{"MiB/s of an older kernel", trimtab.MemBW, rdttest.Spec{MBps: true, Old: true}, 1, 20000},
	} {
		t.Run(c.name, func(t *testing.T) {
			knobtest.Run(t, func(t *testing.T) knobtest.Fixture {
				h := newHost(t, c.spec)
				h.cgroup("shop/web", 10, 11)
				h.cgroup("shop/other", 20)
				return knobtest.Fixture{
					Knob: h.knob("shop/web", c.resource), Reopen: h.kind.Reopen, Least: c.least, Most: c.most,
					Vanish: func() {
						h.tree.Unmount()
						if err := os.RemoveAll(filepath.Join(h.groups, "shop")); err != nil {
							t.Fatal(err)
						}
					},
				}
			})
		})
	}
}

func TestALimitMovesTheThreadsOfTheGroupAndOfThoseBelowAndARestorePutsThemBack(t *testing.T) {
	h := newHost(t, server())
	h.cgroup("web", 10, 11)
	h.cgroup("web/worker")
	h.cgroup("web/worker/deep", 12)
	h.tree.Spawn(30)
	k := h.knob("web", trimtab.LLC)
	if v := h.read(k); v != trimtab.Unlimited() {
		t.Errorf("before: %v", v)
	}
	h.write(k, 3)
	for _, id := range []int{10, 11, 12} {
		if got := h.schemata(id); got != "MB:0=100;1=100\nL3:0=007;1=007" {
			t.Errorf("task %d has %q", id, got)
		}
	}
	if got, _ := h.tree.GroupOf(30); got != "" {
		t.Errorf("a task of nobody is in %s", got)
	}
	h.tree.Fork(12, 13)
	if got := h.schemata(13); !strings.Contains(got, "007") {
		t.Errorf("a child has %q", got)
	}
	h.writeAmount(k, trimtab.Unlimited())
	if got := h.trimtabs(); len(got) > 0 {
		t.Errorf("%q are left", got)
	}
	for _, id := range []int{10, 11, 12, 13} {
		if group, _ := h.tree.GroupOf(id); group != "" {
			t.Errorf("task %d is in %s", id, group)
		}
	}
}

func TestTheDefaultGroupAndThoseOfOthersAreNeverWritten(t *testing.T) {
	h := newHost(t, server())
	h.cgroup("web", 10)
	h.cgroup("batch", 20)
	if err := errors.Join(h.tree.Mkdir("theirs"), h.tree.Write("theirs/schemata", "L3:0=3;1=3\n")); err != nil {
		t.Fatal(err)
	}
	before := len(h.tree.Writes())
	web, batch, bandwidth := h.knob("web", trimtab.LLC), h.knob("batch", trimtab.LLC), h.knob("batch", trimtab.MemBW)
	h.write(web, 4)
	h.write(batch, 3)
	h.write(bandwidth, 30)
	h.write(web, 5)
	for _, k := range []actuator.Knob{web, batch, bandwidth} {
		h.writeAmount(k, trimtab.Unlimited())
	}
	for _, w := range h.tree.Writes()[before:] {
		if !strings.Contains(w, " trimtab-") {
			t.Errorf("it did %q", w)
		}
	}
}

func TestBothResourcesShareOneGroupWhichGoesWithTheLastLimit(t *testing.T) {
	h := newHost(t, server())
	h.cgroup("web", 10)
	ways, bandwidth := h.knob("web", trimtab.LLC), h.knob("web", trimtab.MemBW)
	h.write(bandwidth, 40)
	if v := h.read(ways); v != trimtab.Unlimited() {
		t.Errorf("ways are %v", v)
	}
	h.write(ways, 4)
	if got := h.schemata(10); got != "MB:0=40;1=40\nL3:0=00f;1=00f" || len(h.trimtabs()) != 1 {
		t.Errorf("%q in %q", got, h.trimtabs())
	}
	h.writeAmount(bandwidth, trimtab.Unlimited())
	if v := h.read(ways); v != trimtab.Units(4) {
		t.Errorf("ways are %v after the bandwidth was restored", v)
	}
	h.writeAmount(ways, trimtab.Unlimited())
	if got := h.trimtabs(); len(got) > 0 {
		t.Errorf("%q are left", got)
	}
}

func TestNeighboursMakeRoomAndKeepTheirNumberOfWays(t *testing.T) {
	h := newHost(t, server())
	knobs := map[int]actuator.Knob{}
	for i, path := range []string{"a", "b", "c"} {
		h.cgroup(path, 10+i)
		knobs[i] = h.knob(path, trimtab.LLC)
		h.write(knobs[i], 3)
	}
	h.write(knobs[0], 5) // 5 + 3 + 3 = 11
	for i, want := range []string{"01f", "0e0", "700"} {
		if got := h.schemata(10 + i); !strings.HasSuffix(got, "L3:0="+want+";1="+want) {
			t.Errorf("%d has %q, want %s", i, got, want)
		}
	}
	if v := h.read(knobs[1]); v != trimtab.Units(3) {
		t.Errorf("its neighbour reads %v", v)
	}
	h.refused(knobs[1].Write(t.Context(), trimtab.Units(4)), "4 ways do not fit", "give out 11 of 11", "other groups have 8")
	if v := h.read(knobs[1]); v != trimtab.Units(3) {
		t.Errorf("it wrote: %v", v)
	}
}

func TestWhereTheDefaultGroupWasLoweredOnlyTheRestIsGivenOut(t *testing.T) {
	h := newHost(t, server())
	h.cgroup("web", 10)
	if err := h.tree.Write("schemata", "L3:0=f;1=f\n"); err != nil {
		t.Fatal(err)
	}
	k := h.knob("web", trimtab.LLC)
	h.write(k, 7)
	if got := h.schemata(10); !strings.HasSuffix(got, "L3:0=7f0;1=7f0") {
		t.Errorf("%q", got)
	}
	if v := h.read(k); v != trimtab.Units(7) {
		t.Errorf("all that is given out reads %v", v)
	}
	if v, err := h.kind.Measure(actuator.Location{}, trimtab.LLC); v != 7 || err != nil {
		t.Errorf("measured %v, %v", v, err)
	}
}

func TestTasksThatComeLaterAreMovedInAndThoseThatLeftAreMovedBack(t *testing.T) {
	h := newHost(t, server())
	h.cgroup("web", 10)
	k := h.knob("web", trimtab.LLC)
	h.write(k, 2)
	h.tree.Spawn(11)
	h.list("web", 11)
	h.read(k)
	if group, _ := h.tree.GroupOf(11); group == "" {
		t.Error("who came later is in the default group")
	}
	if group, _ := h.tree.GroupOf(10); group != "" {
		t.Errorf("who left is in %s", group)
	}
}

func TestATaskThatDiesWhileItIsMovedIsNoError(t *testing.T) {
	h := newHost(t, server())
	h.cgroup("web", 10, 11, 12)
	h.tree.Exit(11)
	k := h.knob("web", trimtab.LLC)
	h.write(k, 2)
	h.tree.Exit(10)
	if v := h.read(k); v != trimtab.Units(2) {
		t.Errorf("%v", v)
	}
}

func TestThreadsThatBeginWhileAProcessIsMovedAreMovedToo(t *testing.T) {
	h := newHost(t, server())
	h.cgroup("web", 10)
	begun := false
	h.tree.Fail(func(op, name, value string) error {
		if strings.HasSuffix(name, "/tasks") && !begun {
			begun = true
			// A thread of a task that is not moved yet.
			dir := filepath.Join(h.groups, "web", "cgroup.threads")
			return os.WriteFile(dir, []byte("10\n11\n"), 0o644)
		}
		return nil
	})
	h.tree.Spawn(11)
	h.write(h.knob("web", trimtab.LLC), 2)
	if group, _ := h.tree.GroupOf(11); group == "" {
		t.Error("the thread stayed behind")
	}
}

func TestAnErrorSaysWhatTheKernelSays(t *testing.T) {
	h := newHost(t, server())
	h.cgroup("web", 10)
	k := h.knob("web", trimtab.LLC)
	// Another program takes the ways for itself between the look and the write.
	if err := errors.Join(h.tree.Write("schemata", "L3:0=700;1=700\n"), h.tree.Mkdir("theirs")); err != nil {
		t.Fatal(err)
	}
	h.tree.Before(func(op, _ string) {
		if op == "mkdir" {
			if err := errors.Join(h.tree.Write("theirs/schemata", "L3:0=7;1=7\n"), h.tree.Write("theirs/mode", "exclusive\n")); err != nil {
				t.Error(err)
			}
		}
	})
	err := k.Write(t.Context(), trimtab.Units(3))
	if !errors.Is(err, syscall.EINVAL) || !strings.Contains(err.Error(), "last_cmd_status: Overlaps with exclusive group") || len(h.trimtabs()) > 0 {
		t.Errorf("error %v, groups %q", err, h.trimtabs())
	}
}

func TestWithoutAFreeClassItIsRefusedAndNothingIsLeft(t *testing.T) {
	s := server()
	s.CLOSIDs = 2
	h := newHost(t, s)
	h.cgroup("web", 10)
	h.cgroup("batch", 20)
	h.write(h.knob("web", trimtab.LLC), 2)
	k := h.knob("batch", trimtab.LLC)
	err := k.Write(t.Context(), trimtab.Units(2))
	h.refused(err, "2 classes of service (CLOSIDs)", "all are in use", "last_cmd_status: Out of CLOSIDs")
	if !errors.Is(err, syscall.ENOSPC) || len(h.trimtabs()) != 1 {
		t.Errorf("error %v, groups %q", err, h.trimtabs())
	}
	if v := h.read(k); v != trimtab.Unlimited() {
		t.Errorf("%v", v)
	}
}

func TestAGroupThatCannotBeCompletedIsRemovedAgain(t *testing.T) {
	for _, file := range []string{"/schemata", "/tasks"} {
		h := newHost(t, server())
		h.cgroup("web", 10)
		h.tree.Fail(func(op, name, _ string) error {
			if op == "write" && strings.HasSuffix(name, file) {
				return syscall.EPERM
			}
			return nil
		})
		if err := h.knob("web", trimtab.LLC).Write(t.Context(), trimtab.Units(2)); !errors.Is(err, syscall.EPERM) {
			t.Errorf("%s: error %v", file, err)
		}
		if got := h.trimtabs(); len(got) > 0 {
			t.Errorf("%s: %q are left", file, got)
		}
	}
}

func TestWhatAnotherProgramChangedReadsAsNoValueOfTrimtab(t *testing.T) {
	for _, c := range []struct {
		name, schemata string
		want           trimtab.Amount
	}{
		{"fewer ways", "L3:0=3;1=3\n", trimtab.Units(2)},
		{"more ways, some of a neighbour", "L3:0=1f;1=1f\n", trimtab.Units(5.5)},
		{"one domain", "L3:1=f\n", trimtab.Units(3.5)},
		{"as many ways, those of a neighbour", "L3:0=38;1=38\n", trimtab.Units(3.5)},
		{"all ways", "L3:0=7ff;1=7ff\n", trimtab.Unlimited()},
	} {
		h := newHost(t, server())
		h.cgroup("web", 10)
		h.cgroup("batch", 20)
		k, neighbour := h.knob("web", trimtab.LLC), h.knob("batch", trimtab.LLC)
		h.write(k, 3)
		h.write(neighbour, 3)
		group, _ := h.tree.GroupOf(10)
		if err := h.tree.Write(group+"/schemata", c.schemata); err != nil {
			t.Fatal(err)
		}
		if got := h.read(k); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestNeighboursThatAnotherProgramMovedAreNotBuiltOn(t *testing.T) {
	h := newHost(t, server())
	h.cgroup("a", 10)
	h.cgroup("b", 20)
	h.cgroup("c", 30)
	h.write(h.knob("a", trimtab.LLC), 3)
	h.write(h.knob("b", trimtab.LLC), 3)
	group, _ := h.tree.GroupOf(20)
	if err := h.tree.Write(group+"/schemata", "L3:0=7;1=7\n"); err != nil {
		t.Fatal(err)
	}
	h.refused(h.knob("c", trimtab.LLC).Write(t.Context(), trimtab.Units(2)), "changed by another program")
}

func TestAWorkloadThatAnotherProgramPutIntoAGroupIsRefused(t *testing.T) {
	h := newHost(t, server())
	h.cgroup("web", 10, 11)
	if err := errors.Join(h.tree.Mkdir("theirs"), h.tree.Write("theirs/tasks", "11\n")); err != nil {
		t.Fatal(err)
	}
	k := h.knob("web", trimtab.LLC)
	for _, err := range []error{k.MayWrite(t.Context()), k.Write(t.Context(), trimtab.Units(2))} {
		h.refused(err, "task 11 is in the resctrl group theirs")
	}
	if v := h.read(k); v != trimtab.Unlimited() {
		t.Errorf("%v", v)
	}
}

func TestWhileAnotherProgramHoldsTheLockNothingIsWritten(t *testing.T) {
	h := newHost(t, server())
	h.cgroup("web", 10)
	unlock, err := h.tree.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	k := h.knob("web", trimtab.LLC)
	h.refused(k.Write(t.Context(), trimtab.Units(2)), "another program holds the lock")
	unlock()
	h.write(k, 2)
}

func TestADomainThatGoesAwayLeavesTheOthersAsTheyWere(t *testing.T) {
	h := newHost(t, server())
	h.cgroup("web", 10)
	k := h.knob("web", trimtab.LLC)
	h.write(k, 3)
	h.tree.Offline(1)
	if v := h.read(k); v != trimtab.Units(3) {
		t.Errorf("%v", v)
	}
	h.write(k, 4)
	if got := h.schemata(10); got != "MB:0=100\nL3:0=00f" {
		t.Errorf("%q", got)
	}
}

func TestTheGroupOfAWorkloadThatIsGoneIsStillRestored(t *testing.T) {
	h := newHost(t, server())
	h.cgroup("web", 10)
	k := h.knob("web", trimtab.LLC)
	h.write(k, 3)
	undo := k.Undo()
	if err := os.RemoveAll(filepath.Join(h.groups, "web")); err != nil {
		t.Fatal(err)
	}
	again, err := h.kind.Reopen(undo)
	if err != nil {
		t.Fatal(err)
	}
	if v := h.read(again); v != trimtab.Units(3) {
		t.Errorf("%v", v)
	}
	h.writeAmount(again, trimtab.Unlimited())
	if v := h.read(again); v != trimtab.Unlimited() || len(h.trimtabs()) > 0 {
		t.Errorf("%v, groups %q", v, h.trimtabs())
	}
	if v, err := again.Read(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("then it is gone: %v, %v", v, err)
	}
}

func TestAWorkloadThatComesAgainUnderItsNameBeginsWithoutALimit(t *testing.T) {
	h := newHost(t, server())
	h.cgroup("web", 10)
	k := h.knob("web", trimtab.LLC)
	h.write(k, 3)
	old := h.trimtabs()
	if err := os.Rename(filepath.Join(h.groups, "web"), filepath.Join(h.groups, "gone")); err != nil {
		t.Fatal(err)
	}
	h.tree.Exit(10)
	h.cgroup("web", 11)
	if v := h.read(k); v != trimtab.Unlimited() {
		t.Errorf("%v", v)
	}
	h.write(k, 2)
	if now := h.trimtabs(); len(now) != 1 || slices.Equal(now, old) {
		t.Errorf("groups %q, before %q", now, old)
	}
}

func TestLeftoversOfADeadTrimtabAreSweptAndNoOthers(t *testing.T) {
	h := newHost(t, server())
	for i, path := range []string{"dead", "alive", "unknown", "empty"} {
		h.cgroup(path, 10+i)
		h.write(h.knob(path, trimtab.LLC), 1)
	}
	h.tree.Exit(13)
	group := func(task int) string { g, _ := h.tree.GroupOf(task); return g }
	if err := h.tree.Mkdir("theirs"); err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(h.groups)
	if err != nil {
		t.Fatal(err)
	}
	dead, alive, unknown := group(10), group(11), group(12)
	h.kind = resctrl.Kind(h.host(map[string]bool{real + "/dead": false, real + "/alive": true}))
	h.cgroup("web", 20)
	h.write(h.knob("web", trimtab.LLC), 2)
	left := h.trimtabs()
	want := []string{alive, unknown, group(20)}
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("%q are left, want %q; that of the dead is %s", left, want, dead)
	}
	if group(10) != "" {
		t.Error("the task of the dead one is not in the default group")
	}
	if _, err := h.tree.Read("theirs/schemata"); err != nil {
		t.Errorf("the group of another program: %v", err)
	}
}

func TestProbeSaysWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		resource, want string
		open           func(string) (rdt.Files, error)
	}{
		{trimtab.LLC, "no resctrl at", rdt.Open},
		{trimtab.LLC, "no cache allocation for L3 (CAT, flag cat_l3)", on(rdttest.Spec{})},
		{trimtab.MemBW, "no memory bandwidth allocation (MBA, flag mba)", on(rdttest.Spec{Ways: 11, NoBandwidth: true})},
		{trimtab.MemBW, "eighths of GB/s", on(rdttest.Spec{Ways: 16, AMD: true})},
	} {
		k, err := resctrl.Host{Open: c.open}.OpenKnob(resctrl.Config{Tree: "/nowhere", Root: t.TempDir(), Path: "w", Resource: c.resource})
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Probe(t.Context()); !errors.Is(err, trimtab.ErrUnsupported) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want unsupported: %s", err, c.want)
		}
	}
	dir := t.TempDir()
	if _, err := rdt.Open(dir); !errors.Is(err, trimtab.ErrUnsupported) || !strings.Contains(err.Error(), "not mounted") {
		t.Errorf("error %v, want not mounted", err)
	}
}

func on(s rdttest.Spec) func(string) (rdt.Files, error) {
	return func(string) (rdt.Files, error) { return rdttest.New(s), nil }
}

func TestMeasuredIsWhatMayBeGivenOut(t *testing.T) {
	h := newHost(t, server())
	for resource, want := range map[string]float64{trimtab.LLC: 11, trimtab.MemBW: 100} {
		if v, err := h.kind.Measure(actuator.Location{}, resource); v != want || err != nil {
			t.Errorf("%s: %v, %v, want %v", resource, v, err, want)
		}
	}
	h = newHost(t, rdttest.Spec{MBps: true})
	if v, err := h.kind.Measure(actuator.Location{}, trimtab.MemBW); !errors.Is(err, trimtab.ErrUnsupported) {
		t.Errorf("MiB/s: %v, %v", v, err)
	}
}

func TestInstancesAreTheControlGroups(t *testing.T) {
	h := newHost(t, server())
	h.cgroup("shop/web@a", 1)
	h.cgroup("shop/web@b", 2)
	found, err := h.kind.Find(context.Background(), actuator.Location{Root: h.groups, Path: "shop/web@*"})
	if err != nil || len(found) != 2 || found[0].Name != "a" || found[1].Name != "b" {
		t.Errorf("%v, %v", found, err)
	}
}
