package cpufreq

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/knobtest"
)

func openOn(t *testing.T, k *kernel, root, group string) *Frequency {
	t.Helper()
	f, err := Open(Config{Root: root, Path: group, open: k.open})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func reads(t *testing.T, f *Frequency, want trimtab.Amount) {
	t.Helper()
	if got, err := f.Read(t.Context()); err != nil || got != want {
		t.Errorf("read %v, %v, want %v", got, err, want)
	}
}

func set(t *testing.T, f *Frequency, v trimtab.Amount) {
	t.Helper()
	if err := f.Write(t.Context(), v); err != nil {
		t.Fatalf("write %v: %v", v, err)
	}
}

func asked(t *testing.T, k *kernel, want string) {
	t.Helper()
	if got := k.asked(); got != want {
		t.Errorf("the kernel was asked for %s, want %s", got, want)
	}
}

func TestAFrequencyMeetsTheContractOfKnobs(t *testing.T) {
	tables := map[string]func(*kernel){
		"AnyFrequency": func(*kernel) {},
		"ATable": func(k *kernel) {
			k.policies["policy0"].table = []int64{800_000, 1_300_000, 2_000_000, 2_900_000, 3_000_000}
		},
		"TwoKindsOfCores": func(k *kernel) {
			p := k.policies["policy2"]
			p.max, p.want, p.table = 1_900_000, 1_900_000, []int64{600_000, 1_000_000, 1_900_000}
		},
	}
	for name, change := range tables {
		t.Run(name, func(t *testing.T) {
			knobtest.Run(t, func(t *testing.T) knobtest.Fixture {
				k, root := host(t, 3, map[string]string{"batch": "0-3"})
				change(k)
				return knobtest.Fixture{
					Knob:  openOn(t, k, root, "batch"),
					Least: 900, Most: 2900, TakeEffect: func() {},
					Reopen: func(undo []byte) (actuator.Knob, error) { return actuator.OrNil(reopen(undo, k.open)) },
					Vanish: func() { k.policies = nil },
				}
			})
		})
	}
}

func TestAllPoliciesOfTheGroupAreTurnedAndNoOther(t *testing.T) {
	k, root := host(t, 4, map[string]string{"batch": "2-5"})
	f := openOn(t, k, root, "batch")
	set(t, f, trimtab.Units(1500))
	asked(t, k, "0=3000 2=1500 4=1500 6=3000")
	reads(t, f, trimtab.Units(1500))
}

// Each policy gets back what it had, by the knob itself and from the journal alone.
func TestWhatWasThereComesBackPolicyByPolicy(t *testing.T) {
	for _, fromJournal := range []bool{false, true} {
		k, root := host(t, 3, map[string]string{"batch": "0-3"})
		k.policies["policy0"].want = 2_000_000
		k.policies["policy2"].want = 2_700_000
		f := openOn(t, k, root, "batch")
		baseline, err := f.Read(t.Context())
		if err != nil || baseline != trimtab.Units(2700) {
			t.Fatalf("baseline %v, %v", baseline, err)
		}
		undo := f.Undo()
		set(t, f, trimtab.Units(1000))
		asked(t, k, "0=1000 2=1000 4=3000")
		if fromJournal {
			if f, err = reopen(undo, k.open); err != nil {
				t.Fatal(err)
			}
			reads(t, f, trimtab.Units(1000))
		}
		set(t, f, baseline)
		asked(t, k, "0=2000 2=2700 4=3000")
		reads(t, f, baseline)
	}
}

// A process that dies between two policies, on the way down or back, leaves what
// reads as trimtab's, so that a restore goes on.
func TestARestoreGoesOnWhereTheLastProcessDied(t *testing.T) {
	for written := range 3 {
		for _, back := range []bool{false, true} {
			k, root := host(t, 4, map[string]string{"batch": "0-5"})
			f := openOn(t, k, root, "batch")
			undo := f.Undo()
			if back {
				set(t, f, trimtab.Units(1200))
			}
			for i := range written + 1 { // what a kill leaves
				want := int64(1_200_000)
				if back {
					want = 3_000_000
				}
				if back && i == 2 {
					continue // the last one is never reached
				}
				k.policies[fmt.Sprint("policy", 2*i)].want = want
			}
			again, err := reopen(undo, k.open)
			if err != nil {
				t.Fatal(err)
			}
			reads(t, again, trimtab.Units(1200))
			set(t, again, trimtab.Unlimited())
			asked(t, k, "0=3000 2=3000 4=3000 6=3000")
		}
	}
}

func TestAFailureInTheMiddleIsNotForgotten(t *testing.T) {
	k, root := host(t, 4, map[string]string{"batch": "0-5"})
	f := openOn(t, k, root, "batch")
	k.stop = 2
	err := f.Write(t.Context(), trimtab.Units(1200))
	if !errors.Is(err, syscall.EIO) {
		t.Fatalf("error %v", err)
	}
	k.stop = -1
	// What was written before could not be put back while writes failed: the knob knows.
	reads(t, f, trimtab.Units(1200))
	set(t, f, trimtab.Unlimited())
	asked(t, k, "0=3000 2=3000 4=3000 6=3000")
}

// The group's CPUs move: the ceiling goes with them, and is journaled before.
func TestACeilingFollowsTheGroup(t *testing.T) {
	k, root := host(t, 4, map[string]string{"batch": "0-3"})
	k.policies["policy4"].want = 2_500_000
	f := openOn(t, k, root, "batch")
	set(t, f, trimtab.Units(1500))
	put(t, root, "batch/cpuset.cpus.effective", "2-5")
	reads(t, f, trimtab.Units(1500))
	if v, err := f.Effective(t.Context()); err != nil || v != trimtab.Units(2500) {
		t.Errorf("in force is %v, %v, want what policy4 has", v, err)
	}
	undo := f.Undo()
	set(t, f, trimtab.Units(1400))
	asked(t, k, "0=3000 2=1400 4=1400 6=3000")
	again, err := reopen(undo, k.open)
	if err != nil {
		t.Fatal(err)
	}
	set(t, again, trimtab.Unlimited())
	asked(t, k, "0=3000 2=3000 4=2500 6=3000")
}

func TestAGroupThatIsGoneLeavesNoCeiling(t *testing.T) {
	k, root := host(t, 3, map[string]string{"batch": "0-1"})
	f := openOn(t, k, root, "batch")
	set(t, f, trimtab.Units(1500))
	if err := os.RemoveAll(filepath.Join(root, "batch")); err != nil {
		t.Fatal(err)
	}
	reads(t, f, trimtab.Units(1500))
	if err := f.Write(t.Context(), trimtab.Units(1000)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("write to a group that is gone: %v", err)
	}
	set(t, f, trimtab.Unlimited())
	asked(t, k, "0=3000 2=3000 4=3000")
	if _, err := f.Read(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("read %v, want that the group is gone", err)
	}
}

// The kernel keeps the ceiling of a policy whose CPUs are offline: it is turned
// until it can be put back. One that is gone with its driver is not.
func TestAnOfflinePolicyIsPutBackWhenItIsBack(t *testing.T) {
	k, root := host(t, 3, map[string]string{"batch": "0-3"})
	f := openOn(t, k, root, "batch")
	undo := f.Undo()
	set(t, f, trimtab.Units(1500))
	k.policies["policy2"].online = false
	again, err := reopen(undo, k.open)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := again.Read(t.Context()); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("read %v, %v: want an error that is not that it is gone", v, err)
	}
	if err := again.Write(t.Context(), trimtab.Unlimited()); err == nil || !strings.Contains(err.Error(), "offline") {
		t.Errorf("put back: %v", err)
	}
	asked(t, k, "0=3000 2=1500 4=3000")
	k.policies["policy2"].online = true
	reads(t, again, trimtab.Units(1500))
	set(t, again, trimtab.Unlimited())
	asked(t, k, "0=3000 2=3000 4=3000")

	set(t, f, trimtab.Units(1500))
	delete(k.policies, "policy2")
	set(t, f, trimtab.Unlimited())
	asked(t, k, "0=3000 4=3000")
}

func TestAPolicyThatIsNotTheGroupsAloneIsRefused(t *testing.T) {
	k, root := host(t, 3, map[string]string{"half": "1-2", "other": "2-3", "all": "", "batch": "2-3"})
	neighbours := new(Neighbours)
	open := func(group string, force bool) *Frequency {
		f, err := Open(Config{Root: root, Path: group, Force: force, Neighbours: neighbours, open: k.open})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	refused := func(f *Frequency, words string) {
		t.Helper()
		for _, err := range []error{f.MayWrite(t.Context()), f.Write(t.Context(), trimtab.Units(1500))} {
			if !errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), words) {
				t.Errorf("error %v, want refused with %q", err, words)
			}
		}
		asked(t, k, "0=3000 2=3000 4=3000")
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	refused(open("half", false), "policy0 is also that of CPU 0, which is not in the cpuset of the group")
	refused(open("all", false), "runs on all CPUs of the host")
	other := open("other", false)
	if err := other.MayWrite(t.Context()); err != nil {
		t.Fatal(err)
	}
	refused(open("batch", true), "policy2, whose CPUs have one clock, is also of cgroup other")
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	forced := open("all", true)
	if err := forced.MayWrite(t.Context()); err != nil {
		t.Errorf("with force: %v", err)
	}
}

func TestAHostWithoutPoliciesSaysWhatIsMissing(t *testing.T) {
	k, root := host(t, 0, map[string]string{"batch": "0-3"})
	err := openOn(t, k, root, "batch").Probe(t.Context())
	if !errors.Is(err, trimtab.ErrUnsupported) || !strings.Contains(err.Error(), "no cpufreq driver") {
		t.Errorf("error %v", err)
	}
	if _, err := sum(k); !errors.Is(err, trimtab.ErrUnsupported) {
		t.Errorf("measured: %v", err)
	}
	if _, err := openFolder(filepath.Join(root, "none")); !errors.Is(err, trimtab.ErrUnsupported) {
		t.Errorf("folder: %v", err)
	}
}

func TestWhatSomebodyWantsAtLeastIsNotUndercut(t *testing.T) {
	k, root := host(t, 2, map[string]string{"batch": "0-1"})
	k.policies["policy0"].wantMin = 1_200_000
	f := openOn(t, k, root, "batch")
	set(t, f, trimtab.Units(500))
	asked(t, k, "0=1200 2=3000")
	reads(t, f, trimtab.Units(1200))
}

// The folder of the real kernel is read by the same code from plain files.
func TestAFolderOfFilesIsReadAsTheKernelsIs(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"affected_cpus": "0 1\n", "scaling_max_freq": "2400000\n", "scaling_min_freq": "800000\n", "cpuinfo_min_freq": "800000\n",
		"cpuinfo_max_freq": "3500000\n", "scaling_available_frequencies": "3400000 2400000 800000 \n", "scaling_boost_frequencies": "3500000 \n",
	} {
		if err := os.MkdirAll(filepath.Join(dir, "policy0"), 0o755); err != nil {
			t.Fatal(err)
		}
		put(t, dir, "policy0/"+name, text)
	}
	f, err := openFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := readAll(f, dir)
	if err != nil {
		t.Fatal(err)
	}
	p := all["policy0"]
	if got := fmt.Sprint(p.cpus, p.ceiling, p.least, p.most, p.table); got != "[0 1] 2400000 800000 3500000 [800000 2400000 3400000 3500000]" {
		t.Errorf("read %s", got)
	}
	if err := write(f, p, 800000); err != nil {
		t.Fatal(err)
	}
	if again, err := readPolicy(f, p); err != nil || again.ceiling != 800000 {
		t.Errorf("read %+v, %v", again, err)
	}
}

// On a host of many policies a look reads those of the group, and all of them again
// only when other CPUs are online.
func TestALookReadsFewFiles(t *testing.T) {
	k, root := host(t, 64, map[string]string{"batch": "2-5"})
	f, err := Open(Config{Root: root, Path: "batch", Neighbours: new(Neighbours), open: k.open})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	reads(t, f, trimtab.Unlimited())
	k.reads = 0
	reads(t, f, trimtab.Unlimited())
	if k.reads > 6 {
		t.Errorf("a look read %d files, want 3 of each of two policies", k.reads)
	}
	k.policies["policy2"].online = false
	set(t, f, trimtab.Units(1500))
	reads(t, f, trimtab.Units(1500))
	k.policies["policy2"].online = true
	set(t, f, trimtab.Units(1400))
	if got := k.asked(); !strings.Contains(got, " 2=1400 ") || !strings.Contains(got, " 4=1400 ") || strings.Count(got, "=3000") != 62 {
		t.Errorf("the kernel was asked for %s", got)
	}
}

// inForce is the ceilings that the kernel has.
func inForce(k *kernel) string {
	out := ""
	for _, name := range []string{"policy0", "policy2", "policy4"} {
		_, upper := k.policies[name].inForce()
		out += fmt.Sprint(" ", upper)
	}
	return out
}

// What Nearest says is what the kernel shows after the write, and the value that was
// read first brings back every policy as it was.
func TestNearestIsWhatTheKernelMakesOfIt(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		k, root := host(t, 3, map[string]string{"batch": "0-3"})
		for _, name := range []string{"policy0", "policy2"} {
			d := k.policies[name]
			d.max = rapid.Int64Range(1_000_000, 4_000_000).Draw(r, "max")
			d.want = rapid.Int64Range(800_000, 5_000_000).Draw(r, "want")
			if rapid.Bool().Draw(r, "table") {
				d.table = []int64{d.min, (d.min + d.max) / 2, d.max}
			}
		}
		f, err := Open(Config{Root: root, Path: "batch", open: k.open})
		if err != nil {
			r.Fatal(err)
		}
		defer f.Close()
		base, err := f.Read(t.Context())
		if err != nil {
			r.Fatal(err)
		}
		before := inForce(k)
		for range 3 {
			want := f.Nearest(trimtab.Units(rapid.Float64Range(0, 6000).Draw(r, "MHz")))
			if err := f.Write(t.Context(), want); err != nil {
				r.Fatal(err)
			}
			if got, err := f.Read(t.Context()); err != nil || got != want {
				r.Fatalf("wrote %v, read %v, %v (before %s, now %s)", want, got, err, before, inForce(k))
			}
		}
		if err := f.Write(t.Context(), base); err != nil {
			r.Fatal(err)
		}
		if got, err := f.Read(t.Context()); err != nil || got != base || inForce(k) != before {
			r.Fatalf("put back %v: read %v, %v, ceilings%s, and before%s", base, got, err, inForce(k), before)
		}
	})
}

func FuzzFilesOfCpufreqAreReadTotally(f *testing.F) {
	f.Add("0-3,7", "3000000\n")
	f.Add("0 1 2\n", "<unknown>")
	f.Add("65535-0", "-1")
	f.Fuzz(func(t *testing.T, list, frequency string) {
		if all, err := ParseCPUs(list); err == nil {
			for i, c := range all {
				if c < 0 || c >= 1<<14 || i > 0 && all[i-1] >= c {
					t.Fatalf("CPUs %q are read as %v", list, all)
				}
			}
		}
		if v, err := ParseFrequency(frequency); err == nil && (v < 1 || v > maxFrequency || trimtab.Units(float64(v)/1000).Validate() != nil) {
			t.Fatalf("frequency %q is read as %v", frequency, v)
		}
		if k, err := Reopen([]byte(list)); err == nil && k.Base.Validate() != nil {
			t.Fatalf("undo %q is read as %+v", list, k)
		}
	})
}

func TestAnAmountIsWholeKilohertz(t *testing.T) {
	for _, v := range []float64{0, 1e-9, 2345.6789, math.MaxFloat64} {
		if got := kilohertz(trimtab.Units(v)); got < 0 || got > maxFrequency {
			t.Errorf("%v MHz are %d kHz", v, got)
		}
	}
}
