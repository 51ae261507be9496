package rose

import (
	"compress/gzip"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/lab"
	"github.com/trimtab/trimtab/planner/machines"
	"pgregory.net/rapid"
)

// played plays a world that is right.
func played(t interface{ Fatal(...any) }, w *World, r Run) *Figures {
	f, _, err := w.Play(r)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// recordedUsage is that of the 11 machines.
func recordedUsage(t *testing.T) *Usage {
	t.Helper()
	dir := os.Getenv("TRIMTAB_DATA")
	if dir == "" {
		t.Skip("TRIMTAB_DATA is not set: it names the directory with alibaba2018-machine-usage")
	}
	f, err := os.Open(filepath.Join(dir, "alibaba2018-machine-usage", "machine_usage_shared.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	u, err := ReadUsage(z, "machine_usage_shared.csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestEveryTaskEndsOnceWhateverThePolicy(t *testing.T) {
	t.Parallel()
	usage := BuiltInUsage()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 6).Draw(t, "machines")
		w := Batch(n, usage)
		if rapid.Bool().Draw(t, "LRAs") {
			w = Mixed(n, usage)
		}
		w.Jobs = w.Jobs[:rapid.IntRange(1, 30).Draw(t, "jobs")]
		w.Window, w.Queue = rapid.IntRange(1, 30).Draw(t, "window"), rapid.IntRange(1, 20).Draw(t, "queue")
		w.Lag = rapid.Bool().Draw(t, "lag")
		r := Run{Seed: rapid.Uint64().Draw(t, "seed"), RP: rapid.Bool().Draw(t, "RP"), Reschedule: rapid.Bool().Draw(t, "reschedule"),
			Scheme: rapid.SampledFrom([]Scheme{Native, Centralised, Distributed}).Draw(t, "scheme"),
			Policy: rapid.SampledFrom([]machines.Policy{machines.RB, machines.SLB, machines.QLB, machines.MMF}).Draw(t, "policy")}
		f := played(t, w, r)
		if ended := f.Regular + f.Upgraded + f.Succeeded; ended != float64(w.tasks()) {
			t.Fatalf("%v tasks ended of %d: %+v", ended, w.tasks(), f)
		}
		if f.Started != f.Succeeded+f.Evicted+f.Upgraded {
			t.Fatalf("%v speculative tasks started, %v ended: %+v", f.Started, f.Succeeded+f.Evicted+f.Upgraded, f)
		}
		if f.CPU < 0 || f.CPU > 1 || f.Disk < 0 || f.Disk > 1 {
			t.Fatalf("used %v of the CPUs, %v of the disks", f.CPU, f.Disk)
		}
	})
}

func TestARunIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	x := &Experiment{Usage: BuiltInUsage(), Machines: 4, Parts: []string{BatchOnly, Beside}, Policies: []string{None, ROSE}, Modes: Modes(), Frame: lab.Frame{Seeds: 2, First: 1}}
	a, err := x.Play()
	if err != nil {
		t.Fatal(err)
	}
	x.Runner = func(n int, work func(int)) {
		for i := range n {
			work(n - 1 - i)
		}
	}
	b, err := x.Play()
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a, b) {
		t.Error("two runs of the same seeds differ")
	}
}

func TestTheJobsHaveAsManyTasksAsThePaperStates(t *testing.T) {
	t.Parallel()
	w := Batch(210, BuiltInUsage())
	if len(w.Jobs) != 60 || w.tasks() != 214_880 {
		t.Errorf("%d jobs, %d tasks, want 60 and 214,880", len(w.Jobs), w.tasks())
	}
}

func TestEventsComeInTheOrderOfTheirTimes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var a agenda
		var times []float64
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			at := float64(rapid.IntRange(0, 20).Draw(t, "at"))
			a.push(event{at: at, who: int32(len(times))})
			times = append(times, at)
		}
		slices.Sort(times)
		for i, want := range times {
			if got := a.pop(); got.at != want {
				t.Fatalf("event %d is at %v, want %v", i, got.at, want)
			}
		}
	})
}

func TestAFewMachinesShowTheOrderOfThePolicies(t *testing.T) {
	t.Parallel()
	w := Batch(42, BuiltInUsage())
	none, rb := played(t, w, Run{Scheme: Native, Seed: 1}), played(t, w, Run{Scheme: Distributed, Policy: machines.RB, Seed: 1})
	rose := played(t, w, Run{Scheme: Distributed, Policy: machines.MMF, Seed: 1})
	if !(rose.Makespan < 0.85*rb.Makespan && rb.Makespan < none.Makespan && rose.Speculative > 1.4*rb.Speculative) {
		t.Errorf("makespans of none, RB, ROSE: %.0f, %.0f, %.0f s; speculative tasks at once %.0f, %.0f", none.Makespan, rb.Makespan, rose.Makespan, rb.Speculative, rose.Speculative)
	}
}

func TestTheModeRPProtectsTheLRAs(t *testing.T) {
	t.Parallel()
	w := Mixed(21, BuiltInUsage())
	up, rp := played(t, w, Run{Scheme: Distributed, Policy: machines.MMF, Seed: 1}), played(t, w, Run{Scheme: Distributed, Policy: machines.MMF, Seed: 1, RP: true})
	if !(rp.LRA.P95[2] <= 1.054 && up.LRA.P95[2] > 1.5 && rp.LRA.EPS[2] > up.LRA.EPS[2]) {
		t.Errorf("p95 %v under UP, %v under RP; events %v and %v", up.LRA.P95, rp.LRA.P95, up.LRA.EPS, rp.LRA.EPS)
	}
}

func TestHeartbeatsOvertakeTheCentralisedScheme(t *testing.T) {
	t.Parallel()
	w := Yarn(BuiltInUsage())
	native, central := played(t, w, Run{Scheme: Native, Seed: 1}), played(t, w, Run{Scheme: Centralised, Seed: 1})
	spread := played(t, w, Run{Scheme: Distributed, Policy: machines.MMF, Seed: 1})
	if !(spread.Started >= 8*central.Started && spread.Makespan < native.Makespan) {
		t.Errorf("started %v centralised, %v distributed; makespans %v native, %v distributed", central.Started, spread.Started, native.Makespan, spread.Makespan)
	}
}

func TestWithTheRecordedUseThePapersEffectsAreReached(t *testing.T) {
	t.Parallel()
	x := &Experiment{Usage: recordedUsage(t), Machines: 210, Parts: []string{Yarns, BatchOnly}, Policies: []string{RB, ROSE}, Frame: lab.Frame{Seeds: 2, First: 1}}
	rows, err := x.Play()
	if err != nil {
		t.Fatal(err)
	}
	targets := Targets(rows)
	if len(targets) != 3 {
		t.Errorf("%d targets, want 3", len(targets))
	}
	for _, target := range targets {
		if !target.Held {
			t.Errorf("%+v", target)
		}
	}
}

func TestTheBuiltInUsageHasTheMomentsOfTheRecording(t *testing.T) {
	t.Parallel()
	built, recorded := BuiltInUsage(), recordedUsage(t)
	c1, d1 := built.mean()
	c2, d2 := recorded.mean()
	if math.Abs(c1-c2) > 2 || math.Abs(d1-d2) > 1 || len(built.Courses) != len(recorded.Courses) {
		t.Errorf("means %v and %v built in, %v and %v recorded; %d and %d machines", c1, d1, c2, d2, len(built.Courses), len(recorded.Courses))
	}
}

func TestTheP95OfOneRateIsThatOfAnExponential(t *testing.T) {
	t.Parallel()
	f := &felt{n: 10}
	bin := rateBin((1 - busyMongo) / 2)
	f.rates[bin] = 10
	want := rateOf(rateBin(1-busyMongo)) / rateOf(bin)
	if got := f.p95(); math.Abs(got-want) > 1e-6 {
		t.Errorf("p95 %v, want %v times that alone", got, want)
	}
}

func TestAMistakeInUsageIsToldWithItsLine(t *testing.T) {
	t.Parallel()
	good := "m_1,10,41,92,,,43,33,5\n"
	for _, c := range []struct{ text, want string }{
		{good + "m_1,20,41\n", "usage.csv:2"}, {good + "m_1,never,41,92,,,43,33,5\n", "usage.csv:2"}, {good + "m_1,-1,41,92,,,43,33,5\n", "usage.csv:2"},
		{"", "no machine"}, {"m_1,10,,92,,,43,33,-1\n", "no machine"}, {"m_1,NaN,1,,,,,,1\n", "usage.csv:1"},
	} {
		_, err := ReadUsage(strings.NewReader(c.text), "usage.csv")
		if err == nil || !errors.Is(err, trimtab.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want %q", c.text, err, c.want)
		}
	}
}

func TestAMissingValueOfUsageHoldsWhatWasBefore(t *testing.T) {
	t.Parallel()
	u, err := ReadUsage(strings.NewReader("m_1,0,41,92,,,43,33,5\nm_1,60,,92,,,43,33,101\nm_1,120,43,92,,,43,33,7\n"), "usage.csv")
	if err != nil {
		t.Fatal(err)
	}
	if want := []float64{41, 41, 43}; !slices.Equal(u.Courses[0].CPU, want) {
		t.Errorf("CPU %v, want %v", u.Courses[0].CPU, want)
	}
	if want := []float64{5, 5, 7}; !slices.Equal(u.Courses[0].Disk, want) {
		t.Errorf("disk %v, want %v", u.Courses[0].Disk, want)
	}
}

func TestWhatIsUnknownIsRefused(t *testing.T) {
	t.Parallel()
	for _, change := range []func(*Experiment){
		func(x *Experiment) { x.Policies = []string{"FIFO"} }, func(x *Experiment) { x.Modes = []string{"XP"} }, func(x *Experiment) { x.Parts = []string{"table 9"} },
		func(x *Experiment) { x.Seeds = 0 }, func(x *Experiment) { x.Machines = 0 }, func(x *Experiment) { x.Usage = nil },
	} {
		x := &Experiment{Usage: BuiltInUsage(), Machines: 2, Frame: lab.Frame{Seeds: 1}}
		change(x)
		if _, err := x.Play(); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("error %v, want ErrInvalid", err)
		}
	}
}
