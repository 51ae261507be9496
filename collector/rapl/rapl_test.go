package rapl_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/collector/poll/polltest"
	"github.com/trimtab/trimtab/collector/rapl"
)

// tree is the folders of a host with two packages and one policy.
func tree(t *testing.T) (dir string, r *rapl.Reader) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{
		"rapl/intel-rapl:0/name": "package-0\n", "rapl/intel-rapl:0/energy_uj": "1000000\n", "rapl/intel-rapl:0/max_energy_range_uj": "262143328850\n",
		"rapl/intel-rapl:0/constraint_0_name": "long_term\n", "rapl/intel-rapl:0/constraint_0_power_limit_uw": "125000000\n",
		"rapl/intel-rapl:0/constraint_1_name": "short_term\n", "rapl/intel-rapl:0/constraint_1_power_limit_uw": "250000000\n",
		"rapl/intel-rapl:0/intel-rapl:0:0/name": "core\n", "rapl/intel-rapl:0/intel-rapl:0:0/energy_uj": "9\n",
		"rapl/intel-rapl:1/name": "package-1\n", "rapl/intel-rapl:1/energy_uj": "262143000000\n", "rapl/intel-rapl:1/max_energy_range_uj": "262143328850\n",
		"rapl/intel-rapl:1/constraint_0_name": "short_term\n", "rapl/intel-rapl:1/constraint_0_power_limit_uw": "1\n",
		"rapl/intel-rapl:1/constraint_1_name": "long_term\n", "rapl/intel-rapl:1/constraint_1_power_limit_uw": "95000000\n",
		"rapl/intel-rapl:2/name": "psys\n", "rapl/intel-rapl:2/energy_uj": "5\n",
		"cpufreq/policy0/affected_cpus": "0 1\n", "cpufreq/policy0/scaling_cur_freq": "2399998\n",
		"cpufreq/policy0/cpuinfo_max_freq": "3700000\n", "cpufreq/policy0/base_frequency": "2600000\n",
	} {
		put(t, dir, name, text)
	}
	return dir, &rapl.Reader{Zones: filepath.Join(dir, "rapl"), Policies: filepath.Join(dir, "cpufreq")}
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-6*(1+math.Abs(b)) }

// Both packages count, neither their parts nor the platform, and the counter of the
// second begins anew in between.
func TestPowerIsTheEnergyOfAllPackagesOverTime(t *testing.T) {
	dir, r := tree(t)
	before := r.Read()
	put(t, dir, "rapl/intel-rapl:0/energy_uj", "201000000\n")
	put(t, dir, "rapl/intel-rapl:1/energy_uj", "99671150\n")
	after := r.Read()
	after.At = before.At + 2*time.Second
	draws, may, err := rapl.Power(before, after)
	// 200 J, and 0.32885 J up to the end and 99.67115 J from 0.
	if err != nil || !near(draws, (200+100)/2) || !near(may, 220) {
		t.Errorf("draws %v W of %v W, %v, want 150 W of 220 W", draws, may, err)
	}
	if p := after.Policies; len(p) != 1 || p[0].MHz != 2399.998 || p[0].CPUs != "0 1" || p[0].Most != 3700 || p[0].Base != 2600 {
		t.Errorf("policies %+v", p)
	}
}

// What was drawn is the same wherever the counter begins.
func TestACounterThatBeginsAnewLosesNothing(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		all := rapid.Uint64Range(1, 1<<40).Draw(r, "range")
		begin := rapid.Uint64Range(0, all).Draw(r, "begin")
		used := rapid.Uint64Range(0, all-1).Draw(r, "used")
		end := begin + used
		if end > all {
			end -= all
		}
		got, err := rapl.Draws(rapl.Zone{Energy: begin, Range: all}, rapl.Zone{Energy: end, Range: all}, time.Second)
		if err != nil || !near(got, float64(used)/1e6) {
			r.Fatalf("from %d to %d of %d: %v W, %v, want %v W", begin, end, all, got, err, float64(used)/1e6)
		}
	})
}

// bySample prints samples as "quantity instance = value or reason".
func bySample(all []*trimtab.Sample) map[string]string {
	out := map[string]string{}
	for _, s := range all {
		v := s.Missing
		if v == "" {
			v = fmt.Sprint(s.Value)
		}
		out[string(s.Quantity)+" "+s.Instance] = v
	}
	return out
}

func TestWhatAHostCannotTellIsMissingWithTheReason(t *testing.T) {
	none := rapl.Reader{Zones: filepath.Join(t.TempDir(), "none"), Policies: filepath.Join(t.TempDir(), "none")}
	nothing := none.Read()
	if got := fmt.Sprint(bySample(rapl.Samples(nil, &nothing))); got != "map[clock :not on this host power :not on this host power_limit :not on this host]" {
		t.Errorf("a virtual machine: %s", got)
	}
	if _, _, err := rapl.Power(nothing, nothing); !errors.Is(err, trimtab.ErrUnsupported) {
		t.Errorf("power of a virtual machine: %v", err)
	}

	dir, r := tree(t)
	first := r.Read()
	got := bySample(rapl.Samples(nil, &first))
	if got["power package-0"] != "first reading" || got["power_limit package-1"] != "95" || got["clock policy0"] != "2399.998" {
		t.Errorf("the first reading: %v", got)
	}
	second := r.Read()
	second.Zones[1].Err = fmt.Errorf("read: %w", os.ErrPermission) // Linux 5.10, without root
	second.Zones[0].Limit = 0
	got = bySample(rapl.Samples(&first, &second))
	if got["power package-1"] != "permission denied" || got["power_limit package-0"] != "no limit told" {
		t.Errorf("without the right: %v", got)
	}
	for _, text := range []string{"", "-1\n", "9999999999999999\n"} {
		put(t, dir, "rapl/intel-rapl:0/energy_uj", text)
		odd := r.Read()
		odd.At += time.Second
		if got := bySample(rapl.Samples(&first, &odd)); got["power package-0"] != "unreadable" {
			t.Errorf("energy %q: %v", text, got)
		}
	}
}

func TestSamplesAreOfTheHost(t *testing.T) {
	_, r := tree(t)
	p := polltest.Open(t, rapl.Source(*r), poll.Config{})
	for range 3 {
		if got := p.Next(); len(got) != 5 || got[".host/h/package-0 power_limit"] != 125.0 {
			t.Errorf("%v", got)
		}
	}
}

func FuzzNumbersAreReadTotally(f *testing.F) {
	f.Add("262143328850\n", uint64(3), uint64(5))
	f.Add("-1", uint64(0), uint64(0))
	f.Fuzz(func(t *testing.T, text string, before, all uint64) {
		v, err := rapl.ParseNumber(text)
		if err != nil {
			return
		}
		w, err := rapl.Draws(rapl.Zone{Energy: before, Range: all}, rapl.Zone{Energy: v, Range: all}, time.Second)
		if err == nil && !(w >= 0 && !math.IsInf(w, 0)) {
			t.Fatalf("from %d to %d of %d: %v W", before, v, all, w)
		}
	})
}
