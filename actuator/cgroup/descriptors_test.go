package cgroup_test

import (
	"context"
	"fmt"
	"os"
	"path"
	"testing"

	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
)

// descriptors is what this process has open.
func descriptors(t *testing.T) (n int, names []string) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		skip(t, "no /proc: %v", err)
	}
	for _, e := range all {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			names = append(names, to)
		}
	}
	return len(names), names
}

// Not in parallel: other tests open files, too.
func TestOf300InstancesThatCameAndWentNothingIsOpen(t *testing.T) {
	root := cpuRoot(t)
	parent := makeGroup(t, root)
	create := func(name string) *cgroup.Group {
		g, err := cgroup.Create(root, path.Join(parent.Path(), "web-"+name))
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	stays := create("stays")
	t.Cleanup(func() {
		if err := stays.Remove(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	a := openFinder(t, actuator.Location{Root: root, Path: path.Join(parent.Path(), "web-*")})
	a.Tick(t.Context())
	before, _ := descriptors(t)
	for wave := range 3 {
		var all []*cgroup.Group
		for i := range 100 {
			all = append(all, create(fmt.Sprint(wave, "-", i)))
		}
		a.Tick(t.Context())
		if o := a.Handle(t.Context(), turn(uint64(wave+1), 0.3, fmt.Sprint(wave, "-7"))); len(o.Results) != 1 || o.Results[0].Reason != "" {
			t.Errorf("%+v", o)
		}
		for _, g := range all {
			if err := g.Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		a.Tick(t.Context())
		if got := instances(a); len(got) != 1 {
			t.Fatalf("instances %q", got)
		}
	}
	if after, names := descriptors(t); after > before {
		t.Errorf("%d descriptors are open, %d before any came: %q", after, before, names[max(0, len(names)-20):])
	}
}
