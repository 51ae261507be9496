package view

import (
	"time"

	"github.com/trimtab/trimtab"
)

// Report compares what services got with what they would have got without trimtab: GET /api/v1/report?since=7d, of a time or of how
// long ago; left out, of all that is kept, 7 days.
//
// What was not measured is left out of every figure, and Missing says what that is.
type Report struct {
	Pool      string    `json:"pool"`
	Resource  string    `json:"resource"`
	Objective string    `json:"objective"`
	From      time.Time `json:"from"`
	To        time.Time `json:"to"`
	// Total adds up the workloads. Its bands are those of the sums, as if all curves
	// were at the same end of their bands.
	Total     Worth      `json:"total"`
	Workloads []WorthOf  `json:"workloads"`
	Moves     []Counted  `json:"moves"`
	Verdicts  []Counted  `json:"verdicts"`
	Incidents []Incident `json:"incidents"`
	Omitted   int        `json:"incidents_omitted,omitempty"`
	Missing   []string   `json:"missing"`
	// Exceeds is copied from the newest plan: see [Planned].
	Exceeds string `json:"recommendations_exceed,omitempty"`
}

// Worth compares what a workload, or all of them, got with what they would have got without trimtab.
type Worth struct {
	// In Minutes it is known whether the SLO was met; in SLOMinutes of these it was. In Starved
	// of these nothing was measured while the workload was starved: they count as not met.
	Minutes    float64 `json:"minutes"`
	SLOMinutes float64 `json:"slo_minutes"`
	Starved    float64 `json:"starved_minutes,omitempty"`
	// Hours is its allocation summed over KnownHours, in the resource's unit times hours.
	Hours      float64 `json:"resource_hours"`
	KnownHours float64 `json:"known_hours"`
	// Compared is over the minutes whose load and allocation are known too: what the newest curve
	// expects of the allocation, and of the baseline, the limit from before trimtab. nil: there
	// is no curve or no baseline.
	Compared *Comparison `json:"compared,omitempty"`
	// Requests counts the requests that gates refused, and those in time; nil: none was refused, or
	// no gate reports any.
	Requests *Requests `json:"requests,omitempty"`
}

// Comparison is two allocations over the same minutes by the same curve. SLO minutes
// are those in which the curve's mean, its lower or its upper bound meets the SLO.
type Comparison struct {
	Minutes  float64 `json:"minutes"`
	Had      ByCurve `json:"had"`
	Baseline ByCurve `json:"baseline"`
	// Gain is Had less Baseline, in SLO minutes: by the mean of the curve, and the
	// least and the most over its mean and both bounds.
	Gain trimtab.Band `json:"gain_slo_minutes"`
}

// ByCurve is the performance that a curve expects of one allocation.
type ByCurve struct {
	SLOMinutes trimtab.Band `json:"slo_minutes"`
	Hours      float64      `json:"resource_hours"`
}

// WorthOf is one workload of a report.
type WorthOf struct {
	Workload string       `json:"workload"`
	Mode     trimtab.Mode `json:"mode"`
	SLO      string       `json:"slo,omitempty"`
	// Decisions counts those on it.
	Decisions int `json:"decisions"`
	Worth
	Budget *Budget `json:"error_budget,omitempty"`
	// HeldBy names the autoscalers that set its limits, so that trimtab only advises on it.
	// Advised compares what they gave with trimtab's advice; nil: that is not known.
	HeldBy  []string `json:"held_by,omitempty"`
	Advised *Advised `json:"advised,omitempty"`
	// Money is what its pods reserve, use and need of CPU now; nil: a request is unknown.
	Money *Money `json:"requests_now,omitempty"`
	// Memory compares its memory limits with the use; nil: it has none, or nothing is known yet.
	Memory *MemoryWorth `json:"memory,omitempty"`
}

// Advised compares what an autoscaler gave with what trimtab would have advised, over
// the minutes whose load, forecast and allocation are known, by the newest curve.
type Advised struct {
	Minutes float64 `json:"minutes"`
	// Missed counts the Measured minutes in which the SLO was missed.
	Measured float64 `json:"measured_minutes"`
	Missed   float64 `json:"measured_missed_minutes"`
	Had      ByCurve `json:"had"`
	Advised  ByCurve `json:"advised"`
	// Percent is how much more was advised than given, in resource hours; nil: nothing
	// was given.
	Percent *float64 `json:"resource_hours_percent,omitempty"`
	// Gain is Advised less Had, in SLO minutes, as that of a Comparison.
	Gain trimtab.Band `json:"gain_slo_minutes"`
}

// Counted is a name with its number of occurrences.
type Counted struct {
	What  string `json:"what"`
	Count int    `json:"count"`
}

// Incident is a time in which a workload missed its SLO.
type Incident struct {
	Workload string    `json:"workload"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	// Worst is the least performance; Share: it is a share of requests.
	Worst float64 `json:"worst_performance"`
	Share bool    `json:"performance_is_share,omitempty"`
	// Ongoing: the newest report belongs to the incident.
	Ongoing bool `json:"ongoing,omitempty"`
}

// Budget is the error budget of a workload whose SLO is a share of requests: of all
// requests, 1 - share may miss it.
type Budget struct {
	// Window is over how long requests are known, in at most 7 days.
	Window trimtab.Seconds `json:"window_s"`
	// Left is the rest of the budget of that window: 1 untouched, 0 used up,
	// less than 0 overdrawn.
	Left float64 `json:"left"`
	// Burn is how fast the budget is used in each window ("5m", "1h", "6h"): at 1 the budget
	// lasts exactly as long as its period. A window of which less than half is known is left
	// out.
	Burn map[string]float64 `json:"burn_rate"`
}

// Mark is something that happened, for charts.
type Mark struct {
	Time time.Time `json:"time"`
	Text string    `json:"text"`
}
