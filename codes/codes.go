// Package codes has the codes by which programs tell apart why a round began, what stopped a
// workload from having more, why it keeps what it has, what came of a move, and what is not in
// force on a host. They are the values of fields of trimtab.Cause, Binding, Held, Verdict and
// Unmet, which add the text for people. A reader must accept codes that it does not know: other
// builds have others. It also has the name of the attribute by which the spans of a gate say that a
// request was refused, and that of the class whose requests nobody wants refused.
package codes

// RefusedAttribute marks, in the resource, the spans of requests that a gate did not pass on to the
// service: it refused them, or their clients left while they waited in it. The value is the class of
// the requests.
const RefusedAttribute = "trimtab.gate.refused"

// MostImportant is the class of requests that an objective protects, by its name at the gate.
const MostImportant = "critical"

// ByIdleness is the fallback (trimtab.Estimate.Fallback) of a workload whose load is measured as 0.
const ByIdleness = "no load"

// CauseKind is what started a round.
type CauseKind string

// The causes.
const (
	// CauseTick: the time between two rounds has passed.
	CauseTick CauseKind = "tick"
	// CauseNeed: Workload has less than it needs.
	CauseNeed CauseKind = "need"
	// CauseAlert: the alert Ref on Workload fires; CauseAlertOver: the last one
	// on it is over.
	CauseAlert     CauseKind = "alert"
	CauseAlertOver CauseKind = "alert over"
	// CauseLoan: the fast loop of a host asks for one, since Workload has borrowed for
	// long or cannot; Ref says which.
	CauseLoan CauseKind = "loan"
	// CauseCommand: By asked for a round. CausePause and CauseResume are the commands of those
	// names; CausePaused is a round while paused.
	CauseCommand CauseKind = "command"
	CausePause   CauseKind = "pause"
	CauseResume  CauseKind = "resume"
	CausePaused  CauseKind = "paused"
	// CauseApply: By asked to carry out the recommendation Ref; CauseRefused:
	// that was refused, Text says why.
	CauseApply   CauseKind = "apply"
	CauseRefused CauseKind = "apply refused"
)

// BindingKind is a kind of constraint that stops more.
type BindingKind string

// The constraints. trimtab.Binding.Detail names the host, resource or bound where there is one.
const (
	// BindingNone: nothing stops it from having more.
	BindingNone BindingKind = "none"
	// BindingCapacity: there is no more, of the resource in Detail, or of the pool.
	BindingCapacity BindingKind = "capacity"
	// BindingHost: the host in Detail has no more.
	BindingHost BindingKind = "host"
	// BindingMax: it has its declared maximum.
	BindingMax BindingKind = "max"
	// BindingDemand: more would not help.
	BindingDemand BindingKind = "demand"
	// BindingLeftOver: it has leftover capacity that no workload needs.
	BindingLeftOver BindingKind = "left over"
	// BindingUnknown: its curve is not known.
	BindingUnknown BindingKind = "unknown curve"
	// BindingNeed: it gets what it needs and a part of the rest; BindingIdle: all workloads have
	// that already; BindingReturned: what was lent is taken back.
	BindingNeed     BindingKind = "need"
	BindingIdle     BindingKind = "idle"
	BindingReturned BindingKind = "returned"
	// BindingGuard, BindingStep: a bound on moves, which Detail names.
	BindingGuard BindingKind = "guard"
	BindingStep  BindingKind = "step"
	// BindingUse: the limit follows from what it was seen to use.
	BindingUse BindingKind = "use"
	// BindingDefault: it is moved to its declared default.
	BindingDefault BindingKind = "default"
)

// HeldCode is a kind of reason why a workload keeps what it has.
type HeldCode string

// Why the estimate, and so the plan, keeps a workload's allocation.
const (
	// HeldMissing: an input's source reports that it has no value; HeldAbsent: the latest report
	// lacks it; HeldStale, HeldLate: it is too old, or about to be.
	HeldMissing HeldCode = "missing"
	HeldAbsent  HeldCode = "absent"
	HeldStale   HeldCode = "stale"
	HeldLate    HeldCode = "late"
	// HeldInvalid: an estimate broke its contract.
	HeldInvalid HeldCode = "invalid"
	// HeldOther: whoever held it told no code, as builds of version 1.
	HeldOther HeldCode = "other"
)

// Why a plan does not plan for a workload.
const (
	// HeldPaused, HeldReleased: a person asked for it.
	HeldPaused   HeldCode = "paused"
	HeldReleased HeldCode = "released"
	// HeldNoEstimate: there is none; HeldNothingLearnt: it has no curve; HeldOld: the estimate is
	// old, or from the future.
	HeldNoEstimate    HeldCode = "no estimate"
	HeldNothingLearnt HeldCode = "nothing learnt"
	HeldOld           HeldCode = "old estimate"
	// HeldNoKnob: no host has its knob; HeldSilent: its host does not report; HeldKnob: its knob
	// cannot be used; HeldDuplicate: two agents claim to be its host.
	HeldNoKnob    HeldCode = "no knob"
	HeldSilent    HeldCode = "silent host"
	HeldKnob      HeldCode = "knob"
	HeldDuplicate HeldCode = "two agents"
	// HeldUnsolved: the objective could not be solved.
	HeldUnsolved HeldCode = "unsolved"
	// HeldRange: no whole unit is within its bounds.
	HeldRange HeldCode = "range"
	// HeldChanged: it is not as the recommendation to apply expected.
	HeldChanged HeldCode = "changed"
)

// Why a workload that was planned for is not moved.
const (
	// StayIdle: all workloads have what they need; StayThere: it has what the objective gives it;
	// StayBound: a constraint keeps it from that. StayTurn: its host makes more urgent changes
	// first.
	StayIdle  HeldCode = "idle"
	StayThere HeldCode = "there"
	StayBound HeldCode = "bound"
	StayTurn  HeldCode = "turn"
)

// Judgement is the result of a verdict.
type Judgement string

// The judgements: the performance after the move was inside the expected band, above it, below
// it, or unknown.
const (
	AsExpected Judgement = "as expected"
	Better     Judgement = "better"
	Worse      Judgement = "worse"
	Unjudged   Judgement = "unknown"
)

// What the configuration asks of a host and is not in force: quotas that move between rounds, the
// control of best-effort jobs, capacity that other pools of the host claim, CPU by weight, memory.high
// below limits.
const (
	UnmetFast     = "fast"
	UnmetJobs     = "jobs"
	UnmetClaims   = "claims"
	UnmetWeights  = "weights"
	UnmetSoftEdge = "soft edge"
)
