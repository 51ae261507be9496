package rdttest_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/trimtab/trimtab/internal/rdt/rdttest"
)

// What each command answers, as resctrl.rst and the kernel's sources have it.
func TestTheTreeAnswersAsTheKernelDoes(t *testing.T) {
	for _, c := range []struct {
		name   string
		spec   rdttest.Spec
		file   string
		value  string
		err    error
		status string
	}{
		{"a run of ways", rdttest.Spec{Ways: 20}, "g/schemata", "L3:0=3c0\n", nil, "ok"},
		{"a hole", rdttest.Spec{Ways: 20}, "g/schemata", "L3:0=f7\n", syscall.EINVAL, "The mask f7 has non-consecutive 1-bits"},
		{"no way", rdttest.Spec{Ways: 20}, "g/schemata", "L3:0=0\n", syscall.EINVAL, "Mask out of range"},
		{"too many ways", rdttest.Spec{Ways: 4}, "g/schemata", "L3:0=1f\n", syscall.EINVAL, "Mask out of range"},
		{"too few ways", rdttest.Spec{Ways: 20, MinBits: 2}, "g/schemata", "L3:0=1\n", syscall.EINVAL, "Need at least 2 bits in the mask"},
		{"no number", rdttest.Spec{Ways: 4}, "g/schemata", "L3:0=x\n", syscall.EINVAL, "Non-hex character in the mask x"},
		{"no newline", rdttest.Spec{Ways: 4}, "g/schemata", "L3:0=3", syscall.EINVAL, "ok"},
		{"no such domain", rdttest.Spec{Ways: 4}, "g/schemata", "L3:7=3\n", syscall.EINVAL, "ok"},
		{"a domain twice", rdttest.Spec{Ways: 4}, "g/schemata", "L3:0=3;0=3\n", syscall.EINVAL, "Duplicate domain 0"},
		{"no domain", rdttest.Spec{Ways: 4}, "g/schemata", "L3:3\n", syscall.EINVAL, "Missing '=' or non-numeric domain"},
		{"no colon", rdttest.Spec{Ways: 4}, "g/schemata", "L3\n", syscall.EINVAL, "Missing ':'"},
		{"no value", rdttest.Spec{Ways: 4}, "g/schemata", "L3:\n", syscall.EINVAL, "Missing 'L3' value"},
		{"a resource that is not there", rdttest.Spec{Ways: 4, CDP: true}, "g/schemata", "L3:0=3\n", syscall.EINVAL, "Unknown or unsupported resource name 'L3'"},
		{"too little bandwidth", rdttest.Spec{}, "g/schemata", "MB:0=5\n", syscall.EINVAL, "MB value 5 out of range [10,100]"},
		{"too much bandwidth", rdttest.Spec{}, "g/schemata", "MB:0=101\n", syscall.EINVAL, "MB value 101 out of range [10,100]"},
		{"bandwidth that is no number", rdttest.Spec{}, "g/schemata", "MB:0=1e\n", syscall.EINVAL, "Invalid MB value 1e"},
		{"MiB/s", rdttest.Spec{MBps: true}, "g/schemata", "MB:0=5\n", nil, "ok"},
		{"a task", rdttest.Spec{}, "g/tasks", "10\n", nil, "ok"},
		{"a dead task", rdttest.Spec{}, "g/tasks", "99\n", syscall.ESRCH, "No task 99\nError while processing task 99"},
		{"no task", rdttest.Spec{}, "g/tasks", "x\n", syscall.EINVAL, "Task list parsing error pid x"},
		{"no group", rdttest.Spec{}, "h/tasks", "10\n", syscall.ENOENT, "ok"},
		{"an info file", rdttest.Spec{Ways: 4}, "info/L3/cbm_mask", "3\n", syscall.EACCES, "ok"},
		{"exclusive over others", rdttest.Spec{Ways: 4}, "g/mode", "exclusive\n", syscall.EINVAL, "Schemata overlaps"},
	} {
		tree := rdttest.New(c.spec)
		tree.Spawn(10)
		if err := tree.Mkdir("g"); err != nil {
			t.Fatal(err)
		}
		before, _ := tree.Read("g/schemata")
		err := tree.Write(c.file, c.value)
		if !errors.Is(err, c.err) {
			t.Errorf("%s: error %v, want %v", c.name, err, c.err)
		}
		if got := read(t, tree, "info/last_cmd_status"); strings.TrimSpace(got) != c.status {
			t.Errorf("%s: status %q, want %q", c.name, got, c.status)
		}
		if after, _ := tree.Read("g/schemata"); err != nil && before != after {
			t.Errorf("%s: %q became %q", c.name, before, after)
		}
	}
}

func read(t *testing.T, tree *rdttest.Tree, name string) string {
	t.Helper()
	text, err := tree.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestBandwidthIsRoundedUpToTheNextStep(t *testing.T) {
	tree := rdttest.New(rdttest.Spec{})
	if err := tree.Write("schemata", "MB:0=41\n"); err != nil {
		t.Fatal(err)
	}
	if got := read(t, tree, "schemata"); got != "MB:0=50\n" {
		t.Errorf("%q", got)
	}
}

func TestAllLinesAreAppliedOrNone(t *testing.T) {
	tree := rdttest.New(rdttest.Spec{Ways: 8, Domains: []int{0, 2}})
	if err := tree.Write("schemata", "MB:0=50\nL3:0=f;2=5\n"); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("error %v", err)
	}
	if got := read(t, tree, "schemata"); got != "MB:0=100;2=100\nL3:0=ff;2=ff\n" {
		t.Errorf("%q", got)
	}
}

func TestClassesRunOutAndComeBack(t *testing.T) {
	tree := rdttest.New(rdttest.Spec{Ways: 4, CLOSIDs: 2})
	if err := tree.Mkdir("a"); err != nil {
		t.Fatal(err)
	}
	if err := tree.Mkdir("b"); !errors.Is(err, syscall.ENOSPC) || read(t, tree, "info/last_cmd_status") != "Out of CLOSIDs\n" {
		t.Errorf("error %v", err)
	}
	if err := tree.Rmdir("a"); err != nil {
		t.Fatal(err)
	}
	if err := tree.Mkdir("b"); err != nil {
		t.Error(err)
	}
}

func TestTheTasksOfAGroupThatIsRemovedGoToTheDefaultGroup(t *testing.T) {
	tree := rdttest.New(rdttest.Spec{Ways: 4})
	tree.Spawn(1, 2)
	if err := errors.Join(tree.Mkdir("a"), tree.Write("a/tasks", "1,2\n"), tree.Rmdir("a")); err != nil {
		t.Fatal(err)
	}
	if got := read(t, tree, "tasks"); got != "1\n2\n" {
		t.Errorf("%q", got)
	}
}

func TestANewGroupOverlapsNoExclusiveOne(t *testing.T) {
	tree := rdttest.New(rdttest.Spec{Ways: 8})
	err := errors.Join(tree.Write("schemata", "L3:0=fc\n"), tree.Mkdir("a"), tree.Write("a/schemata", "L3:0=3\n"), tree.Write("a/mode", "exclusive\n"), tree.Mkdir("b"))
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, tree, "b/schemata"); !strings.Contains(got, "L3:0=fc") {
		t.Errorf("%q", got)
	}
	if err := tree.Write("b/schemata", "L3:0=1\n"); !errors.Is(err, syscall.EINVAL) || read(t, tree, "info/last_cmd_status") != "Overlaps with exclusive group\n" {
		t.Errorf("error %v", err)
	}
}

func TestSizesAreThoseOfTheMasks(t *testing.T) {
	tree := rdttest.New(rdttest.Spec{Ways: 8, Domains: []int{0, 1}})
	if err := tree.Write("schemata", "L3:0=f\n"); err != nil {
		t.Fatal(err)
	}
	if got := read(t, tree, "size"); !strings.Contains(got, "L3:0=4194304;1=8388608\n") {
		t.Errorf("%q", got)
	}
}

func TestMonitorsAreReadByDomain(t *testing.T) {
	tree := rdttest.New(rdttest.Spec{Ways: 4, Monitors: []string{"llc_occupancy"}, Domains: []int{0, 1}})
	if err := tree.Mkdir("a"); err != nil {
		t.Fatal(err)
	}
	tree.Monitor("a", 1, "llc_occupancy", "4096")
	dirs, err := tree.Dirs("a/mon_data")
	if err != nil || strings.Join(dirs, " ") != "mon_L3_00 mon_L3_01" || read(t, tree, "a/mon_data/mon_L3_01/llc_occupancy") != "4096\n" {
		t.Errorf("%q, %v", dirs, err)
	}
}
