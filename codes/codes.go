// Package codes has the codes by which programs tell apart why a round began, what stopped a
// workload from having more, and why it keeps what it has. They are the values of the fields Kind
// and Code of trimtab.Cause, trimtab.Binding and trimtab.Held, which add the text for people.
// A reader must accept codes that it does not know: other builds have others.
package codes

// Cause is what started a round.
type Cause string

// The causes.
const (
	// CauseTick: the time between two rounds has passed.
	CauseTick Cause = "tick"
	// CauseNeed: Workload has less than it needs.
	CauseNeed Cause = "need"
	// CauseAlert: the alert Ref on Workload fires; CauseAlertOver: the last one
	// on it is over.
	CauseAlert     Cause = "alert"
	CauseAlertOver Cause = "alert over"
	// CauseLoan: the fast loop of a host asks for one, since Workload has borrowed for
	// long or cannot; Ref says which.
	CauseLoan Cause = "loan"
	// CauseCommand: By asked for a round. CausePause and CauseResume are the commands of those
	// names; CausePaused is a round while paused.
	CauseCommand Cause = "command"
	CausePause   Cause = "pause"
	CauseResume  Cause = "resume"
	CausePaused  Cause = "paused"
	// CauseApply: By asked to carry out the recommendation Ref; CauseRefused:
	// that was refused, Text says why.
	CauseApply   Cause = "apply"
	CauseRefused Cause = "apply refused"
)

// Binding is a kind of constraint that stops more.
type Binding string

// The constraints. Detail says more of some of them.
const (
	// BindingNone: nothing stops it from having more.
	BindingNone Binding = "none"
	// BindingCapacity: there is no more, of the resource in Detail, or of the pool.
	BindingCapacity Binding = "capacity"
	// BindingHost: the host in Detail has no more.
	BindingHost Binding = "host"
	// BindingMax: it has its declared maximum.
	BindingMax Binding = "max"
	// BindingDemand: more would not help.
	BindingDemand Binding = "demand"
	// BindingLeftOver: it has leftover capacity that nobody needs.
	BindingLeftOver Binding = "left over"
	// BindingUnknown: its curve is not known.
	BindingUnknown Binding = "unknown curve"
	// BindingNeed: it gets what it needs and a part of the rest; BindingIdle: all workloads have
	// that already; BindingReturned: what was lent is taken back.
	BindingNeed     Binding = "need"
	BindingIdle     Binding = "idle"
	BindingReturned Binding = "returned"
	// BindingGuard, BindingStep: a bound on moves, which Detail names.
	BindingGuard Binding = "guard"
	BindingStep  Binding = "step"
	// BindingUse: the limit follows from what it was seen to use.
	BindingUse Binding = "use"
	// BindingDefault: it is moved to its declared default.
	BindingDefault Binding = "default"
)

// Held is a kind of reason why a workload keeps what it has.
type Held string

// Why the estimate, and so the plan, keeps a workload's allocation.
const (
	// HeldMissing: an input's source reports that it has no value; HeldAbsent: the latest report
	// lacks it; HeldStale, HeldLate: it is too old, or about to be.
	HeldMissing Held = "missing"
	HeldAbsent  Held = "absent"
	HeldStale   Held = "stale"
	HeldLate    Held = "late"
	// HeldInvalid: an estimate broke its contract.
	HeldInvalid Held = "invalid"
	// HeldOther: whoever held it told no code, as builds of version 1.
	HeldOther Held = "other"
)

// Why a plan does not plan for a workload.
const (
	// HeldPaused, HeldReleased: a person asked for it.
	HeldPaused   Held = "paused"
	HeldReleased Held = "released"
	// HeldNoEstimate: there is none; HeldNothingLearnt: it has no curve; HeldOld: the estimate is
	// old, or from the future.
	HeldNoEstimate    Held = "no estimate"
	HeldNothingLearnt Held = "nothing learnt"
	HeldOld           Held = "old estimate"
	// HeldNoKnob: no host has its knob; HeldSilent: its host does not report; HeldKnob: its knob
	// cannot be used; HeldTwins: two agents claim to be its host.
	HeldNoKnob Held = "no knob"
	HeldSilent Held = "silent host"
	HeldKnob   Held = "knob"
	HeldTwins  Held = "two agents"
	// HeldUnsolved: the objective could not be solved.
	HeldUnsolved Held = "unsolved"
	// HeldRange: no whole unit is within its bounds.
	HeldRange Held = "range"
	// HeldChanged: it is not as the recommendation to apply expected.
	HeldChanged Held = "changed"
)

// Why a workload that was planned for is not moved.
const (
	// StayIdle: all workloads have what they need; StayThere: it has what the objective gives it;
	// StayBound: a constraint keeps it from that. StayTurn: its host makes more urgent changes
	// first.
	StayIdle  Held = "idle"
	StayThere Held = "there"
	StayBound Held = "bound"
	StayTurn  Held = "turn"
)
