package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab/config"
)

const application = `
pool: {cpu: 8}
objective: end-to-end
planning: {entry: front}
workloads:
  - name: front
    slo: {latency: 200ms, fraction: 0.99}
    knob: {cgroup: front, cpu: {min: 1}}
  - name: db
    knob: {cgroup: db, cpu: {min: 1}}
  - name: seen
    mode: off
`

func TestAnApplicationHasTheSLOOfItsEntry(t *testing.T) {
	c := parse(t, application)
	if c.Application() == nil || c.Application().Name != "front" || len(c.Warnings) > 0 {
		t.Fatalf("entry %v, warnings %v", c.Application(), c.Warnings)
	}
	for i, want := range []float64{1, 1, 0} {
		if w := &c.Workloads[i]; w.SLO.Target() != want {
			t.Errorf("%s: target %v, want %v", w.Name, w.SLO.Target(), want)
		}
	}
	if db := c.Workloads[1].SLO; db.Latency != 200*time.Millisecond || db.Fraction != 0.99 || db.Entry != "front" {
		t.Errorf("db: %+v", db)
	}
	if parse(t, "objective: njc").Application() != nil {
		t.Error("njc has an entry")
	}
}

func TestWhatDoesNotCountEndToEndIsSaid(t *testing.T) {
	for text, want := range map[string]string{
		strings.Replace(application, "- name: db\n", "- name: db\n    slo: {latency: 1s, fraction: 0.9}\n", 1): `the slo of "db" does not count`,
		"planning: {entry: a}\nobjective: social\nworkloads:\n  - {name: a, mode: off}\n":                      "objective social has no entry",
	} {
		c := parse(t, text)
		if got := c.Warnings.Error(); !strings.Contains(got, want) {
			t.Errorf("%s\nwarns %q, want %q", text, got, want)
		}
	}
	if _, err := config.Parse("f", []byte(strings.Replace(application, "pool: {cpu: 8}", "pool: {cpu: 8, memory: 1GiB}", 1))); err == nil {
		t.Error("two resources are shared end to end")
	}
}
