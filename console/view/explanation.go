package view

import (
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/colocation"
)

// Explanation is why a workload has what it has:
// GET /api/v1/workloads/{name}?history=&observations=. In JSON all of its parts are one object.
type Explanation struct {
	Workload string `json:"workload"`
	Decided
	Evidence
	Choice
	Condition
	Holds
	Learnt
	// History are earlier decisions, newest first: ?history= of them.
	History []*Decision `json:"history,omitempty"`
	// Draft is a part of a configuration for a workload that was only discovered, by
	// line.
	Draft []string `json:"draft,omitempty"`
}

// Decided names the newest decision on a workload, or says why there is none.
type Decided struct {
	Decision string        `json:"decision"`
	Epoch    uint64        `json:"epoch"`
	Plan     string        `json:"plan"`
	Time     time.Time     `json:"time,omitzero"`
	Cause    trimtab.Cause `json:"cause,omitzero"`
}

// Evidence is what was measured for a decision.
type Evidence struct {
	Inputs []trimtab.Input `json:"inputs"`
	// Counters are the newest performance counters; none where they are not read.
	Counters []trimtab.Input `json:"counters,omitempty"`
	// Signals has the signals by which its hosts judge whether speculative tasks beside it
	// disturb it; none where none run.
	Signals []HostSignal `json:"signals,omitempty"`
}

// Choice is what the planner chose by a model, what it rejected, and the outcome.
type Choice struct {
	Model        string                `json:"model"`
	Bounds       []float64             `json:"bounds"`
	Demand       *float64              `json:"demand,omitempty"`
	Target       *float64              `json:"target,omitempty"`
	Utility      *float64              `json:"utility,omitempty"`
	Binding      trimtab.Binding       `json:"binding"`
	Alternatives []trimtab.Alternative `json:"alternatives"`
	NextCheck    time.Time             `json:"next_check,omitzero"`
	Result       *trimtab.Result       `json:"result,omitempty"`
	Effect       *Effect               `json:"effect,omitempty"`
	// Before and Set are the change, of the resource Changed; Moves that of each of several instances.
	Changed string          `json:"changed,omitempty"`
	Before  *trimtab.Amount `json:"before,omitempty"`
	Set     *trimtab.Amount `json:"set,omitempty"`
	Moves   []Move          `json:"moves,omitempty"`
	Mode    trimtab.Mode    `json:"mode"`
}

// Condition is how the workload is now, as in [Row].
type Condition struct {
	Class       trimtab.Class `json:"class,omitempty"`
	Code        string        `json:"code"`
	State       string        `json:"state"`
	Kind        string        `json:"kind"`
	Since       time.Time     `json:"since,omitzero"`
	Notes       []string      `json:"notes,omitempty"`
	Resource    string        `json:"resource,omitempty"`
	SLO         string        `json:"slo,omitempty"`
	SLOTarget   *float64      `json:"slo_target,omitempty"`
	Performance *float64      `json:"performance,omitempty"`
	Share       bool          `json:"performance_is_share,omitempty"`
	Budget      *Budget       `json:"error_budget,omitempty"`
	Shed        *Shed         `json:"shed,omitempty"`
	// MemoryAlone: nothing but its memory limits is planned. Resource is memory then.
	MemoryAlone bool `json:"memory_alone,omitempty"`
	// Alarms are the newest rounds that an alert on it started.
	Alarms []Mark `json:"alerts,omitempty"`
}

// Holds is the workload's allocation, by which knobs it has it, and who keeps them from being
// written.
type Holds struct {
	// Instances, Hosts, Allocation and Total are as in [Row].
	Instances  int             `json:"instances,omitempty"`
	Hosts      int             `json:"hosts,omitempty"`
	Allocation *trimtab.Amount `json:"allocation,omitempty"`
	Total      *trimtab.Amount `json:"total,omitempty"`
	// Knobs has the knobs of several instances, in order of host and instance, those
	// that cannot be used among them, and Omitted how many there are beyond
	// [MaxKnobs].
	Knobs    []Knob          `json:"knobs,omitempty"`
	Omitted  int             `json:"knobs_omitted,omitempty"`
	Pending  *trimtab.Amount `json:"pending,omitempty"`
	Baseline *trimtab.Amount `json:"baseline,omitempty"`
	Knob     string          `json:"knob,omitempty"`
	// Kept: the newest round left the allocation as it is, or held it. [Choice] is then the change
	// before that.
	Kept bool `json:"kept,omitempty"`
	// ReadOnly is why no plan of it could be applied, in mode recommend.
	ReadOnly string `json:"barred,omitempty"`
	Host     string `json:"host,omitempty"`
	// Least and Most are the declared bounds of the knob.
	Least *float64 `json:"min,omitempty"`
	Most  *float64 `json:"max,omitempty"`
	// Fast sums up how fast loops moved its CPU quotas, over all its instances.
	Fast *FastView `json:"fast,omitempty"`
}

// Learnt is what the analyzer knows of the workload.
type Learnt struct {
	// Curve is the learnt performance over the allocation at the forecast
	// load, with its band; Forecast is that load.
	Curve    *trimtab.Curve        `json:"curve,omitempty"`
	Forecast *trimtab.LoadForecast `json:"forecast,omitempty"`
	// LoadAge and LoadStale are as in [Row].
	LoadAge   *trimtab.Seconds `json:"load_age_s,omitempty"`
	LoadStale bool             `json:"load_stale,omitempty"`
	Reports   int              `json:"reports"`
	// Observations are the newest reports that had both an allocation and a
	// performance, oldest first: ?observations= of them, by default none and at
	// most [MaxObservations].
	Observations []Observation `json:"observations,omitempty"`
	// Contributions say what its components add to the tail of its latency; none
	// without an SLO of latency or without spans.
	Contributions *colocation.Contributions `json:"contributions,omitempty"`
	// Memory says which memory limits follow from what instances used, and why: of the instance whose
	// limit is furthest from that, and of those that grow without an end.
	Memory []string `json:"memory,omitempty"`
}
