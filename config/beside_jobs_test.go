package config_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
)

func TestBestEffortJobsLeaveThePoolWhereThereIsASectionForThem(t *testing.T) {
	c := load(t, "colocate.yaml")
	want := &config.BesideJobs{
		Policy: "rhythm", Mode: trimtab.Act, Period: time.Second, MaxAge: 8 * time.Second, Lease: 20 * time.Second,
		Capacity: config.Amounts{CPU: 3, Memory: 8 << 30}, Start: config.Amounts{CPU: 0.5, Memory: 512 << 20}, Step: config.Amounts{CPU: 0.25},
	}
	if diff := cmp.Diff(want, c.Beside.Jobs); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	jobs, pooled := c.Jobs(), c.Pooled().Workloads
	if len(jobs) != 2 || jobs[0].Name != "batch" || jobs[0].Mode != trimtab.Act || jobs[0].Knob.CPU.Min != config.LeastCPU || jobs[1].Mode != trimtab.Recommend {
		t.Errorf("jobs %+v", jobs)
	}
	if len(pooled) != 1 || pooled[0].Name != "checkout" || len(c.Workloads) != 3 {
		t.Errorf("pooled %+v of %d", pooled, len(c.Workloads))
	}
	if diff := cmp.Diff(map[string]float64{"cpu": 3, "memory": 8 << 30}, c.Beside.Jobs.Capacity.ByResource()); diff != "" {
		t.Error(diff)
	}
}

func TestWithoutTheSectionABestEffortWorkloadSharesThePoolAsOthersDo(t *testing.T) {
	c := parse(t, "pool: {cpu: 8}\nworkloads:\n  - {name: a, class: best-effort, slo: {latency: 1s, fraction: 0.5}, knob: {cgroup: a, cpu: {min: 1}}}\n")
	if c.Beside.Jobs != nil || len(c.Jobs()) != 0 || c.Pooled() != c {
		t.Errorf("%+v", c.Beside.Jobs)
	}
}

func TestAnEmptySectionHasItsDefaults(t *testing.T) {
	c := parse(t, "beside: {jobs: {}}\n")
	want := &config.BesideJobs{Policy: "rhythm", Mode: trimtab.Recommend, Period: 2 * time.Second, MaxAge: 13 * time.Second, Lease: 20 * time.Second}
	if diff := cmp.Diff(want, c.Beside.Jobs); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
