package cgroup_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/actuator/knobtest"
)

func reopenWeight(undo []byte) (actuator.Knob, error) { return cgroup.ReopenWeight(undo) }

func openWeight(t *testing.T, root, path string) *cgroup.Weight {
	t.Helper()
	k, err := cgroup.OpenWeight(cgroup.Config{Root: root, Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	return k
}

// weightContract holds the knob of one group to the contract.
func weightContract(t *testing.T, fresh func(t *testing.T) (root, group string)) {
	knobtest.Run(t, func(t *testing.T) knobtest.Fixture {
		root, group := fresh(t)
		k := openWeight(t, root, group)
		most := k.Nearest(trimtab.Unlimited())
		return knobtest.Fixture{Knob: k, Reopen: reopenWeight, Least: 1, Most: 9000, Unlimited: &most,
			Vanish: func() { os.RemoveAll(filepath.Join(root, group)) }}
	})
}

func TestARealWeightMeetsTheContractOfKnobs(t *testing.T) {
	root := cpuRoot(t)
	knobtest.Run(t, func(t *testing.T) knobtest.Fixture {
		g := makeGroup(t, root)
		k := openWeight(t, root, g.Path())
		most := k.Nearest(trimtab.Unlimited())
		return knobtest.Fixture{Knob: k, Reopen: reopenWeight, Least: 1, Most: 9000, Unlimited: &most,
			Vanish: func() { os.Remove(filepath.Join(root, g.Path())) }}
	})
}

// openJobsWeight opens the weight of a best-effort job's group.
func openJobsWeight(t *testing.T, root, path string) *cgroup.Weight {
	t.Helper()
	k, err := cgroup.OpenWeight(cgroup.Config{Root: root, Path: path, Idles: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	return k
}

func TestTheWeightOfARealJobMeetsTheContractOfKnobs(t *testing.T) {
	root := cpuRoot(t)
	knobtest.Run(t, func(t *testing.T) knobtest.Fixture {
		g := makeGroup(t, root)
		k := openJobsWeight(t, root, g.Path())
		most := k.Nearest(trimtab.Unlimited())
		return knobtest.Fixture{Knob: k, Reopen: reopenWeight, Least: 1, Most: 9000, Unlimited: &most,
			Vanish: func() { os.Remove(filepath.Join(root, g.Path())) }}
	})
}

func TestAJobOfWeight0IsIdleForTheKernelAndAnyOtherWeightEndsThat(t *testing.T) {
	root, path, name := besideGroup(t, "cpu.idle", "cpu.idle", "0")
	k := openJobsWeight(t, root, path)
	for _, step := range []struct {
		weight float64
		idle   string
	}{{50, "0"}, {0, "1"}, {0, "1"}, {100, "0"}, {0, "1"}, {10_000, "0"}} {
		if err := k.Write(t.Context(), trimtab.Units(step.weight)); err != nil {
			t.Fatal(err)
		}
		v, err := k.Read(t.Context())
		if want := k.Nearest(trimtab.Units(step.weight)); err != nil || v != want {
			t.Errorf("wrote %v, read %v, %v, want %v", step.weight, v, err, want)
		}
		if got := strings.TrimSpace(content(t, root, path+"/"+name)); got != step.idle {
			t.Errorf("at weight %v %s is %q", step.weight, name, got)
		}
	}
}

func TestAKernelWithoutIdleGroupsGivesAJobTheLeastWeight(t *testing.T) {
	k := openJobsWeight(t, tree(t, map[string]string{"a/cpu.shares": "1024\n"}), "a")
	if err := k.Write(t.Context(), trimtab.Units(0)); err != nil {
		t.Fatal(err)
	}
	if v, err := k.Read(t.Context()); err != nil || v != trimtab.Units(2*100.0/1024) {
		t.Errorf("%v, %v", v, err)
	}
}

func TestVersion2WeightFilesMeetTheContractOfKnobs(t *testing.T) {
	weightContract(t, func(t *testing.T) (string, string) {
		return tree(t, map[string]string{"a/cpu.weight": "100\n"}), "a"
	})
}

func TestVersion1ShareFilesMeetTheContractOfKnobs(t *testing.T) {
	weightContract(t, func(t *testing.T) (string, string) {
		return tree(t, map[string]string{"a/cpu.shares": "1024\n"}), "a"
	})
}

// Both versions have one scale, whose 100 is the default of both, and whatever the
// kernel has is an amount that is written back as it was.
func TestEveryWeightOfTheKernelIsWrittenBackAsItWas(t *testing.T) {
	v2, v1 := tree(t, map[string]string{"a/cpu.weight": "100\n"}), tree(t, map[string]string{"a/cpu.shares": "1024\n"})
	for _, k := range []*cgroup.Weight{openWeight(t, v2, "a"), openWeight(t, v1, "a")} {
		if got, err := k.Read(t.Context()); err != nil || got != trimtab.Units(100) {
			t.Errorf("%s: the default reads %v, %v", k, got, err)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		root, file, n := v2, "a/cpu.weight", rapid.IntRange(1, 10_000).Draw(rt, "weight")
		if rapid.Bool().Draw(rt, "version 1") {
			root, file, n = v1, "a/cpu.shares", rapid.IntRange(2, 262_144).Draw(rt, "shares")
		}
		had := trimtab.Units(float64(n)).String()
		setContent(t, root, file, had)
		k := openWeight(t, root, "a")
		v, err := k.Read(t.Context())
		if err == nil && k.Nearest(v) != v {
			rt.Fatalf("nearest of %v is %v", v, k.Nearest(v))
		}
		setContent(t, root, file, "7")
		if err = errors.Join(err, k.Write(t.Context(), v), k.Close()); err != nil {
			rt.Fatal(err)
		}
		if got := content(t, root, file); got != had {
			rt.Fatalf("%q came back as %q", had, got)
		}
	})
}

func TestAWeightThatIsNoNumberOrOfAForeignUnitIsAnError(t *testing.T) {
	root := tree(t, map[string]string{"a/cpu.weight": "heavy\n", "x.service/cpu.weight": "100\n", "none/cpu.max": "max", systemdsOwn: ""})
	if _, err := openWeight(t, root, "a").Read(t.Context()); !errors.Is(err, trimtab.ErrInvalid) {
		t.Errorf("%v, want invalid", err)
	}
	k := openWeight(t, root, "x.service")
	for _, err := range []error{k.MayWrite(t.Context()), k.Write(t.Context(), trimtab.Units(1))} {
		if !errors.Is(err, trimtab.ErrRefused) {
			t.Errorf("%v, want refused", err)
		}
	}
	if err := openWeight(t, root, "none").Probe(t.Context()); !errors.Is(err, trimtab.ErrUnsupported) {
		t.Errorf("%v, want unsupported", err)
	}
}
