package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/trimtab/trimtab/internal/trial"
)

// result is what came of the tests of one promise.
type result struct {
	cases, failures int
	// took are the durations of cases, in seconds.
	took []float64
	// not is what was not tried, with the reason.
	not []string
	// notes are figures; logs are those of tests that failed.
	notes, logs []string
	time        time.Duration
}

func (r *result) add(s result) {
	r.cases += s.cases
	r.failures += s.failures
	r.took = append(r.took, s.took...)
	r.not = append(r.not, s.not...)
	r.notes = append(r.notes, s.notes...)
	r.logs = append(r.logs, s.logs...)
}

// try runs the tests of a promise, one after the other.
func (o *options) try(ctx context.Context, p promise, out *table) (r result) {
	began := time.Now()
	for _, t := range p.tests {
		s, err := o.runTest(ctx, p, t, out)
		if err != nil {
			s.failures = max(1, s.failures)
			s.notes = append(s.notes, err.Error())
		}
		r.add(s)
	}
	r.not = append(r.not, p.not...)
	r.time = time.Since(began)
	return r
}

// runTest runs one test in a process of its own.
func (o *options) runTest(ctx context.Context, p promise, t test, out *table) (r result, err error) {
	base := filepath.Join(o.logs, strings.ReplaceAll(p.id, "/", "-")+"-"+t.name)
	log, reports := base+".log", base+".trials"
	f, err := os.Create(log)
	if err != nil {
		return r, fmt.Errorf("make log: %w", err)
	}
	defer f.Close()
	if err := os.Remove(reports); err != nil && !errors.Is(err, os.ErrNotExist) {
		return r, fmt.Errorf("remove old report: %w", err)
	}
	args := []string{"test", "-count=1", "-v", "-timeout=0", "-tags=integration", "-run=^" + t.name + "$", t.pkg}
	if t.rapid {
		args = append(args, fmt.Sprintf("-rapid.checks=%d", t.size(o.scale)), fmt.Sprintf("-rapid.seed=%d", max(1, o.seed)))
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = time.Minute
	cmd.Stdout, cmd.Stderr = f, f
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", trial.SeedEnv, o.seed), trial.ReportEnv+"="+reports)
	if n := t.size(o.scale); n > 0 && !t.rapid {
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", trial.CasesEnv, n))
	}
	if err := cmd.Start(); err != nil {
		return r, fmt.Errorf("start go: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for began := time.Now(); ; {
		select {
		case <-tick.C:
			out.progress(p, t, reported(reports), t.size(o.scale), time.Since(began))
			continue
		case err = <-ended:
		}
		break
	}
	text, readErr := os.ReadFile(log)
	if readErr != nil {
		return r, fmt.Errorf("read log: %w", readErr)
	}
	r = judge(t, text, reported(reports), err)
	if r.failures > 0 {
		r.logs = append(r.logs, log)
	}
	return r, ctx.Err()
}

// reported reads the last report of every trial in a file.
func reported(file string) []trial.Report {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil // no test has reported yet
	}
	last := map[string]trial.Report{}
	for line := range bytes.Lines(b) {
		var r trial.Report
		if json.Unmarshal(line, &r) == nil { // a half-written line will be read again
			last[r.Test] = r
		}
	}
	return slices.Collect(maps.Values(last))
}

// judge counts what a test tried: the cases of its trials, or those of rapid,
// or else its parts that have no parts of their own.
func judge(t test, text []byte, reports []trial.Report, ended error) (r result) {
	rapidLine := regexp.MustCompile(`\[rapid\] (?:OK, passed|failed after) (\d+) tests`)
	endLine := regexp.MustCompile(`^\s*--- (PASS|FAIL|SKIP): (\S+) \(`)
	ends, why := map[string]string{}, map[string]string{}
	said, rapid := "", 0
	s := bufio.NewScanner(bytes.NewReader(text))
	s.Buffer(nil, len(text)+1)
	for s.Scan() {
		line := s.Text()
		if m := rapidLine.FindStringSubmatch(line); m != nil {
			n, _ := strconv.Atoi(m[1]) // digits
			rapid += n
		}
		if m := endLine.FindStringSubmatch(line); m != nil {
			ends[m[2]], why[m[2]] = m[1], said
			continue
		}
		if !strings.HasPrefix(line, "===") {
			_, said, _ = strings.Cut(line, ".go:")
			_, said, _ = strings.Cut(said, ": ")
		}
	}
	skipped := false
	for _, name := range slices.Sorted(maps.Keys(ends)) {
		leaf := true
		for other := range ends {
			leaf = leaf && !strings.HasPrefix(other, name+"/")
		}
		if !leaf {
			continue
		}
		switch ends[name] {
		case "SKIP":
			skipped = true
			r.not = append(r.not, fmt.Sprintf("%s: %s", name, why[name]))
		case "FAIL":
			r.failures++
			r.cases++
		default:
			r.cases++
		}
	}
	switch {
	case rapid > 0:
		r.cases = rapid
	case len(reports) > 0:
		failed := 0
		r.cases = 0
		for _, one := range reports {
			r.cases += one.Cases
			failed += one.Failures
			r.took = append(r.took, one.Took...)
			r.notes = append(r.notes, one.Notes...)
			if one.Cases < one.Planned {
				r.not = append(r.not, fmt.Sprintf("%d of the %d cases of %s", one.Planned-one.Cases, one.Planned, one.Test))
			}
		}
		r.failures = max(r.failures, failed)
	case len(ends) == 0 && ended == nil:
		r.not = append(r.not, t.name+": there is no such test")
		r.failures++
	}
	if ended != nil {
		r.failures = max(1, r.failures)
	}
	if t.full > 0 && r.cases < t.size(1) && !skipped {
		r.notes = append(r.notes, fmt.Sprintf("%s: %d cases, in full size %d", t.name, r.cases, t.full))
	}
	return r
}
