package prometheus

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/internal/metric"
)

func TestTheJobsOfEachHostAreExportedAndGoWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, slack := metric.NewSet(), .25
		e := New(set)
		c := &colocation.Colocation{Host: "a", Pool: colocation.JobsPool("p"), Time: time.Now(), Running: 2, Suspended: 1, Kills: 3, Lost: 4, Given: 5,
			Last: &colocation.HostDecision{Verb: "AllowBEGrowth"}, Used: map[string]float64{"cpu": 1.5}, Capacity: map[string]float64{"cpu": 3},
			Services: []colocation.ServiceHere{{Workload: "a"}, {Workload: "b", Slack: &slack}}}
		e.Observe(c)
		wants(t, set, `trimtab_host_jobs{host="a",state="running"} 2`, `trimtab_host_jobs{host="a",state="suspended"} 1`, `trimtab_host_jobs_killed{host="a"} 3`,
			`trimtab_host_jobs_decision{host="a",verb="AllowBEGrowth"} 1`, `trimtab_host_jobs_used{host="a",resource="cpu"} 1.5`, `trimtab_host_jobs_capacity{host="a",resource="cpu"} 3`,
			`trimtab_host_jobs_slack_ratio{host="a"} 0.25`, `trimtab_host_jobs_lost_core_seconds{host="a"} 4`, `trimtab_host_jobs_given_core_seconds{host="a"} 5`)
		next := *c
		next.Paused, next.Used, next.Services = true, map[string]float64{}, nil
		next.Capacity = map[string]float64{"memory": 7}
		e.Observe(&next)
		wants(t, set, `trimtab_host_jobs_decision{host="a",verb="paused"} 1`, `no verb="AllowBEGrowth"`, `no trimtab_host_jobs_used{`, `no trimtab_host_jobs_slack_ratio{`, `trimtab_host_jobs_capacity{host="a",resource="memory"} 7`)
		time.Sleep(forgotten + time.Second)
		wants(t, set, `no trimtab_host_jobs{`, `no trimtab_host_jobs_capacity{`, `no trimtab_host_jobs_decision{`, `no trimtab_host_jobs_timestamp_seconds{`)
		if e.usage.bytes != 0 || len(e.jobHosts) != 0 {
			t.Errorf("%d bytes, %d hosts", e.usage.bytes, len(e.jobHosts))
		}
	})
}

// busy is a host with two resources that jobs have.
func busy(host string) *colocation.Colocation {
	slack := .25
	return &colocation.Colocation{Host: host, Pool: colocation.JobsPool("p"), Time: noon, Running: 2, Last: &colocation.HostDecision{Verb: "AllowBEGrowth"}, Given: 123.456,
		Used: map[string]float64{"cpu": 1.5, "memory": 1 << 30}, Capacity: map[string]float64{"cpu": 3, "memory": 1 << 31}, Services: []colocation.ServiceHere{{Workload: "b", Slack: &slack}}}
}

func TestJobsOfAFleetStayWithinWhatMetricsMayTake(t *testing.T) {
	for _, workloads := range []int{100, 10_000} {
		set, e := fleet(workloads, "a-cluster-of-ours/some-namespace/service-%05d")
		for n := range 1000 {
			e.Observe(busy(fmt.Sprintf("node-%05d", n)))
		}
		text := exposition(t, set)
		t.Logf("%d workloads: %d bytes, %d counted, the jobs of %d hosts", workloads, len(text), e.usage.bytes, len(e.jobHosts))
		if len(text) > 4_700_000 || workloads == 100 && len(e.jobHosts) != 1000 {
			t.Errorf("%d workloads: %d bytes, the jobs of %d hosts", workloads, len(text), len(e.jobHosts))
		}
	}
	set := metric.NewSet()
	e, odd := New(set), busy("a")
	for n := range 60 {
		odd.Used[fmt.Sprint("r", n)] = 1
	}
	e.Observe(odd)
	exposition(t, set)
	if n := len(e.jobHosts["a"].resources); n > maxJobResources {
		t.Errorf("%d resources", n)
	}
}
