package view

import (
	"strings"
	"testing"

	"github.com/trimtab/trimtab/quantity"
)

const mib = 1 << 20

func TestTheReportSaysHowFarMemoryLimitsWereAndWhichKillsWouldHaveBeenPrevented(t *testing.T) {
	account := &quantity.MemoryAccount{Seconds: 100, Over: 60_000 * mib, AdvisedOver: 3_000 * mib, AdvisedUnder: 100 * mib, Kills: 3, Prevented: 2}
	needs := []quantity.MemoryNeed{{Instance: "a", Account: account}, {Instance: "b", Account: account}, {Instance: "c"}}
	r := Report{Workloads: []WorthOf{{Workload: "shop", Memory: memoryWorth(needs)}, {Workload: "none", Memory: memoryWorth(needs[2:])}}}
	s, ok := r.memory()
	if got := strings.Join(s.Rows[0], " "); !ok || len(s.Rows) != 1 || got != "shop 2 600MiB 0B 30MiB 1MiB 6 4" {
		t.Errorf("%q", s.Rows)
	}
	if _, ok := (&Report{}).memory(); ok {
		t.Error("a section without rows")
	}
}

func TestOnlyInstancesOfWhichTheAnalyzerSaysWhyAreExplained(t *testing.T) {
	limit := 1000.0 * mib
	all := memoryOf([]quantity.MemoryNeed{
		{Instance: "a", Use: 400 * mib, Need: 450 * mib, Limit: &limit, Why: "its peak", Growth: mib, Left: 600, Unlearnt: "it grows"},
		{Instance: "b", Use: 1, Need: 1},
	})
	if want := "a uses 400MiB of a limit of 1000MiB and needs up to 450MiB: its peak. It grows by 60MiB a minute and does not stop: it reaches the limit in 10m0s. The limit is not lowered: it grows."; len(all) != 1 || all[0] != want {
		t.Errorf("%q", all)
	}
}
