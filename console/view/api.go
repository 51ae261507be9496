package view

import (
	"time"

	"github.com/trimtab/trimtab"
)

// This file has the types of /api/v1, which the pages, the command line and
// other programs read. A number that was not measured is absent or
// null, never 0; times are RFC 3339; errors are {"error": "verb object: cause"}
// with a status that says what is wrong: 400 a parameter or a command, 404 a
// name, 403 a Host or an origin that is not allowed, 413 and 415 a body, 501
// a function that this process was not started with, 503 (ask again later) a
// bus out of reach, or too many answers or streams that wait to be read.

// Bounds of what one answer holds.
const (
	// DefaultRows and MaxRows bound the workloads of one [Status].
	DefaultRows, MaxRows = 100, 10000
	// MaxObservations bounds the observations of one [Explanation].
	MaxObservations = 500
	// MaxHistory bounds the points of one [History].
	MaxHistory = 720
	// DefaultDecisions and MaxDecisions bound one page of [Decisions].
	DefaultDecisions, MaxDecisions = 50, 500
	// MaxKnobs bounds the knobs that one answer lists.
	MaxKnobs = 1000
)

// Status is the whole pool at one moment: GET /api/v1/status.
//
// ?q= keeps the workloads that have all of its words: "class:C", "mode:M",
// "state:S" (ok, note, bad or quiet), "held", or a part of the name. It has at
// most 300 bytes, a longer one is 400. ?limit=
// (1 to [MaxRows], by default [DefaultRows]) and ?offset= give one page. ?sort= is
// name, utility, performance, load, p99 or allocation, with - before it from the
// greatest down; left out, the worst come first.
type Status struct {
	Pool      string  `json:"pool"`
	Resource  string  `json:"resource"`
	Objective string  `json:"objective"`
	Capacity  float64 `json:"capacity"`
	// Allocated is the sum of the limits, Unlimited counts the knobs without one.
	Allocated trimtab.Amount  `json:"allocated"`
	Unlimited int             `json:"unlimited,omitempty"`
	Plan      string          `json:"plan,omitempty"`
	Cause     trimtab.Cause   `json:"cause,omitzero"`
	Value     *float64        `json:"objective_value,omitempty"`
	Paused    bool            `json:"paused"`
	LeaseLeft trimtab.Seconds `json:"lease_left_s"`
	Time      time.Time       `json:"time"`
	// Leader is the process with the lock of the pool, Epoch its term. Empty and 0 while
	// there is no leader.
	Leader string `json:"leader,omitempty"`
	Epoch  uint64 `json:"epoch,omitempty"`
	// NotReady has the reason of each part that is not ready, by the part's name.
	NotReady map[string]string `json:"not_ready,omitempty"`
	// Unmet lists the settings of the configuration that are not in force on a host, at most
	// [trimtab.MaxUnmet], by host.
	Unmet []UnmetOn `json:"unmet,omitempty"`
	// Exceeds is copied from the newest plan: see [Planned].
	Exceeds string `json:"recommendations_exceed,omitempty"`
	// Hosts counts the hosts that the pool has knobs on; Tightest are those with
	// the least free: ?hosts= of them, by default none.
	Hosts    int    `json:"hosts"`
	Tightest []Host `json:"tightest_hosts,omitempty"`
	// Total counts the workloads that the filter keeps; Counts are those by
	// what they ask of a person: bad (look now), note, ok, quiet.
	Total  int            `json:"total"`
	Counts map[string]int `json:"counts"`
	// Offset is the index of the first row among Total.
	Offset int `json:"offset"`
	// Workloads are worst first.
	Workloads []Row `json:"workloads"`
}

// Row is one workload in a [Status]. A nil number was not measured.
type Row struct {
	Name      string        `json:"name"`
	Mode      trimtab.Mode  `json:"mode"`
	Class     trimtab.Class `json:"class,omitempty"`
	SLO       string        `json:"slo,omitempty"`
	SLOTarget *float64      `json:"slo_target,omitempty"`
	// Code is State in a form for programs: "ok", "off", "misses", "learning",
	// "waiting", "held", "stale", "starved", "doubtful", "knob" or "discovered".
	Code string `json:"code"`
	// State is for people; Kind is "bad", "note", "ok" or "quiet".
	State string `json:"state"`
	Kind  string `json:"kind"`
	// Since is the time at which State began; absent where it is not known.
	Since time.Time `json:"since,omitzero"`
	// Notes are remarks on its allocation, such as on the limit of a control group above, and on its
	// inputs.
	Notes     []string `json:"notes,omitempty"`
	Load      *float64 `json:"load,omitempty"`
	LoadUpper *float64 `json:"load_upper,omitempty"`
	// LoadAge is the time since Load was measured last, and LoadStale says that nothing newer
	// came in time: it says what was asked of the workload then, not what is now.
	LoadAge     *trimtab.Seconds `json:"load_age_s,omitempty"`
	LoadStale   bool             `json:"load_stale,omitempty"`
	Performance *float64         `json:"performance,omitempty"`
	Share       bool             `json:"performance_is_share,omitempty"`
	Utility     *float64         `json:"utility,omitempty"`
	// Shed describes the requests that its gates refuse now; nil: none, or no gate reports any.
	Shed *Shed `json:"shed,omitempty"`
	// Budget is the error budget of the last 7 days, as far as it is known.
	Budget  *Budget                    `json:"error_budget,omitempty"`
	Latency map[string]trimtab.Seconds `json:"latency_s,omitempty"`
	// Observed sums up the requests of a discovered service since it was found.
	Observed *trimtab.Observed `json:"observed,omitempty"`
	// Instances counts its running copies that can be used, on so many Hosts.
	Instances int `json:"instances,omitempty"`
	Hosts     int `json:"hosts,omitempty"`
	// Allocation is the workload's allocation: of several instances as much as the slowest lets it
	// have, min a/f over their amounts and shares of the load, where f is 1/n unless
	// it is known. Total is the sum of the amounts then.
	Allocation *trimtab.Amount `json:"allocation,omitempty"`
	Total      *trimtab.Amount `json:"total,omitempty"`
	// Pending is the value that its knob was set to, while it is not in force.
	Pending *trimtab.Amount `json:"pending,omitempty"`
	// Others has its allocations of further resources, by resource.
	Others  map[string]trimtab.Amount `json:"others,omitempty"`
	Target  *float64                  `json:"target,omitempty"`
	Demand  *float64                  `json:"demand,omitempty"`
	Reports int                       `json:"reports"`
	// Knob and Host are those of the only one.
	Knob string `json:"knob,omitempty"`
	Host string `json:"host,omitempty"`
	// Decision is the last one, without inputs and alternatives: /decisions
	// has them.
	Decision *Decision        `json:"last_decision,omitempty"`
	Age      *trimtab.Seconds `json:"age_s,omitempty"`
}

// Knob is one knob of a workload on a host.
type Knob struct {
	trimtab.KnobState
	// Share is its part of the load, by the analyzer; nil: not known.
	Share *float64 `json:"load_share,omitempty"`
	// Bound: by the newest decision its host has no more to give.
	Bound bool `json:"bound,omitempty"`
	// Least: of all instances, this one has the least for the load that it serves.
	Least bool `json:"least,omitempty"`
	// Silent is how long its host has sent nothing, for people; "": the host
	// reports.
	Silent string `json:"silent,omitempty"`
}

// Hosts lists the hosts of the pool with their capacities and what they give: GET /api/v1/hosts, the
// least free first.
//
// ?q= keeps those that have all of its words: "state:S" (ok, note or bad),
// "workload:W", or a part of the name; ?limit= (1 to [MaxRows], by default
// [DefaultRows]) and ?offset= give one page.
type Hosts struct {
	Pool     string    `json:"pool"`
	Resource string    `json:"resource"`
	Time     time.Time `json:"time"`
	// Total counts the hosts that the filter keeps; Counts are those by what they
	// ask of a person: bad (look now), note, ok.
	Total  int            `json:"total"`
	Counts map[string]int `json:"counts"`
	Offset int            `json:"offset"`
	Hosts  []Host         `json:"hosts"`
}

// Host is one host of a pool.
type Host struct {
	Name string `json:"host"`
	Pool string `json:"pool,omitempty"`
	// Code is State in a form for programs: "ok", "silent", "twins", "knob", "over",
	// "paused" or "unmet".
	Code string `json:"code"`
	// State is for people; Kind is "bad", "note" or "ok".
	State string `json:"state"`
	Kind  string `json:"kind"`
	// Since is the time at which State began; absent where it is not known.
	Since time.Time `json:"since,omitzero"`
	// Age is the time since the host's newest report.
	Age       trimtab.Seconds `json:"age_s"`
	LeaseLeft trimtab.Seconds `json:"lease_left_s"`
	Paused    bool            `json:"paused,omitempty"`
	// Unmet lists the settings of the configuration that are not in force on this host.
	Unmet []trimtab.Unmet `json:"unmet,omitempty"`
	// Resources has its capacity and what it gives of each resource, the pool's resource first.
	Resources []HostResource `json:"rooms"`
	// Workloads and Instances count those that run there, Knobs their knobs, and
	// Problems the knobs that cannot be used.
	Workloads int `json:"workloads"`
	Instances int `json:"instances"`
	Knobs     int `json:"knobs"`
	Problems  int `json:"problems"`
	// Binds counts the workloads that this host keeps from more, by the newest
	// decision on each.
	Binds int `json:"binds"`
	// Trend has the amounts given out of the pool's resource over the last hour, as a part
	// of the capacity, by the minute and oldest first; nil is missing.
	Trend []*float64 `json:"-"`
}

// HostResource is a host's capacity of one resource, and the amount of it that is given out.
type HostResource struct {
	Resource string `json:"resource"`
	// Capacity is absent where it was not measured; Free then too.
	Capacity *float64 `json:"capacity,omitempty"`
	// Given is the sum over the knobs: of each the larger of what was set and what
	// is in force. Unlimited counts those without a limit, which are given nothing.
	Given     float64  `json:"given"`
	Unlimited int      `json:"unlimited,omitempty"`
	Free      *float64 `json:"free,omitempty"`
}

// HostDetail is one host with what runs there: GET /api/v1/hosts/NAME. ?pool=
// names one of several pools, ?limit= (1 to [MaxKnobs]) and ?offset= one part of
// the knobs.
type HostDetail struct {
	Host
	Time   time.Time `json:"time"`
	Offset int       `json:"offset"`
	// Listed are the knobs, in order of workload, instance and resource.
	Listed []Knob `json:"listed"`
}

// Observation is one report: a point beside the curve.
type Observation struct {
	Time        time.Time `json:"time"`
	Allocation  float64   `json:"allocation"`
	Load        *float64  `json:"load"`
	Performance float64   `json:"performance"`
}

// Planned is the newest plan that asked for something: GET /api/v1/plan.
type Planned struct {
	// ID names the plan; `trimtab apply` takes it.
	ID string `json:"id"`
	*trimtab.Plan
	// Applicable: the plan recommends something, and all of it can be written. ReadOnly says, by
	// workload, why a recommendation cannot be written: a plan is applied as a whole or not at
	// all.
	Applicable bool              `json:"applicable"`
	ReadOnly   map[string]string `json:"barred,omitempty"`
	// Exceeds says why the recommendations do not fit the pool beside what all others have; "":
	// they fit.
	Exceeds string `json:"exceeds,omitempty"`
}

// Decision is one action with its reason and what came of it.
type Decision struct {
	Plan     string         `json:"plan"`
	Epoch    uint64         `json:"epoch"`
	Sequence uint64         `json:"sequence"`
	Step     int            `json:"step"`
	Time     time.Time      `json:"time"`
	Cause    *trimtab.Cause `json:"cause"`
	// Action.Why has the inputs with their ages, the bounds, the binding
	// constraint and the alternatives. If the workload has several instances, Action names no
	// host, and Expect and Set are the sums over all instances.
	Action trimtab.Action `json:"action"`
	// Moves are the instances that it moves, in order of host and instance; empty:
	// Action is of the only one.
	Moves []Move `json:"moves,omitempty"`
	// Result sums up the actuators' answers, over all Moves that were answered; nil:
	// none was.
	Result *trimtab.Result `json:"result,omitempty"`
	Took   trimtab.Seconds `json:"took_s,omitempty"`
	Effect *Effect         `json:"effect,omitempty"`
}

// What [Effect] says came of a decision.
const (
	// TooEarly: no report is there yet that began after the change.
	TooEarly = "too early"
	// NotMeasured: reports came, but without a performance before or after.
	NotMeasured = "not measured"
	Rose        = "rose"
	Fell        = "fell"
	Same        = "same"
)

// Move is the change that one decision makes to one of several instances.
type Move struct {
	Host     string         `json:"host"`
	Instance string         `json:"instance,omitempty"`
	Expect   trimtab.Amount `json:"expect"`
	Set      trimtab.Amount `json:"set"`
	// Binding is the constraint that stopped more, of this one.
	Binding trimtab.Binding `json:"binding,omitzero"`
	// Status, Found and Reason are the answer of its host; "": there is none yet.
	Status trimtab.Status `json:"status,omitempty"`
	Found  trimtab.Amount `json:"found,omitzero"`
	Reason string         `json:"reason,omitempty"`
}

// Effect is the performance before and after a decision. The decision need not
// be the cause of a change: the load may have changed too.
type Effect struct {
	// Performance is one of the words above; within 1% of one another is
	// [Same].
	Performance string `json:"performance"`
	// Before is the last report before the decision; After the first that
	// is at least one round younger than it.
	Before     *float64  `json:"before,omitempty"`
	BeforeTime time.Time `json:"before_time,omitzero"`
	After      *float64  `json:"after,omitempty"`
	AfterTime  time.Time `json:"after_time,omitzero"`
}

// Decisions is one page of a workload's decisions, newest first:
// GET /api/v1/workloads/{name}/decisions?before=&limit=.
type Decisions struct {
	Workload string `json:"workload"`
	// Total counts those that are kept.
	Total     int         `json:"total"`
	Decisions []*Decision `json:"decisions"`
	// Next is the value of before for the next page; empty: this is the last.
	Next string `json:"next,omitempty"`
}

// Patch is the newest advice, ready to copy:
// GET /api/v1/workloads/{name}/patch. 404 while there is none.
type Patch struct {
	Workload string    `json:"workload"`
	Plan     string    `json:"plan"`
	Time     time.Time `json:"time"`
	// Amounts has the advised allocation, by resource; of several Instances for each.
	Amounts   map[string]trimtab.Amount `json:"amounts"`
	Instances int                       `json:"instances,omitempty"`
	// Systemd is a drop-in, Deployment a patch for kubectl; empty when nothing
	// of the advice can be said in it.
	Systemd    string `json:"systemd"`
	Deployment string `json:"deployment"`
	// Unit is the systemd unit that the drop-in is for; "": the group is none's with a file.
	Unit string `json:"unit"`
	// Left is, by resource, why a part of the advice is in neither.
	Left map[string]string `json:"left,omitempty"`
}

// Audited is how fair the newest plan that was audited is:
// GET /api/v1/fairness. 404 while none was.
type Audited struct {
	Plan      string         `json:"plan"`
	Time      time.Time      `json:"time"`
	Objective string         `json:"objective"`
	Audit     *trimtab.Audit `json:"audit"`
}

// Change is the data of an event: changed of GET /api/v1/events
// (text/event-stream). A client that missed events has missed nothing: each
// one says only what to ask for again.
type Change struct {
	// Workloads has the workloads that changed since the last event; All is set, and
	// Workloads empty, when they are too many to name.
	Workloads []string  `json:"workloads"`
	All       bool      `json:"all,omitempty"`
	Plan      string    `json:"plan,omitempty"`
	Time      time.Time `json:"time"`
}
