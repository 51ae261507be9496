package view

import (
	"time"

	"github.com/trimtab/trimtab"
)

// MaxHostDecisions bounds the decisions that one [Colocation] lists.
const MaxHostDecisions = 100

// Colocation is how best-effort jobs stand beside the services of this process's
// host: GET /api/v1/jobs. A process without the section colocate answers 501.
type Colocation struct {
	Host   string       `json:"host"`
	Pool   string       `json:"pool"`
	Policy string       `json:"policy"`
	Mode   trimtab.Mode `json:"mode"`
	Time   time.Time    `json:"time"`
	// Period is the time between two decisions.
	Period trimtab.Seconds `json:"period_s"`
	// Last is the decision in force; nil: there was none yet.
	Last *HostDecision `json:"last_decision,omitempty"`
	// Services are the latency-critical ones with a Servpod here, by name.
	Services []ServiceHere `json:"services"`
	Jobs     []Job         `json:"jobs"`
	// Capacity is what the jobs may have together now, Used what they have, by
	// resource.
	Capacity map[string]float64 `json:"capacity,omitempty"`
	Used     map[string]float64 `json:"used,omitempty"`
	// Missing are the resources that this host has no knob for, with the reason.
	Missing map[string]string `json:"missing,omitempty"`
	// Counts are totals since the process began: decisions by verb.
	Counts map[string]uint64 `json:"decisions_total,omitempty"`
	Kills  uint64            `json:"kills_total"`
	// Lost is the work that kills destroyed, in core-seconds.
	Lost float64 `json:"lost_core_s"`
	// Problem is why nothing is decided or done; "": it is.
	Problem string `json:"problem,omitempty"`
	// Decisions are the last that differed from the one before, newest first.
	Decisions []HostDecision `json:"decisions"`
}

// HostDecision is one decision of a host on its best-effort jobs.
type HostDecision struct {
	Time time.Time `json:"time"`
	// Verb is StopBE, SuspendBE, CutBE, DisallowBEGrowth or AllowBEGrowth.
	Verb string `json:"verb"`
	// By is the service that decided; absent: none did.
	By  string `json:"by,omitempty"`
	Why string `json:"why"`
	// Periods counts the periods in a row that decided the same, and changed nothing.
	Periods int         `json:"periods"`
	Changes []JobChange `json:"changes,omitempty"`
}

// JobChange is what one decision did to one job.
type JobChange struct {
	Job string `json:"job"`
	// Act is kill, suspend, cut, resume, grow or start.
	Act string `json:"act"`
	// To is what it has afterwards, by resource.
	To map[string]float64 `json:"to,omitempty"`
	// Result is what became of it: written, recommended, equal, refused or failed,
	// with the reason; "": nothing is known.
	Result string `json:"result,omitempty"`
}

// ServiceHere is a latency-critical service with a Servpod on the host. A nil number
// is not known.
type ServiceHere struct {
	Workload string `json:"workload"`
	// Age is how long ago the numbers were true; absent: never heard of.
	Age *trimtab.Seconds `json:"age_s,omitempty"`
	// Stale tells that they are too old to decide on.
	Stale bool `json:"stale,omitempty"`
	// Slack is (SLO - tail latency) / SLO, Load a share of the most that it carries.
	Slack *float64         `json:"slack,omitempty"`
	Tail  *trimtab.Seconds `json:"tail_s,omitempty"`
	SLO   trimtab.Seconds  `json:"slo_s,omitempty"`
	Load  *float64         `json:"load,omitempty"`
	// Share is the part of its Servpod here in its contributions.
	Share float64 `json:"contribution_share"`
	// LoadLimit and SlackLimit are in force here, with where they are from: history,
	// search, declared or default.
	LoadLimit   *float64 `json:"load_limit,omitempty"`
	LoadOrigin  string   `json:"load_limit_from,omitempty"`
	SlackLimit  *float64 `json:"slack_limit,omitempty"`
	SlackOrigin string   `json:"slack_limit_from,omitempty"`
}

// Job is one best-effort job on this host.
type Job struct {
	ID string `json:"id"`
	// Registered tells that it registered itself.
	Registered bool         `json:"registered,omitempty"`
	Mode       trimtab.Mode `json:"mode"`
	// State is running or suspended; one that waits for its turn is suspended. One that
	// was killed and whose processes are still there "does not end".
	State string `json:"state"`
	// Has is what it has now, by resource.
	Has map[string]float64 `json:"has,omitempty"`
	// Place is its control group.
	Place string `json:"place,omitempty"`
	// Done is the part that is done; nil: not known.
	Done *float64 `json:"done,omitempty"`
	// Predict is the kind of prediction; Predictable tells that its loss is known.
	Predict     string `json:"predict,omitempty"`
	Predictable bool   `json:"predictable"`
	// Loss is what it would lose by a preemption, where that is predicted; Useless
	// what would be done again; Attained what it was given so far; Lost what kills
	// destroyed: all in core-seconds.
	Loss     *float64 `json:"loss_core_s,omitempty"`
	Useless  float64  `json:"useless_core_s"`
	Attained float64  `json:"attained_core_s"`
	Lost     float64  `json:"lost_core_s"`
	// Heard is how long ago it told its progress; absent: never.
	Heard *trimtab.Seconds `json:"heard_s,omitempty"`
	// Problem is why a knob of it cannot be used, or what is wrong with its reports.
	Problem string `json:"problem,omitempty"`
}
