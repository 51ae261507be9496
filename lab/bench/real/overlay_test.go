package main

import (
	"strings"
	"testing"
)

func TestOverridesAreMergedAndNoneChangesNothing(t *testing.T) {
	base := "pool: {cpu: 0.66}\nworkloads:\n  - name: a\n    knob: {cgroup: a}\n  - name: b\n"
	if got, err := overlay([]byte(base), nil); err != nil || string(got) != base {
		t.Errorf("%v: %s", err, got)
	}
	got, err := overlay([]byte(base), []byte("round: 5s\npool: {unit: 0.01}\neach_workload: {knob: {force: true}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for want, n := range map[string]int{"round: 5s": 1, "cpu: 0.66": 1, "unit: 0.01": 1, "force: true": 2, "cgroup: a": 1, "each_workload": 0} {
		if strings.Count(string(got), want) != n {
			t.Errorf("%q is not there %d times:\n%s", want, n, got)
		}
	}
	if _, err := overlay([]byte(base), []byte("[")); err == nil {
		t.Error("what is no YAML passed")
	}
}
