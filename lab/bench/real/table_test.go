package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// some is a result with every kind of cell.
func some() *result {
	after := 12.0
	r := &result{about: about{Machine: "2 CPUs", Seed: 3, Pool: 0.66, Cost: [3]string{"nginx 10.0 ms", "redis 9.0 ms", "postgres 11.0 ms"}, names: [3]string{"nginx", "redis", "postgres"}}, Scenario: "doubling", Length: 180}
	r.Rows = []*row{
		{Policy: "equal", InTime: 0.625, Back: []*float64{nil}},
		{Policy: "trimtab:njc:spans", InTime: 0.97, Better: &after, Back: []*float64{&after}, OwnCores: 0.02, Warnings: []string{"w"}},
	}
	return r
}

func TestTheTableHasARowForEachPolicyAndAlignedColumns(t *testing.T) {
	var b bytes.Buffer
	if err := some().text(&b, "doubling: one sudden change"); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 5 || !strings.Contains(lines[1], "3m0s; 2 CPUs; seed 3; pool 0.66 cores; CPU time per request: nginx 10.0 ms, redis") {
		t.Fatalf("%s", b.String())
	}
	end := strings.Index(lines[2], "in time") + len("in time")
	if lines[3][end-5:end] != "62.5%" || lines[4][end-5:end] != "97.0%" {
		t.Errorf("not aligned:\n%s", b.String())
	}
	if strings.Contains(b.String(), "WARNING") {
		t.Error("a quiet machine is called busy")
	}
}

func TestABusyMachineAndABrokenPromiseAreSaid(t *testing.T) {
	r := some()
	r.Others = 0.3
	r.Rows[1].Unsafe = []string{"redis has 0.3 cores"}
	var b bytes.Buffer
	if err := r.text(&b, ""); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"WARNING", "UNSAFE trimtab:njc:spans: redis has 0.3 cores"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if err := unsafe(r); err == nil {
		t.Error("a broken promise is no error")
	}
}

func TestTheResultIsOneLineOfJSON(t *testing.T) {
	var b bytes.Buffer
	if err := some().json(&b); err != nil {
		t.Fatal(err)
	}
	var back result
	if err := json.Unmarshal(b.Bytes(), &back); err != nil || strings.Count(b.String(), "\n") != 1 {
		t.Fatalf("%v: %s", err, b.String())
	}
	if back.Rows[1].Policy != "trimtab:njc:spans" || *back.Rows[1].Better != 12 {
		t.Errorf("%+v", back.Rows[1])
	}
}

func TestTheKernelAloneIsTheFirstOfTheRivalsAndSetsNoQuotas(t *testing.T) {
	var b bytes.Buffer
	one := func(name string) *fastRow { return &fastRow{name: name, granted: 60, used: 50, took: 100, sent: 1000} }
	printFast(&b, []*fastRow{one("captain 0.2"), one(ruleFast), one(theKernel)}, &bench{}, time.Minute)
	lines := strings.Split(b.String(), "\n")
	if !strings.HasPrefix(lines[4], "weights") || !strings.Contains(lines[4], "–") || !strings.HasPrefix(lines[5], "captain 0.2") {
		t.Errorf("%s", b.String())
	}
}

func TestTheCheapestSettingThatHoldsTheSLOIsTheBar(t *testing.T) {
	rows := []*fastRow{
		{name: ruleFast, granted: 60, used: 50, took: 100, sent: 1000, late: 1},
		{name: "k8s-cpu-fast 0.5", rule: ruleThreshold, granted: 150, used: 50, took: 100, sent: 1000, late: 2},
		{name: "k8s-cpu-fast 0.7", rule: ruleThreshold, granted: 120, used: 50, took: 100, sent: 1000, late: 10},
		{name: "k8s-cpu-fast 0.9", rule: ruleThreshold, granted: 80, used: 50, took: 100, sent: 1000, late: 11},
		{name: "captain 0.2", rule: ruleCaptain, granted: 80, used: 50, took: 100, sent: 1000, late: 300},
	}
	got := strings.Join(compareFast(rows), "\n")
	if !strings.Contains(got, "0.50 of the cores of k8s-cpu-fast 0.7, the cheapest of 3") || !strings.Contains(got, "captain: none of its 1 settings") {
		t.Error(got)
	}
}
