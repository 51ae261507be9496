package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// supervised runs `trimtab workers` on a directory, with three workers at the
// start, until stop is called.
func (p *program) supervised(dir string) (stop func()) {
	p.Helper()
	cmd := exec.Command(os.Args[0], "workers", "--dir", dir, "--start", "3", "--", "sleep", "1000")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	stop = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	p.Cleanup(stop)
	return stop
}

func TestServicesThatMatchADirectoryAreInstancesAsTheyComeAndGo(t *testing.T) {
	t.Parallel()
	services := t.TempDir()
	at := func(name string) string { return filepath.Join(services, "hungry-"+name) }
	p := prepare(t, fixtureQuotas(t), "")
	p.text = strings.Replace(strings.ReplaceAll(p.text, "pool: {cpu: 1, unit: 0.01, step: 0.1}", "pool: {workers: 12}"),
		"knob: {cgroup: hungry, cpu: {min: 0.05, max: 0.9}}", fmt.Sprintf("knob: {process: {dir: %q}, workers: {min: 1, max: 4}}", at("*")), 1)
	before, _, _ := strings.Cut(p.text, "  - {name: modest")
	p.text = before + "analyzer: {report_interval: 200ms, partitions: 1}\n"
	p.start()
	// has waits until so many instances have so many workers together.
	has := func(instances int, workers float64) {
		t.Helper()
		p.until(fmt.Sprintf("%d instances", instances), func() error {
			e := p.explanation("hungry")
			if e.Instances != instances || (e.Total == nil) != (workers == 0) || e.Total != nil && e.Total.Value != workers {
				return fmt.Errorf("%+v, total %v", e, e.Total)
			}
			if n := p.sum("trimtab_actuator_instances"); n != float64(instances) {
				return fmt.Errorf("the actuator counts %v", n)
			}
			return nil
		})
	}
	has(0, 0)
	stop := p.supervised(at("1"))
	p.supervised(at("2"))
	p.supervised(filepath.Join(services, "other"))
	has(2, 6)
	p.supervised(at("3"))
	has(3, 9)
	stop()
	has(2, 6)
	if code, out := p.command("explain", "hungry"); code != exitDone || !strings.Contains(out, "2 instances") {
		t.Errorf("explain: code %d: %s", code, out)
	}
}
