package cpuset

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/trimtab/trimtab"
)

func TestCoresThatAnotherGroupHasAreNotTakenAndTheGroupIsNamed(t *testing.T) {
	root := version2(t, map[string]string{"a": "0,4", "be/job": "3,7", "be": "", "shop": "1,5", "shop/inside": "2"})
	c := at(root, "be/job")
	c.Machine, c.High = fourCores(t), true
	k := open(t, c)
	if err := k.Write(t.Context(), trimtab.Units(2)); err != nil || content(t, root, "be/job/cpuset.cpus") != "2-3,6-7" {
		t.Errorf("it has %q, %v", content(t, root, "be/job/cpuset.cpus"), err)
	}
	for _, v := range []trimtab.Amount{trimtab.Units(3), trimtab.Unlimited()} {
		err := k.Write(t.Context(), v)
		if !errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), "CPUs 0-1,4-5 belong to a, shop") {
			t.Errorf("%v: error %v", v, err)
		}
	}
	if got := content(t, root, "be/job/cpuset.cpus"); got != "2-3,6-7" {
		t.Errorf("it wrote %q", got)
	}
	// A group that has them all has none for itself.
	write(t, root, map[string]string{"a/cpuset.cpus": "0-7\n"})
	if err := k.Write(t.Context(), trimtab.Units(3)); err != nil {
		t.Error(err)
	}
}

func TestASetThatAnotherProgramEmptiedIsToldAndLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		tree func(*testing.T, map[string]string) string
		now  trimtab.Amount
	}{"version 1": {version1, trimtab.Units(0)}, "version 2": {version2, trimtab.Unlimited()}} {
		root := c.tree(t, map[string]string{"a": "2-3,6-7"})
		at := at(root, "a")
		at.Machine = fourCores(t)
		k := open(t, at)
		h := newHost(t, k)
		h.plan(t, trimtab.Written, 0, 1)
		write(t, root, map[string]string{"a/cpuset.cpus": "\n"})
		if got, err := k.Read(t.Context()); err != nil || got != c.now {
			t.Errorf("%s: read %v, %v, want %v", name, got, err, c.now)
		}
		h.plan(t, trimtab.Refused, 0, 2)
		if !strings.Contains(h.reason, "changed by somebody else") {
			t.Errorf("%s: %s", name, h.reason)
		}
		if err := h.Close(t.Context()); err != nil || content(t, root, "a/cpuset.cpus") != "" {
			t.Errorf("%s: it was written over: %q, %v", name, content(t, root, "a/cpuset.cpus"), err)
		}
	}
}

func TestAnEmptySetOfVersion1IsNoneToTurn(t *testing.T) {
	root := version1(t, map[string]string{"a": ""})
	c := at(root, "a")
	c.Machine = fourCores(t)
	k := open(t, c)
	for _, err := range []error{k.MayWrite(t.Context()), k.Write(t.Context(), trimtab.Units(1))} {
		if !errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), "fill it and cpuset.mems first") {
			t.Errorf("error %v", err)
		}
	}
	if got := content(t, root, "a/cpuset.cpus"); got != "" {
		t.Errorf("it wrote %q", got)
	}
}

// As many cores as trimtab set, but others: the amount alone does not tell it.
func TestAMaskThatAnotherProgramSetIsNotRestored(t *testing.T) {
	root := version2(t, map[string]string{"a": "2-3,6-7"})
	c := at(root, "a")
	c.Machine = fourCores(t)
	h := newHost(t, open(t, c))
	h.plan(t, trimtab.Written, 0, 1)
	write(t, root, map[string]string{"a/cpuset.cpus": "1,5\n"})
	if err := h.Close(t.Context()); err != nil || content(t, root, "a/cpuset.cpus") != "1,5" {
		t.Errorf("%q, %v", content(t, root, "a/cpuset.cpus"), err)
	}
}

func TestAParentThatWasMadeSmallerBoundsWhatIsInForceAndWhatCanBeHad(t *testing.T) {
	root := version2(t, map[string]string{"p": "", "p/a": "0-1,4-5"})
	c := at(root, "p/a")
	c.Machine = fourCores(t)
	k := open(t, c)
	write(t, root, map[string]string{"p/cpuset.cpus": "1-3,5-7", "p/cpuset.cpus.effective": "1-3,5-7", "p/a/cpuset.cpus.effective": "1,5"})
	asked, err := k.Read(t.Context())
	now, bad := k.Effective(t.Context())
	if err != nil || bad != nil || asked != trimtab.Units(2) || now != trimtab.Units(1) {
		t.Errorf("asked %v, in force %v, %v, %v", asked, now, err, bad)
	}
	if got := k.Nearest(trimtab.Units(9)); got != trimtab.Units(3) {
		t.Errorf("nearest of 9 is %v, and the parent has 3", got)
	}
	if err := k.Write(t.Context(), trimtab.Units(3)); err != nil || content(t, root, "p/a/cpuset.cpus") != "1-3,5-7" {
		t.Errorf("it has %q, %v", content(t, root, "p/a/cpuset.cpus"), err)
	}
}

// Two processes that choose at the same time see the same cores free. Whatever the
// order of their steps, they do not both keep one.
func TestTwoWritersAtOneTimeKeepDifferentRealCores(t *testing.T) {
	root, group := realRoot(t)
	all := union(mustCores(t, root)).String()
	knobs := [2]*Cores{open(t, at(root, child(t, root, group, "a"))), open(t, at(root, child(t, root, group, "b")))}
	refused := 0
	for range 100 {
		var errs [2]error
		var wait sync.WaitGroup
		for i, k := range knobs {
			set(t, filepath.Join(root, k.Group()), cpusFile, all)
			wait.Go(func() { errs[i] = k.Write(t.Context(), trimtab.Units(1)) })
		}
		wait.Wait()
		a, b := content(t, root, knobs[0].Group(), cpusFile), content(t, root, knobs[1].Group(), cpusFile)
		if a == b && a != all {
			t.Fatalf("both have CPUs %s: %v", a, errs)
		}
		for i, had := range []string{a, b} {
			if errs[i] == nil {
				continue
			}
			if refused++; !errors.Is(errs[i], trimtab.ErrRefused) || had != all {
				t.Fatalf("refused, and it has CPUs %s: %v", had, errs[i])
			}
		}
	}
	t.Logf("%d of 200 writes were refused", refused)
}

// The kernel of version 1 refuses a mask that the parent has not got: the error says
// so, and the baseline is kept for another try.
func TestARealMaskThatTheParentDoesNotAllowIsAnErrorThatSaysWhatItAllows(t *testing.T) {
	root, group := realRoot(t)
	if versionOf(root) != 1 {
		t.Skip("version 2 takes any mask, and puts in force what there is of it")
	}
	cores := mustCores(t, root)
	name := child(t, root, group, "inner")
	k := open(t, at(root, name))
	if _, err := k.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	undo := k.Undo()
	set(t, filepath.Join(root, name), cpusFile, cores[0].String())
	set(t, filepath.Join(root, group), cpusFile, cores[0].String())
	if err := k.Restore(t.Context(), undo); err == nil || !strings.Contains(err.Error(), "has only CPUs "+cores[0].String()) {
		t.Errorf("restored beyond the parent: %v", err)
	}
	// A group with others inside cannot become smaller than they are.
	set(t, filepath.Join(root, group), cpusFile, union(cores).String())
	set(t, filepath.Join(root, name), cpusFile, cores[len(cores)-1].String())
	if err := open(t, at(root, group)).Write(t.Context(), trimtab.Units(1)); err == nil || !strings.Contains(err.Error(), "inside it has other CPUs") {
		t.Errorf("made smaller than what lies in it: %v", err)
	}
}

func TestAGroupThatDiesBetweenReadAndWriteIsAnErrorThatSaysSo(t *testing.T) {
	root, group := realRoot(t)
	name := child(t, root, group, "short-lived")
	k := open(t, at(root, name))
	h := newHost(t, k)
	h.plan(t, trimtab.Written, 0, 1)
	undo := k.Undo()
	if err := os.Remove(filepath.Join(root, name)); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{k.Write(t.Context(), trimtab.Units(1)), k.Restore(t.Context(), undo)} {
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("error %v", err)
		}
	}
	if err := h.Close(t.Context()); err != nil { // nothing is left to restore
		t.Error(err)
	}
}

func TestListsThatAreNoneAndMachinesThatDoNotTellAreErrors(t *testing.T) {
	root := version2(t, map[string]string{"a": "many", "b": "", "x.service": "", "init.scope": ""})
	m := fourCores(t)
	for path, want := range map[string]error{"a": trimtab.ErrInvalid, "none": os.ErrNotExist} {
		c := at(root, path)
		c.Machine = m
		if err := open(t, c).Probe(t.Context()); !errors.Is(err, want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	silent := at(root, "b")
	silent.Machine = &Machine{dir: write(t, t.TempDir(), map[string]string{"online": "0-1\n"})}
	if err := open(t, silent).Probe(t.Context()); !errors.Is(err, trimtab.ErrUnsupported) {
		t.Errorf("a kernel that does not tell which threads are of one core: %v", err)
	}
	foreign := at(root, "x.service")
	foreign.Machine = m
	if err := open(t, foreign).Write(t.Context(), trimtab.Units(1)); !errors.Is(err, trimtab.ErrRefused) {
		t.Errorf("systemd's: %v", err)
	}
	write(t, root, map[string]string{"cpu.max": "max", "c/cpu.max": "max"})
	if err := open(t, at(root, "c")).Probe(t.Context()); !errors.Is(err, trimtab.ErrUnsupported) || !strings.Contains(err.Error(), "cpuset controller") {
		t.Errorf("without the controller: %v", err)
	}
	for _, path := range []string{"", "..", "/a", "../x"} {
		if _, err := Open(at(root, path)); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestTheThreadsOfACoreAreReadAgainWhenOthersAreOnline(t *testing.T) {
	m := fourCores(t)
	if c, err := m.Topology(); err != nil || len(c) != 4 {
		t.Fatalf("%v, %v", c, err)
	}
	files := map[string]string{"online": "0-3\n"}
	for _, n := range []string{"0", "1", "2", "3"} {
		files["cpu"+n+"/topology/core_cpus_list"] = n + "\n"
	}
	write(t, m.dir, files)
	c, err := m.Topology()
	if err != nil || len(c) != 4 || c[3].String() != "3" {
		t.Errorf("%v, %v", c, err)
	}
	write(t, m.dir, map[string]string{"cpu1/topology/core_cpus_list": "0\n", "online": "0-1\n"})
	if c, err := m.Topology(); err == nil {
		t.Errorf("%v, want an error: CPU 1 is none of its own core", c)
	}
}

// As isolcpus= has it: such CPUs stay in every set, and are listed in the file isolated.
func TestIsolatedCPUsAreNotGivenOut(t *testing.T) {
	m := fourCores(t)
	write(t, m.dir, map[string]string{"isolated": "3,7\n"})
	root := version2(t, map[string]string{"a": "0,4"})
	c := at(root, "a")
	c.Machine, c.High = m, true
	k := open(t, c)
	if err := k.Write(t.Context(), trimtab.Units(4)); err != nil {
		t.Fatal(err)
	}
	if got := content(t, root, "a/cpuset.cpus"); got != "0-2,4-6" {
		t.Errorf("of cores 0 to 3, of which 3 is isolated, it has CPUs %s", got)
	}
	if got := m.Usable(Set{3, 7}); got.String() != "3,7" {
		t.Errorf("who has isolated CPUs alone has %s", got)
	}
}
