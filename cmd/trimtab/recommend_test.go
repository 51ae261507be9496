package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/console/view"
)

// foreign is a site as most are: hungry is a plain systemd unit without
// Delegate=yes and without a quota, modest a group whose file belongs to
// somebody else, and trimtab runs as a user who owns neither.
func foreign(t *testing.T, mode trimtab.Mode) *program {
	t.Helper()
	q := fixtureQuotas(t)
	unit := filepath.Join(q.root, "shop.slice", "hungry.service")
	err := errors.Join(os.MkdirAll(filepath.Dir(unit), 0o755), os.Mkdir(filepath.Join(q.root, "init.scope"), 0o755), os.Rename(filepath.Join(q.root, "hungry"), unit),
		os.WriteFile(filepath.Join(unit, "cpu.max"), []byte("90000 100000\n"), 0o644),
		os.Chmod(filepath.Join(q.root, "modest", "cpu.max"), 0o444))
	if err != nil {
		t.Fatal(err)
	}
	read := q.read
	q.read = func(name string) float64 {
		if name == "hungry" {
			return 0.9
		}
		return read(name)
	}
	p := prepare(t, q, "")
	p.text = strings.ReplaceAll(strings.ReplaceAll(p.text, "cgroup: hungry", "cgroup: shop.slice/hungry.service"), "mode: act", "mode: "+string(mode))
	p.asNobody()
	return p
}

// asNobody makes the program one without root; a test without root is that
// already.
func (p *program) asNobody() {
	p.Helper()
	if os.Geteuid() != 0 {
		return
	}
	const nobody = 65534
	p.self, p.as = filepath.Join(p.dir, "trimtab.test"), &syscall.Credential{Uid: nobody, Gid: nobody}
	err := errors.Join(os.Link(os.Args[0], p.self), os.Chown(p.dir, nobody, nobody))
	for _, dir := range []string{p.dir, p.q.root} {
		err = errors.Join(err, os.Chmod(filepath.Dir(dir), 0o755))
	}
	if err != nil {
		p.Fatal(err)
	}
}

// untouched compares both files with what they were.
func (p *program) untouched() {
	p.Helper()
	for name, want := range map[string]string{"shop.slice/hungry.service": "90000 100000\n", "modest": "50000 100000\n"} {
		if b, err := os.ReadFile(filepath.Join(p.q.root, name, "cpu.max")); err != nil || string(b) != want {
			p.Errorf("%s holds %q, %v: it had %q", name, b, err, want)
		}
	}
}

func TestRecommendNeedsNoKnobThatItMayWriteAndApplyIsRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	p := foreign(t, trimtab.Recommend)
	p.start()
	p.serve()
	var plan trimtab.Plan
	p.until("a recommendation for both", func() error {
		_, body, err := p.get("/api/v1/plan")
		plan = trimtab.Plan{}
		if err != nil || json.Unmarshal([]byte(body), &plan) != nil {
			return fmt.Errorf("%s: %w", body, err)
		}
		for _, a := range plan.Actions {
			if a.Workload == "hungry" && a.Mode == trimtab.Recommend {
				return nil
			}
		}
		return fmt.Errorf("plan %s", body)
	})
	for name, why := range map[string]string{"hungry": "Delegate=yes", "modest": "permission denied"} {
		var e view.Explanation
		if _, body, err := p.get("/api/v1/workloads/" + name); err != nil || json.Unmarshal([]byte(body), &e) != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if !strings.Contains(e.ReadOnly, why) || strings.Contains(e.State, "knob") || e.Allocation == nil {
			t.Errorf("%s: %+v", name, e)
		}
		if code, out := p.command("explain", name); code != exitDone || !strings.Contains(out, "only advice") || !strings.Contains(out, why) {
			t.Errorf("explain %s: code %d: %s", name, code, out)
		}
	}
	code, out := p.command("apply", plan.ID())
	if code != exitError || !strings.Contains(out, "a knob may not be written") || !strings.Contains(out, "Delegate=yes") {
		t.Errorf("apply: code %d: %s", code, out)
	}
	p.untouched()
	p.stop()
	p.untouched()
}

func TestActOnAKnobThatMayNotBeWrittenHoldsItWithTheReason(t *testing.T) {
	t.Parallel()
	p := foreign(t, trimtab.Act)
	p.start()
	p.serve()
	for name, why := range map[string]string{"hungry": "Delegate=yes", "modest": "permission denied"} {
		p.until(name+" to be held", func() error {
			_, body, err := p.get("/api/v1/plan")
			var plan trimtab.Plan
			if err == nil {
				err = json.Unmarshal([]byte(body), &plan)
			}
			if err != nil || len(plan.Actions) > 0 || !strings.Contains(plan.Held[name].Text, why) {
				return fmt.Errorf("%s: %w", body, err)
			}
			return nil
		})
		if code, out := p.command("explain", name); code != exitDone || !strings.Contains(out, "knob: ") || !strings.Contains(out, why) || !strings.Contains(out, "since") {
			t.Errorf("explain %s: code %d: %s", name, code, out)
		}
	}
	p.untouched()
}

func TestAProcessKnobWhoseDirectoryIsMissingHoldsItsWorkloadUntilItAppears(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run", "thumbs")
	p := prepare(t, fixtureQuotas(t), "")
	p.text = strings.Replace(strings.ReplaceAll(p.text, "pool: {cpu: 1, unit: 0.01, step: 0.1}", "pool: {workers: 8}"),
		"knob: {cgroup: hungry, cpu: {min: 0.05, max: 0.9}}", fmt.Sprintf("knob: {process: {dir: %q}, workers: {min: 1, max: 4}}", dir), 1)
	before, _, _ := strings.Cut(p.text, "  - {name: modest")
	p.text = before + "analyzer: {report_interval: 200ms, partitions: 1}\n"
	p.start()
	state := func() (e view.Explanation) {
		if _, body, err := p.get("/api/v1/workloads/hungry"); err != nil || json.Unmarshal([]byte(body), &e) != nil {
			t.Fatalf("%s: %v", body, err)
		}
		return e
	}
	p.until("the reason", func() error {
		if e := state(); !strings.Contains(e.State, "knob: ") || !strings.Contains(e.State, dir) || e.Since.IsZero() || e.Allocation != nil {
			return fmt.Errorf("%+v", e)
		}
		return nil
	})
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	self := fmt.Sprintf(`{"supervisor": %d, "want": 3}`, os.Getpid())
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "workers.current"), []byte(self), 0o644), os.WriteFile(filepath.Join(dir, "workers.max"), []byte("3\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	p.until("its number", func() error {
		if e := state(); strings.Contains(e.State, "knob: ") || e.Allocation == nil || e.Allocation.Value != 3 {
			return fmt.Errorf("%+v", e)
		}
		return nil
	})
}
