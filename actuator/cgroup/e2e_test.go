package cgroup_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/internal/hostfs"
)

func TestAPlanMovesARealQuotaAndCloseRestoresIt(t *testing.T) {
	root := cpuRoot(t)
	g := makeGroup(t, root)
	knob := openKnob(t, cgroup.Config{Root: root, Path: g.Path()})
	a, err := actuator.Open(t.Context(), actuator.Config{
		Host: "h", Pool: "p", Dir: t.TempDir(), Reopen: reopen,
		Targets: []actuator.Target{{KnobID: trimtab.KnobID{Workload: "w", Resource: "cpu"}, Knob: knob, Min: 0.1, Max: 4, Mode: trimtab.Act}},
	})
	if err != nil {
		t.Fatal(err)
	}
	o := a.Handle(t.Context(), &trimtab.Plan{
		Pool: "p", Epoch: 1, Sequence: 1, Step: 1, Last: true, Time: time.Now(), Capacity: 4, Lease: 30,
		Actions: []trimtab.Action{{KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: "w", Resource: "cpu"}, Expect: trimtab.Unlimited(), Set: trimtab.Units(1.5), Mode: trimtab.Act}},
	})
	if o.Refused != "" || len(o.Results) != 1 || o.Results[0].Status != trimtab.Written || o.Results[0].Found != trimtab.Units(1.5) {
		t.Fatalf("outcome %+v", o)
	}
	if got := kernelQuota(t, root, g.Path()); got != "150000 100000\n" {
		t.Errorf("the kernel has %q", got)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := kernelQuota(t, root, g.Path()); got != unlimited {
		t.Errorf("after the stop the kernel has %q", got)
	}
}

// BenchmarkPlanToRealQuota is one action from the plan in hand to the quota
// read back from the kernel, with the journal on disk.
func BenchmarkPlanToRealQuota(b *testing.B) {
	root := cpuRoot(b)
	g, err := cgroup.Create(root, groupName(b))
	if err != nil {
		b.Fatal(err)
	}
	defer g.Remove(b.Context())
	knob, err := cgroup.Open(cgroup.Config{Root: root, Path: g.Path()})
	if err != nil {
		b.Fatal(err)
	}
	defer knob.Close()
	a, err := actuator.Open(b.Context(), actuator.Config{
		Host: "h", Pool: "p", Dir: b.TempDir(), Reopen: reopen,
		Targets: []actuator.Target{{KnobID: trimtab.KnobID{Workload: "w", Resource: "cpu"}, Knob: knob, Min: 0.1, Max: 4, Mode: trimtab.Act}},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer a.Close(b.Context())
	var took []time.Duration
	now, sequence := trimtab.Unlimited(), uint64(0)
	for b.Loop() {
		sequence++
		next := trimtab.Units(1 + float64(sequence%2))
		started := time.Now()
		o := a.Handle(b.Context(), &trimtab.Plan{
			Pool: "p", Epoch: 1, Sequence: sequence, Step: 1, Last: true, Time: started, Capacity: 4, Lease: 30,
			Actions: []trimtab.Action{{KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: "w", Resource: "cpu"}, Expect: now, Set: next, Mode: trimtab.Act}},
		})
		took = append(took, time.Since(started))
		if o.Refused != "" || o.Results[0].Status != trimtab.Written {
			b.Fatalf("outcome %+v", o)
		}
		now = next
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
}

// The site has quotas of its own on two groups below one. A plan without any action takes over:
// one limit on the group above, none below it; a later one moves the shares; a stop, or a restore
// by another process after a kill, brings all of it back.
func TestAPoolThatSharesByWeightHasOneLimitAboveAndAllComesBack(t *testing.T) {
	root := cpuRoot(t)
	for _, killed := range []bool{false, true} {
		above := makeGroup(t, root)
		names := []string{above.Path() + "/a", above.Path() + "/b"}
		c := actuator.Config{Host: "h", Pool: "p", Dir: t.TempDir(), Reopen: cgroup.Kind().Reopen, Parent: openKnob(t, cgroup.Config{Root: root, Path: above.Path()}), KeepOnStop: killed}
		var shares []*cgroup.Share
		for i, name := range names {
			g, err := cgroup.Create(root, name)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = g.Remove(t.Context()) })
			if err := openKnob(t, cgroup.Config{Root: root, Path: name}).Write(t.Context(), trimtab.Units(0.75+float64(i))); err != nil {
				t.Fatal(err)
			}
			k := openShare(t, root, name, 0.5)
			shares = append(shares, k)
			c.Targets = append(c.Targets, actuator.Target{KnobID: trimtab.KnobID{Workload: "w" + name[len(name)-1:], Resource: "cpu"}, Knob: k, Min: 0.01, Max: 1, Mode: trimtab.Act})
		}
		a, err := actuator.Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		plan := func(sequence uint64, actions ...trimtab.Action) {
			t.Helper()
			o := a.Handle(t.Context(), &trimtab.Plan{Pool: "p", Epoch: 1, Sequence: sequence, Step: 1, Last: true, Time: time.Now(), Capacity: 1, Lease: 30, Actions: actions})
			if o.Refused != "" || len(o.Results) != len(actions) || slices.ContainsFunc(o.Results, func(r trimtab.Result) bool { return r.Status != trimtab.Written }) {
				t.Fatalf("outcome %+v", o)
			}
		}
		has := func(when, up, first, second string, weights ...float64) {
			t.Helper()
			for i, want := range []string{up, first, second} {
				if got := kernelQuota(t, root, append([]string{above.Path()}, names...)[i]); got != want {
					t.Errorf("%s: quota %d is %q, want %q", when, i, got, want)
				}
			}
			for i, k := range shares {
				if v, err := k.Read(t.Context()); err != nil || !v.Equal(trimtab.Units(weights[i]), 1e-3) {
					t.Errorf("%s: share %d is %v, want %v: %v", when, i, v, weights[i], err)
				}
			}
		}
		plan(1)
		has("taken over", "100000 100000\n", unlimited, unlimited, 0.5, 0.5)
		if h := a.Holding(); !h.Targets[0].Shared || h.Targets[0].Now != trimtab.Units(0.5) || len(h.Unmet) > 0 {
			t.Errorf("%+v", h)
		}
		at := func(w string, from, to float64) trimtab.Action {
			return trimtab.Action{KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: w, Resource: "cpu"}, Expect: trimtab.Units(from), Set: trimtab.Units(to), Mode: trimtab.Act}
		}
		plan(2, at("wa", 0.5, 0.25), at("wb", 0.5, 0.75))
		has("moved", "100000 100000\n", unlimited, unlimited, 0.25, 0.75)
		capped := at("wa", 0.25, 0.25)
		capped.Capped = true
		plan(3, capped)
		has("capped", "100000 100000\n", "25000 100000\n", unlimited, 0.25, 0.75)
		if h := a.Holding(); !h.Targets[0].Capped || h.Targets[1].Capped {
			t.Errorf("%+v", h)
		}
		plan(4, at("wa", 0.25, 0.25))
		has("not capped", "100000 100000\n", unlimited, unlimited, 0.25, 0.75)
		plan(5, capped)
		if killed { // another process has the journal alone
			if err := a.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			for i := range shares {
				shares[i] = openShare(t, root, names[i], 0.5)
			}
			has("left to its lease", "100000 100000\n", "25000 100000\n", unlimited, 0.25, 0.75)
			if r, err := actuator.Restore(t.Context(), c.Dir, c.Reopen); err != nil {
				t.Fatalf("%+v, %v", r, err)
			}
		} else {
			has("before the stop", "100000 100000\n", "25000 100000\n", unlimited, 0.25, 0.75)
			if err := a.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			for i := range shares {
				shares[i] = openShare(t, root, names[i], 0.5)
			}
		}
		has("after the end", unlimited, "75000 100000\n", "175000 100000\n", 0.5, 0.5)
	}
}

// bound is the limit of a group above that looks at what is below it when it is set.
type bound struct {
	actuator.Knob
	look func()
}

func (b bound) Write(ctx context.Context, a trimtab.Amount) error {
	b.look()
	return b.Knob.Write(ctx, a)
}

func TestQuotasAreLiftedOnceTheGroupAboveHasItsLimitAndNotBefore(t *testing.T) {
	root := tree(t, map[string]string{"pool/cpu.max": "max 100000\n", "pool/a/cpu.max": "175000 100000\n", "pool/a/cpu.weight": "100\n"})
	looked := "" // version 1 refuses less above than below
	a, err := actuator.Open(t.Context(), actuator.Config{Host: "h", Pool: "p", Dir: t.TempDir(), Reopen: cgroup.Kind().Reopen,
		Parent:  bound{openKnob(t, cgroup.Config{Root: root, Path: "pool"}), func() { looked += content(t, root, "pool/a/cpu.max") }},
		Targets: []actuator.Target{{KnobID: trimtab.KnobID{Workload: "w", Resource: "cpu"}, Knob: openShare(t, root, "pool/a", 0.5), Min: 0.01, Max: 1, Mode: trimtab.Act}}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close(t.Context())
	a.Handle(t.Context(), &trimtab.Plan{Pool: "p", Epoch: 1, Sequence: 1, Step: 1, Last: true, Time: time.Now(), Capacity: 1, Lease: 30})
	if got := strings.Fields(looked + " " + content(t, root, "pool/cpu.max") + " " + content(t, root, "pool/a/cpu.max")); strings.Join(got, " ") != "100000 100000 100000 100000 max 100000" {
		t.Errorf("the group had %q when that above was set; then above, and below: %q", looked, got)
	}
}

// The pool has 4 cores, this host 2, and its shares come to 1: others may have the rest.
func TestOfSeveralHostsTheGroupAboveHasTheSumOfTheSharesAndAllComesBack(t *testing.T) {
	root := tree(t, map[string]string{"pool/cpu.max": "max 100000\n", "pool/a/cpu.max": "max 100000\n", "pool/a/cpu.weight": "100\n", "pool/b/cpu.max": "max 100000\n", "pool/b/cpu.weight": "100\n"})
	c := actuator.Config{Host: "h", Pool: "p", Dir: t.TempDir(), Reopen: cgroup.Kind().Reopen, Shared: true,
		Measure: func() (map[string]float64, error) { return map[string]float64{"cpu": 2}, nil },
		Parent:  strict{openKnob(t, cgroup.Config{Root: root, Path: "pool"}), func() string { return content(t, root, "pool/b/cpu.max") }}}
	for name, most := range map[string]trimtab.Amount{"a": trimtab.Unlimited(), "b": trimtab.Units(0.9)} {
		k, err := cgroup.OpenShare(cgroup.Config{Root: root, Path: "pool/" + name}, 0.5, most)
		if err != nil {
			t.Fatal(err)
		}
		c.Targets = append(c.Targets, actuator.Target{KnobID: trimtab.KnobID{Workload: name, Resource: "cpu"}, Knob: k, Min: 0.01, Max: 4, Mode: trimtab.Act})
	}
	a, err := actuator.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	plan := func(sequence uint64, want string, actions ...trimtab.Action) {
		t.Helper()
		o := a.Handle(t.Context(), &trimtab.Plan{Pool: "p", Epoch: 1, Sequence: sequence, Step: 1, Last: true, Time: time.Now(), Capacity: 4, Lease: 30, Actions: actions})
		if got := strings.TrimSpace(content(t, root, "pool/cpu.max")); o.Refused != "" || got != want {
			t.Errorf("plan %d: the group above has %q, want %q: %+v", sequence, got, want, o)
		}
	}
	move := func(to, from float64) trimtab.Action {
		return trimtab.Action{KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: "a", Resource: "cpu"}, Expect: trimtab.Units(from), Set: trimtab.Units(to), Mode: trimtab.Act}
	}
	plan(1, "100000 100000")
	if got := strings.TrimSpace(content(t, root, "pool/b/cpu.max")); got != "90000 100000" {
		t.Errorf("b, which may have 0.9 in all, has %q", got)
	}
	plan(2, "75000 100000", move(0.25, 0.5))
	plan(3, "180000 100000", move(1.3, 0.25))
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"pool/cpu.max": "max 100000", "pool/a/cpu.weight": "100"} {
		if got := strings.TrimSpace(content(t, root, file)); got != want {
			t.Errorf("after the end %s has %q, want %q", file, got, want)
		}
	}
}

// strict is a limit as the kernel has it in version 1: never less than a group below has.
type strict struct {
	*cgroup.CPU
	below func() string
}

func (k strict) Write(ctx context.Context, to trimtab.Amount) error {
	if q, err := hostfs.ParseCPUMax(k.below()); err != nil || to.Less(q.Amount()) && !q.Amount().Unlimited {
		return fmt.Errorf("a group below has %v: %w", q.Amount(), trimtab.ErrInvalid)
	}
	return k.CPU.Write(ctx, to)
}

// refusing is a limit that cannot be set, as that of a group whose owner took the right away.
type refusing struct{ actuator.Knob }

func (refusing) Write(context.Context, trimtab.Amount) error { return trimtab.ErrRefused }

// lifted counts how often a share's own quota was lifted.
type lifted struct {
	*cgroup.Share
	times *int
}

func (l lifted) Traits() actuator.Traits {
	t := l.Share.Traits()
	t.Shared = l
	return t
}

func (l lifted) Adopt(ctx context.Context, above trimtab.Amount) error {
	*l.times++
	return l.Share.Adopt(ctx, above)
}

func TestWhereTheLimitAboveCannotBeSetQuotasStayAndAreNotLiftedAgainAndAgain(t *testing.T) {
	root := tree(t, map[string]string{"pool/cpu.max": "max 100000\n", "pool/a/cpu.max": "75000 100000\n", "pool/a/cpu.weight": "100\n"})
	times := 0
	a, err := actuator.Open(t.Context(), actuator.Config{Host: "h", Pool: "p", Dir: t.TempDir(), Reopen: cgroup.Kind().Reopen,
		Parent:  refusing{openKnob(t, cgroup.Config{Root: root, Path: "pool"})},
		Targets: []actuator.Target{{KnobID: trimtab.KnobID{Workload: "w", Resource: "cpu"}, Knob: lifted{openShare(t, root, "pool/a", 0.5), &times}, Min: 0.01, Max: 1, Mode: trimtab.Act}}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close(t.Context())
	for sequence := uint64(1); sequence < 5; sequence++ {
		a.Handle(t.Context(), &trimtab.Plan{Pool: "p", Epoch: 1, Sequence: sequence, Step: 1, Last: true, Time: time.Now(), Capacity: 1, Lease: 30})
		if got := content(t, root, "pool/a/cpu.max"); got != "75000 100000" && got != "75000 100000\n" {
			t.Errorf("plan %d: the quota is %q", sequence, got)
		}
	}
	unmet := a.Holding().Unmet
	if times > 1 || len(unmet) != 1 || unmet[0].What != codes.UnmetWeights || !strings.Contains(unmet[0].Do, "cap: always") {
		t.Errorf("lifted %d times: %+v", times, unmet)
	}
}
