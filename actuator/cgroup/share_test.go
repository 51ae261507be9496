package cgroup_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/actuator/knobtest"
)

func reopenShare(undo []byte) (actuator.Knob, error) { return cgroup.ReopenShare(undo) }

func openShare(t *testing.T, root, path string, unit float64) *cgroup.Share {
	t.Helper()
	k, err := cgroup.OpenShare(cgroup.Config{Root: root, Path: path}, unit, trimtab.Unlimited())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	return k
}

func shareContract(t *testing.T, fresh func(t *testing.T) (root, group string, vanish func(string) error)) {
	knobtest.Run(t, func(t *testing.T) knobtest.Fixture {
		root, group, vanish := fresh(t)
		k := openShare(t, root, group, 0.25)
		most := k.Nearest(trimtab.Unlimited())
		return knobtest.Fixture{Knob: k, Reopen: reopenShare, Least: 0.01, Most: 8, Unlimited: &most,
			Vanish: func() { _ = vanish(filepath.Join(root, group)) }}
	})
}

func TestARealShareMeetsTheContractOfKnobs(t *testing.T) {
	root := cpuRoot(t)
	shareContract(t, func(t *testing.T) (string, string, func(string) error) {
		return root, makeGroup(t, root).Path(), os.Remove
	})
}

func TestSharesOfBothVersionsMeetTheContractOfKnobs(t *testing.T) {
	for version, files := range map[string]map[string]string{
		"1": {"a/cpu.shares": "1024\n", "a/cpu.cfs_quota_us": "-1\n", "a/cpu.cfs_period_us": "100000\n"},
		"2": {"a/cpu.weight": "100\n", "a/cpu.max": "max 100000\n"},
	} {
		t.Run(version, func(t *testing.T) {
			shareContract(t, func(t *testing.T) (string, string, func(string) error) { return tree(t, files), "a", os.RemoveAll })
		})
	}
}

// Three groups below a limit of 0.66 cores have 0.22 each by default, and nothing is written
// to give them that.
func TestGroupsOfTheUsualWeightHaveEvenPartsOfTheLimitAbove(t *testing.T) {
	for _, file := range []string{"cpu.shares", "cpu.weight"} {
		usual := map[string]string{"cpu.shares": "1024", "cpu.weight": "100"}[file]
		root := tree(t, map[string]string{"pool/a/" + file: usual, "pool/a/cpu.max": "max 100000\n"})
		k := openShare(t, root, "pool/a", 0.66/3)
		got, err := k.Read(t.Context())
		if err != nil || math.Abs(got.Value-0.22) > 1e-12 {
			t.Errorf("%s: %v, %v", file, got, err)
		}
		if err := k.Write(t.Context(), got); err != nil || content(t, root, "pool/a", file) != usual {
			t.Errorf("%s: %q, %v", file, content(t, root, "pool/a", file), err)
		}
	}
}

// What a restore finds, in whatever order of writes, is what was there before the first.
func TestWeightAndQuotaOfAShareComeBackAsTheyWere(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		v1 := rapid.Bool().Draw(rt, "version 1")
		quota := rapid.SampledFrom([]int{-1, 1000, 22_000, 250_000}).Draw(rt, "quota")
		root := tree(t, map[string]string{
			"a/cpu.weight": fmt.Sprint(rapid.IntRange(1, 10_000).Draw(rt, "weight")),
			"a/cpu.max":    strings.Replace(fmt.Sprintf("%d 100000", quota), "-1", "max", 1),
		})
		if v1 {
			root = tree(t, map[string]string{"a/cpu.shares": fmt.Sprint(rapid.IntRange(2, 262_144).Draw(rt, "shares")),
				"a/cpu.cfs_quota_us": fmt.Sprint(quota), "a/cpu.cfs_period_us": "100000"})
		}
		read := func() string {
			files, err := filepath.Glob(filepath.Join(root, "a", "cpu.*"))
			if err != nil {
				rt.Fatal(err)
			}
			all := ""
			for _, f := range files {
				all += filepath.Base(f) + "=" + strings.TrimSpace(content(t, f)) + "\n"
			}
			return all
		}
		before := read()
		k := openShare(t, root, "a", 0.3)
		undo := k.Undo()
		for range rapid.IntRange(0, 4).Draw(rt, "writes") {
			above := trimtab.Units(rapid.Float64Range(0.1, 3).Draw(rt, "above"))
			k.Cap(rapid.Bool().Draw(rt, "capped"))
			if err := errors.Join(k.Fit(t.Context(), above), k.Adopt(t.Context(), above)); err != nil {
				rt.Fatal(err)
			}
			if done, err := k.Adopted(t.Context(), above); !done || err != nil {
				rt.Fatal(done, err)
			}
			if err := k.Write(t.Context(), trimtab.Units(rapid.Float64Range(0.01, 2).Draw(rt, "amount"))); err != nil {
				rt.Fatal(err)
			}
		}
		if string(k.Undo()) != string(undo) {
			rt.Fatalf("the baseline became another: %s, %s", undo, k.Undo())
		}
		again, err := cgroup.ReopenShare(undo)
		if err != nil {
			rt.Fatal(err)
		}
		defer again.Close()
		if err := errors.Join(again.Restore(t.Context(), undo), k.Close()); err != nil {
			rt.Fatal(err)
		}
		if got := read(); got != before {
			rt.Fatalf("before:\n%safter:\n%s", before, got)
		}
	})
}

// A quota that differs by a microsecond from what was there is not what was there.
func TestARestoreIsExactToTheMicrosecond(t *testing.T) {
	root := tree(t, map[string]string{"a/cpu.weight": "100\n", "a/cpu.max": "1000 100000\n"})
	k := openShare(t, root, "a", 1)
	undo := k.Undo()
	k.Cap(true)
	if err := errors.Join(k.Write(t.Context(), trimtab.Units(0.01001)), k.Adopt(t.Context(), trimtab.Units(1))); err != nil {
		t.Fatal(err)
	}
	if got := content(t, root, "a/cpu.max"); got != "1001 100000" {
		t.Fatalf("capped: %q", got)
	}
	if err := k.Restore(t.Context(), undo); err != nil || content(t, root, "a/cpu.max") != "1000 100000" {
		t.Errorf("restored: %q, %v", content(t, root, "a/cpu.max"), err)
	}
}

// A capped share is a quota, too, as long as it is capped and less than the group above has.
func TestACappedShareIsAQuotaToo(t *testing.T) {
	root := tree(t, map[string]string{"a/cpu.weight": "100\n", "a/cpu.max": "max 100000\n"})
	k := openShare(t, root, "a", 0.3)
	for _, c := range []struct {
		capped bool
		amount float64
		want   string
	}{
		{false, 0.06, "max 100000"},
		{true, 0.06, "6000 100000"},
		{true, 0.001, "1000 100000"}, // the kernel takes no less
		{true, 0.9, "max 100000"},    // the group above has 0.66
		{true, 0.06, "6000 100000"},
		{false, 0.06, "max 100000"},
	} {
		k.Cap(c.capped)
		if err := errors.Join(k.Write(t.Context(), trimtab.Units(c.amount)), k.Adopt(t.Context(), trimtab.Units(0.66))); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(content(t, root, "a", "cpu.max")); got != c.want || k.Capped() != c.capped {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// The pool grows from 1 to 1.5 cores at a reload: the weights stay, each stands for more, and
// what the group had before comes back as it was.
func TestAShareIsHandedOverToAnActuatorByWhichTheSameWeightIsMore(t *testing.T) {
	root, dir := tree(t, map[string]string{"pool/a/cpu.weight": "100", "pool/a/cpu.max": "50000 100000\n"}), t.TempDir()
	open := func(unit float64) *actuator.Actuator {
		k, err := cgroup.OpenShare(cgroup.Config{Root: root, Path: "pool/a"}, unit, trimtab.Unlimited())
		if err != nil {
			t.Fatal(err)
		}
		a, err := actuator.Open(t.Context(), actuator.Config{Host: "h", Pool: "p", Dir: dir, Reopen: reopenShare, Targets: []actuator.Target{
			{KnobID: trimtab.KnobID{Workload: "w", Resource: "cpu"}, Knob: k, Min: 0.01, Max: 2, Mode: trimtab.Act}}})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	a := open(0.5)
	o := a.Handle(t.Context(), &trimtab.Plan{Pool: "p", Epoch: 1, Sequence: 1, Step: 1, Last: true, Time: time.Now(), Capacity: 1, Lease: 30, Actions: []trimtab.Action{
		{KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: "w", Resource: "cpu"}, Expect: trimtab.Units(0.5), Set: trimtab.Units(0.2), Mode: trimtab.Act}}})
	if o.Refused != "" || o.Results[0].Status != trimtab.Written {
		t.Fatalf("%+v", o)
	}
	has := func(when, weight, quota string) {
		t.Helper()
		if w, q := strings.TrimSpace(content(t, root, "pool/a", "cpu.weight")), strings.TrimSpace(content(t, root, "pool/a", "cpu.max")); w != weight || q != quota {
			t.Errorf("%s: weight %q, quota %q, want %q and %q", when, w, q, weight, quota)
		}
	}
	has("moved", "40", "max 100000")
	if err := a.HandOver(t.Context(), func(trimtab.KnobID) bool { return true }, true); err != nil {
		t.Fatal(err)
	}
	has("handed over", "40", "max 100000")
	a = open(0.75)
	if k := a.Holding().Targets[0]; k.Problem != "" || !k.Now.Equal(trimtab.Units(0.3), 1e-9) || !k.Baseline.Equal(trimtab.Units(0.75), 1e-9) {
		t.Errorf("%+v, want 0.3 cores of 0.75 before, and no problem", k)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	has("put back", "100", "50000 100000")
}

func TestAGroupThatIsNotOfThePoolIsAStrangerBesideIt(t *testing.T) {
	root := tree(t, map[string]string{"pool/a/cpu.weight": "100", "pool/b/cpu.weight": "100", "pool/cgroup.procs": "", "busy/a/cpu.weight": "100", "busy/cgroup.procs": "17\n"})
	ours := func(g string) bool { return g == "pool/a" || g == "busy/a" }
	if got, err := cgroup.Beside(root, "pool", ours); err != nil || len(got) != 1 || got[0] != "pool/b" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := cgroup.Beside(root, "busy", ours); !errors.Is(err, trimtab.ErrRefused) {
		t.Errorf("%v, want refused", err)
	}
	if _, err := cgroup.Beside(root, "none", ours); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, want that there is none", err)
	}
}

func TestAShareOfASystemdUnitIsRefused(t *testing.T) {
	root := tree(t, map[string]string{"x.service/cpu.weight": "100\n", "x.service/cpu.max": "max 100000", systemdsOwn: ""})
	k := openShare(t, root, "x.service", 1)
	for _, err := range []error{k.MayWrite(t.Context()), k.Write(t.Context(), trimtab.Units(1)), k.Adopt(t.Context(), trimtab.Unlimited())} {
		if !errors.Is(err, trimtab.ErrRefused) {
			t.Errorf("%v, want refused", err)
		}
	}
}

func TestAShareIsContendedWhileAGroupAboveIsStoppedInMostPeriods(t *testing.T) {
	root := tree(t, map[string]string{"pool/cpu.stat": "", "pool/a/cpu.weight": "100\n", "pool/a/cpu.max": "max 100000\n"})
	k := openShare(t, root, "pool/a", 1)
	for _, look := range []struct {
		periods, stopped int
		want             bool
	}{
		{1000, 900, false}, // what was before the first look is nobody's news
		{1010, 909, true},
		{1012, 911, false}, // too few to tell
		{1032, 915, false},
		{1142, 1025, false}, // too long ago
		{1162, 1045, true},
		{20, 20, false}, // the group is another
	} {
		stat := fmt.Sprintf("nr_periods %d\nnr_throttled %d\n", look.periods, look.stopped)
		if err := os.WriteFile(filepath.Join(root, "pool/cpu.stat"), []byte(stat), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := k.Contended(); got != look.want {
			t.Errorf("%+v: %v", look, got)
		}
	}
}

func TestAQuotaThatAnotherProgramSetsOnAShareIsNamedAndLeftAlone(t *testing.T) {
	root := tree(t, map[string]string{"a/cpu.weight": "100\n", "a/cpu.max": "50000 100000\n"})
	k := openShare(t, root, "a", 0.3)
	above, ctx := trimtab.Units(1), t.Context()
	if done, err := k.Adopted(ctx, above); done || err != nil {
		t.Fatalf("%v, %v: the site's own quota is to be lifted", done, err)
	}
	if err := errors.Join(k.Adopt(ctx, above), k.InForce()); err != nil || strings.TrimSpace(content(t, root, "a", "cpu.max")) != "max 100000" {
		t.Fatalf("%v: %s", err, strings.TrimSpace(content(t, root, "a", "cpu.max")))
	}
	k.Cap(true) // another quota by trimtab's own will
	if err := errors.Join(k.Write(ctx, trimtab.Units(0.3)), k.Adopt(ctx, above), k.InForce()); err != nil || strings.TrimSpace(content(t, root, "a", "cpu.max")) != "30000 100000" {
		t.Fatalf("%v: %s", err, strings.TrimSpace(content(t, root, "a", "cpu.max")))
	}
	k.Cap(false)
	setContent(t, root, "a/cpu.max", "20000 100000\n")
	done, err := k.Adopted(ctx, above)
	if why := k.InForce(); !done || err != nil || why == nil || !strings.Contains(why.Error(), "another program set its quota from 0.3 to 0.2") {
		t.Errorf("%v, %v, %v: want that it is left alone and named", done, err, why)
	}
	if err := k.Adopt(ctx, above); err != nil || strings.TrimSpace(content(t, root, "a", "cpu.max")) != "20000 100000" {
		t.Errorf("%v: it became %s", err, strings.TrimSpace(content(t, root, "a", "cpu.max")))
	}
	setContent(t, root, "a/cpu.max", "30000 100000\n")
	if done, err := k.Adopted(ctx, above); done || err != nil || k.InForce() != nil {
		t.Errorf("%v, %v, %v: it was set back", done, err, k.InForce())
	}
	if err := k.Adopt(ctx, above); err != nil || strings.TrimSpace(content(t, root, "a", "cpu.max")) != "max 100000" {
		t.Errorf("%v: %s", err, strings.TrimSpace(content(t, root, "a", "cpu.max")))
	}
}
