// Package dashboards generates what a site's own Grafana and Prometheus show
// and watch of trimtab: three boards, and rules that record and alert.
//
// The files beside this package are what [Generate] returns; `make generate`
// writes them and a test compares them, so that a metric that is renamed
// breaks the build and not somebody's board. An expression is written once:
// on a board its selectors carry the variables, in a rule they carry none.
//
//	attainment = min(1, performance / performance of the SLO)
//	given out  = Σ allocations / capacity
//	lost       = (spans refused + spans dropped) / spans received
//
// Several processes of one site export the same workloads, so gauges are
// reduced by max over instances before anything is added up; counters belong
// to the process that counts and are summed. Workloads carry no pool, so a
// site is told by the labels namespace and job of its target.
//
// It talks to no server, and does not load the rules into one.
//
//	for name, text := range dashboards.Generate() {
//		err := os.WriteFile(filepath.Join("dashboards", name), text, 0o644)
//	}
package dashboards
