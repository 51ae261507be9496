package cgroup_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// openFinder opens an actuator that has nothing else.
func openFinder(t *testing.T, at actuator.Location) *actuator.Actuator {
	t.Helper()
	like := actuator.Target{KnobID: trimtab.KnobID{Workload: "web", Resource: trimtab.CPU}, Min: 0.1, Max: 4, Mode: trimtab.Act}
	dir := t.TempDir()
	a, err := actuator.Open(t.Context(), actuator.Config{
		Host: "h", Pool: "p", Dir: filepath.Join(dir, "journal"), LockDir: filepath.Join(dir, "locks"), Reopen: reopen,
		Finders: []actuator.Finder{cgroup.Kind().Finder(at, at.Path, []actuator.Target{like})},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(t.Context()) })
	return a
}

// instances lists those in the holding; a problem stands behind the name.
func instances(a *actuator.Actuator) (all []string) {
	for _, k := range a.Holding().Targets {
		all = append(all, k.Instance+k.Problem)
	}
	return all
}

// turn is a plan that sets instances from unlimited to v.
func turn(sequence uint64, v float64, names ...string) *trimtab.Plan {
	p := &trimtab.Plan{Pool: "p", Epoch: 1, Sequence: sequence, Step: 1, Last: true, Time: time.Now(), Capacity: 40, Lease: 30}
	for _, name := range names {
		p.Actions = append(p.Actions, trimtab.Action{
			KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: "web", Instance: name, Resource: trimtab.CPU},
			Expect: trimtab.Unlimited(), Set: trimtab.Units(v), Mode: trimtab.Act,
		})
	}
	return p
}

func TestRealInstancesComeAreTurnedGoAndAreRestored(t *testing.T) {
	root := cpuRoot(t)
	parent := makeGroup(t, root)
	make := func(name string) *cgroup.Group {
		g, err := cgroup.Create(root, path.Join(parent.Path(), "web-"+name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := g.Remove(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
		return g
	}
	a := openFinder(t, actuator.Location{Root: root, Path: path.Join(parent.Path(), "web-*")})
	if got := instances(a); len(got) > 0 {
		t.Errorf("before any was made there are %q", got)
	}
	one, two := make("1"), make("2")
	make("3")
	a.Tick(t.Context())
	if got := instances(a); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Fatalf("instances %q", got)
	}
	o := a.Handle(t.Context(), turn(1, 1.5, "1", "2"))
	for _, r := range o.Results {
		if r.Status != trimtab.Written {
			t.Errorf("%+v", r)
		}
	}
	if got := kernelQuota(t, root, two.Path()); got != "150000 100000\n" {
		t.Errorf("the kernel has %q", got)
	}
	// One goes, another goes and comes again within one look.
	if err := errors.Join(one.Remove(t.Context()), two.Remove(t.Context())); err != nil {
		t.Fatal(err)
	}
	make("2")
	a.Tick(t.Context())
	if got := instances(a); !slices.Equal(got, []string{"2", "3"}) {
		t.Errorf("instances %q, want 2 and 3 without a problem", got)
	}
	is := a.Holding().Targets[0]
	if is.Now != trimtab.Unlimited() || is.Baseline != trimtab.Unlimited() {
		t.Errorf("the new 2 is %+v, want unlimited", is)
	}
	if o := a.Handle(t.Context(), turn(2, 1, "2", "3")); o.Results[0].Status != trimtab.Written || o.Results[1].Status != trimtab.Written {
		t.Errorf("%+v", o.Results)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"2", "3"} {
		if got := kernelQuota(t, root, path.Join(parent.Path(), "web-"+name)); got != unlimited {
			t.Errorf("after the stop %s has %q", name, got)
		}
	}
}

func TestAPatternThatMatchesNothingIsNoProblem(t *testing.T) {
	a := openFinder(t, actuator.Location{Root: t.TempDir(), Path: "shop.slice/checkout@*.service"})
	if h := a.Holding(); len(h.Targets) > 0 || h.Validate() != nil {
		t.Errorf("%+v", h)
	}
}

func TestSoManyInstancesThatItCannotBeTurnNone(t *testing.T) {
	root := t.TempDir()
	group := func(i int) string { return filepath.Join(root, fmt.Sprintf("web-%04d", i)) }
	mk := func(i int) {
		if err := errors.Join(os.Mkdir(group(i), 0o755), os.WriteFile(filepath.Join(group(i), "cpu.max"), []byte("max 100000\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range hostfs.MaxInstances + 1 {
		mk(i)
	}
	c := actuator.Location{Root: root, Path: "web-*"}
	if _, err := cgroup.Kind().Find(t.Context(), c); !errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), "1001 directories match, at most 1000 may") {
		t.Errorf("error %v", err)
	}
	a := openFinder(t, c)
	if all := a.Holding().Targets; len(all) != 1 || all[0].Instance != "" || !strings.Contains(all[0].Problem, "1001 directories match") {
		t.Errorf("%d are turned, %+v", len(all), all[:min(1, len(all))])
	}
}

func TestInstancesOfAnotherOwnerAreReadAndNotTurned(t *testing.T) {
	root := tree(t, map[string]string{"shop.slice/web@1.service/cpu.max": "max 100000\n", systemdsOwn: ""})
	c := actuator.Location{Root: root, Path: "shop.slice/web@*.service"}
	a := openFinder(t, c)
	if got := instances(a); len(got) != 1 || !strings.Contains(got[0], "belongs to the systemd unit web@1.service") {
		t.Errorf("%q", got)
	}
	c.Force = true
	if got := instances(openFinder(t, c)); !slices.Equal(got, []string{"1"}) {
		t.Errorf("with force: %q", got)
	}
}
