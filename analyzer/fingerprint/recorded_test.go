package fingerprint

import (
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// recorded is the directory of hardware counters of programs alone and in pairs.
func recorded(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("TRIMTAB_DATA")
	if dir == "" {
		t.Skip("TRIMTAB_DATA is not set: no recorded counters")
	}
	return filepath.Join(dir, "perf-counters-corun")
}

// clock is the rate of wall_cycles.
const clock = 2.1e9

// readCounters reads a recording as samples, without those in which nothing ran.
func readCounters(t testing.TB, name string) []Sample {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(z).ReadAll()
	if err != nil || len(rows) < 2 {
		t.Fatalf("%s: %d rows, %v", name, len(rows), err)
	}
	column := map[string]int{}
	for i, h := range rows[0] {
		column[h] = i
	}
	var out []Sample
	for _, row := range rows[1:] {
		at := func(h string) float64 {
			v, err := strconv.ParseFloat(row[column[h]], 64)
			if err != nil {
				t.Fatalf("%s: %s: %v", name, h, err)
			}
			return v
		}
		wall, cycles, instructions := at("wall_cycles"), at("cycles"), at("instructions")
		s := Sample{Length: time.Duration(wall / clock * float64(time.Second)), Cores: Counted(cycles / wall)}
		if instructions > 0 {
			s.CPI = Counted(cycles / instructions)
			s.MPKI = Counted(1000 * at("l3miss") / instructions)
			s.References = Counted(1000 * at("l2miss") / instructions)
		}
		out = append(out, s)
	}
	return out
}

// play lets a workload observe samples, and returns its judgements and when each
// came. The recording begins a minute after what was played before.
func play(t testing.TB, w *Workload, samples []Sample, alone bool) (out []Judgement, after []time.Duration) {
	t.Helper()
	start := w.at.Add(time.Minute)
	if w.at.IsZero() {
		start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	var passed time.Duration
	for _, s := range samples {
		passed += s.Length
		j, ok, err := w.Observe(start.Add(passed), s, alone)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			out, after = append(out, j), append(after, passed)
		}
	}
	return out, after
}

// share is of how many of the judgements that were made something holds.
func share(all []Judgement, is func(Judgement) bool) float64 {
	n, of := 0, 0
	for _, j := range all {
		if j.CPI.Model == Unknown {
			continue
		}
		of++
		if is(j) {
			n++
		}
	}
	return float64(n) / float64(max(1, of))
}

// unknown is the share of windows that could not be judged.
func unknown(all []Judgement) float64 {
	n := 0
	for _, j := range all {
		if j.CPI.Model == Unknown {
			n++
		}
	}
	return float64(n) / float64(max(1, len(all)))
}

func anomalous(j Judgement) bool { return j.Anomaly }

// fromAnywhere is the share of starts, one for each window, from which an anomaly
// is found within 5 s.
func fromAnywhere(all []Judgement) float64 {
	found, of := 0, 0
	for i := range all {
		evidence := uint8(0)
		of++
		for _, j := range all[i:] {
			if j.At.Sub(all[i].At) > 5*time.Second-Window {
				break
			}
			evidence = evidence << 1 & (1<<Recent - 1)
			if j.CPI.Over {
				evidence |= 1
			}
			if bits.OnesCount8(evidence) >= Needed {
				found++
				break
			}
		}
	}
	return float64(found) / float64(max(1, of))
}

// split cuts samples into blocks of 5 s, and returns every other of them, and the
// others.
func split(samples []Sample) (even, odd []Sample) {
	var passed time.Duration
	for _, s := range samples {
		if int(passed/(5*time.Second))%2 == 0 {
			even = append(even, s)
		} else {
			odd = append(odd, s)
		}
		passed += s.Length
	}
	return even, odd
}

// heldOut learns one half and is tested on the other, both ways round: blocks of
// 5 s in turn. later learns the first half in time and is tested on the second,
// which has phases that the first had not.
func heldOut(t testing.TB, samples []Sample) (inTurn, later []Judgement) {
	even, odd := split(samples)
	tested := func(learned, held []Sample) []Judgement {
		w := New()
		play(t, w, learned, true)
		judged, _ := play(t, w, held, false)
		return judged
	}
	middle := len(samples) / 2
	return append(tested(even, odd), tested(odd, even)...), tested(samples[:middle], samples[middle:])
}

// solo are the programs that were recorded alone.
func solo(t testing.TB) []string {
	files, err := filepath.Glob(filepath.Join(recorded(t), "solo", "*.csv.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d solo recordings, %v", len(files), err)
	}
	return files
}

func program(file string) string {
	name, _, _ := strings.Cut(filepath.Base(file), ".")
	_, name, _ = strings.Cut(name, "-")
	return name
}

func TestAlarmsOnProgramsAloneAreAtMostOneInAHundred(t *testing.T) {
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "program\twindows\tgamma k\tKS\tchi-square ν\tKS\tjudged by\tunknown\tfalse alarms\twindows over\tpaper's rule\theld out\tunknown\tsecond half\tunknown")
	for _, file := range solo(t) {
		name, samples := program(file), readCounters(t, file)
		m := New()
		judged, _ := play(t, m, samples, true)
		alarms := share(judged, anomalous)
		over := share(judged, func(j Judgement) bool { return j.CPI.Over })
		inTurn, later := heldOut(t, samples)
		outside := share(inTurn, anomalous)
		cpi, _ := m.CPI().Fit()
		mpki, _ := m.MPKI().Fit()
		model := Phases
		if cpi.Holds {
			model = Model(Gamma)
		}
		fmt.Fprintf(w, "%s\t%d\t%.1f\t%.3f\t%.2f\t%.3f\t%s\t%.1f%%\t%.2f%%\t%.2f%%\t%.2f%%\t%.2f%%\t%.1f%%\t%.2f%%\t%.1f%%\n", name, len(judged), cpi.Distribution.Shape, cpi.KS,
			mpki.Distribution.Shape, mpki.KS, model, 100*unknown(judged), 100*alarms, 100*over, 100*cpi.FalseAlarms.Value(),
			100*outside, 100*unknown(inTurn), 100*share(later, anomalous), 100*unknown(later))
		if second := share(later, anomalous); alarms > 0.01 || outside > 0.01 || second > 0.01 {
			t.Errorf("%s: %.2f%% of the windows alone are anomalies, %.2f%% of those held out, %.2f%% in the second half", name, 100*alarms, 100*outside, 100*second)
		}
	}
	w.Flush()
	t.Log("\n" + table.String())
}

func TestEveryCoRunThatSlowsByMoreThan8PercentIsFoundWithin5Seconds(t *testing.T) {
	times := runtimes(t)
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "pair\tprogram\tslowdown\tfound after\tfrom anywhere\tanomalies\tunknown\tpaper's rule, found after\tover it")
	pairs, err := filepath.Glob(filepath.Join(recorded(t), "corun", "*", "*.csv.gz"))
	if err != nil || len(pairs) == 0 {
		t.Fatalf("%d pairs, %v", len(pairs), err)
	}
	for _, file := range solo(t) {
		name := program(file)
		m := New()
		play(t, m, readCounters(t, file), true)
		for _, pair := range pairs {
			if strings.TrimSuffix(filepath.Base(pair), ".csv.gz") != name {
				continue
			}
			judged, after := play(t, m, readCounters(t, pair), false)
			found, byPaper := time.Duration(0), time.Duration(0)
			fit, _ := m.CPI().Fit()
			over := func(j Judgement) bool { return j.CPI.Value > fit.Boundary }
			for i, j := range judged {
				if j.Anomaly && found == 0 {
					found = after[i]
				}
				if over(j) && byPaper == 0 {
					byPaper = after[i]
				}
			}
			both := filepath.Base(filepath.Dir(pair))
			slowdown := times[both+"/"+name]/times["/"+name] - 1
			say := func(d time.Duration) string {
				if d == 0 {
					return "never"
				}
				return fmt.Sprintf("%.1f s", d.Seconds())
			}
			fmt.Fprintf(w, "%s\t%s\t%.1f%%\t%s\t%.1f%%\t%.1f%%\t%.1f%%\t%s\t%.1f%%\n", both, name, 100*slowdown, say(found), 100*fromAnywhere(judged), 100*share(judged, anomalous),
				100*unknown(judged), say(byPaper), 100*share(judged, over))
			if slowdown > 0.08 && (found == 0 || found > 5*time.Second) {
				t.Errorf("%s beside %s: %.1f%% slower, found: %s", name, both, 100*slowdown, say(found))
			}
		}
	}
	w.Flush()
	t.Log("\n" + table.String())
}

// What is lost where the machine does not count accesses to the shared cache.
func TestWithoutReferencesASlowdownWithinASlowProgramIsNotFoundInTime(t *testing.T) {
	hide := func(samples []Sample) []Sample {
		for i := range samples {
			samples[i].References = Reading{}
		}
		return samples
	}
	dir := recorded(t)
	late := map[string]bool{}
	for _, file := range solo(t) {
		name, samples := program(file), hide(readCounters(t, file))
		m := New()
		judged, _ := play(t, m, samples, true)
		if alarms := share(judged, anomalous); alarms > 0.01 {
			t.Logf("%s: %.2f%% of the windows alone are anomalies", name, 100*alarms)
		}
		if pair := filepath.Join(dir, "corun", name+"+SP", name+".csv.gz"); fileExists(pair) {
			judged, after := play(t, m, hide(readCounters(t, pair)), false)
			first := slices.IndexFunc(judged, anomalous)
			late[name] = first < 0 || after[first] > 5*time.Second
			found := "never"
			if first >= 0 {
				found = after[first].Round(100 * time.Millisecond).String()
			}
			t.Logf("%s beside SP: %.1f%% of the windows are anomalies, found after %s", name, 100*share(judged, anomalous), found)
		}
	}
	if !late["canneal"] || late["freqmine"] {
		t.Errorf("found late: %v; docs/papers.md says canneal", late)
	}
}

func fileExists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// runtimes are in seconds, by pair/program.
func runtimes(t testing.TB) map[string]float64 {
	t.Helper()
	f, err := os.Open(filepath.Join(recorded(t), "runtimes.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, row := range rows[1:] {
		v, err := strconv.ParseFloat(row[3], 64)
		if err != nil {
			t.Fatal(err)
		}
		out[row[2]+"/"+row[1]] = v
	}
	return out
}
