// Package trial gives a test its number of cases and its seed, and counts what
// it tried: a few cases in CI, all that the promise states under `make torture`.
//
//	tr := trial.Start(t, 10)
//	for range tr.N {
//		began := time.Now()
//		... tr.Rand ...
//		tr.Took(time.Since(began))
//	}
//
// lab/torture sets the environment variables that this package reads, and
// prints what it reports. It judges nothing itself.
package trial

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

const (
	// CasesEnv is the number of cases to try, instead of the test's own.
	CasesEnv = "TRIMTAB_CASES"
	// SeedEnv is the seed to use, instead of a random one.
	SeedEnv = "TEST_SEED"
	// ReportEnv names the file to which reports are appended.
	ReportEnv = "TRIMTAB_TRIALS"
)

// Report has the counts of a trial so far. The last one of a test counts.
type Report struct {
	Test     string
	Seed     uint64
	Planned  int
	Cases    int
	Failures int
	// Took are the durations of cases, in seconds: of all once the test has ended, empty before.
	Took  []float64 `json:",omitempty"`
	Notes []string  `json:",omitempty"`
}

// A Trial is one run of a test over many cases. Its methods may be called from
// several goroutines; Rand may not be used by several.
type Trial struct {
	// N is the number of cases to try.
	N    int
	Seed uint64
	Rand *rand.Rand

	t          testing.TB
	mu         sync.Mutex
	report     Report
	reportedAt time.Time
}

// Start begins a trial with a number of cases, which the environment may override. The seed is
// printed.
func Start(t testing.TB, cases int) *Trial {
	t.Helper()
	tr := &Trial{N: Cases(t, cases), Seed: rand.Uint64(), t: t}
	if s := os.Getenv(SeedEnv); s != "" {
		var err error
		if tr.Seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("read %s: %v", SeedEnv, err)
		}
	}
	t.Logf("%s=%d", SeedEnv, tr.Seed)
	tr.Rand = rand.New(rand.NewPCG(tr.Seed, 0))
	tr.report = Report{Test: t.Name(), Seed: tr.Seed, Planned: tr.N}
	t.Cleanup(tr.end)
	return tr
}

// Cases returns the number of cases that the environment asks for, or otherwise.
func Cases(t testing.TB, otherwise int) int {
	t.Helper()
	s := os.Getenv(CasesEnv)
	if s == "" {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		t.Fatalf("read %s: want a number of at least 1, got %q", CasesEnv, s)
	}
	return n
}

// Case counts one case that was tried.
func (tr *Trial) Case() { tr.count(nil) }

// Took counts one case that was tried, and how long it took.
func (tr *Trial) Took(d time.Duration) { tr.count(&d) }

func (tr *Trial) count(d *time.Duration) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.report.Cases++
	if d != nil {
		tr.report.Took = append(tr.report.Took, d.Seconds())
	}
	if time.Since(tr.reportedAt) > time.Second {
		progress := tr.report
		progress.Took = nil
		tr.save(progress)
	}
}

// Failf counts a case that failed, and fails the test.
func (tr *Trial) Failf(format string, args ...any) {
	tr.t.Helper()
	tr.mu.Lock()
	tr.report.Failures++
	tr.mu.Unlock()
	tr.t.Errorf(format, args...)
}

// Notef adds a figure to the printed results of the trial.
func (tr *Trial) Notef(format string, args ...any) {
	tr.t.Helper()
	s := fmt.Sprintf(format, args...)
	tr.t.Log(s)
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.report.Notes = append(tr.report.Notes, s)
}

func (tr *Trial) end() {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	r := tr.report
	if tr.t.Failed() && r.Failures == 0 {
		r.Failures = 1
	}
	tr.save(r)
	text := fmt.Sprintf("%d of %d cases, %d failures", r.Cases, r.Planned, r.Failures)
	if len(r.Took) > 0 {
		text += fmt.Sprintf("; median %.3f s, p99 %.3f s, worst %.3f s", Quantile(r.Took, 0.5), Quantile(r.Took, 0.99), Quantile(r.Took, 1))
	}
	tr.t.Log(text)
}

// report appends a report to the requested file.
func (tr *Trial) save(r Report) {
	tr.reportedAt = time.Now()
	if name := os.Getenv(ReportEnv); name != "" {
		if err := r.write(name); err != nil {
			tr.t.Error(err)
		}
	}
}

func (r *Report) write(name string) error {
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open file of reports: %w", err)
	}
	defer f.Close()
	if _, err := f.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// Quantile returns the smallest value that at least a fraction q of all do not exceed, and 0 if
// there is none.
func Quantile(all []float64, q float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	at := int(q*float64(len(all))+0.9999999) - 1
	return sorted[min(max(at, 0), len(all)-1)]
}
