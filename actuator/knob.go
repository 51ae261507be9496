package actuator

import (
	"context"
	"errors"

	"github.com/trimtab/trimtab"
)

// ErrReadOnly says that the knob can be read but not set, because another program sets it (as long as
// that program exists), or because this process cannot set it at all. The planner only recommends
// values for it.
var ErrReadOnly = errors.New("it is only recommended")

// Knob is one limit that can be set for one target on this host. An implementation only reads and
// writes the value; the actuator does the rest: epoch, clamp, compare, journal and lease. It is not
// safe for concurrent use.
type Knob interface {
	// String returns the kind and the location, as in "cgroup v2 shop.slice/checkout".
	String() string
	// Resource returns the resource that the knob limits: "cpu" (cores), "workers" (processes), and
	// so on.
	Resource() string
	// Probe returns an error if the knob does not exist or cannot be read; trimtab.ErrUnsupported
	// if the kernel does not offer it.
	Probe(ctx context.Context) error
	// MayWrite finds out, without an effect, whether a Write would be allowed. Its error is
	// trimtab.ErrRefused if another program owns the knob. It need not be called in mode recommend.
	MayWrite(ctx context.Context) error
	// Read returns the value in force, unless the knob has [Traits].Effective.
	Read(ctx context.Context) (trimtab.Amount, error)
	// Nearest rounds a to a value that the knob can store exactly, so that it reads back unchanged.
	// It does not change a value that was read.
	Nearest(a trimtab.Amount) trimtab.Amount
	// Write sets the value in one operation. It does not read back.
	Write(ctx context.Context, a trimtab.Amount) error
	// Undo describes the knob for the journal, so that Reopen can restore it in another process
	// without the configuration.
	Undo() []byte
	// Close releases open files and connections. Afterwards only String, Resource and Undo may be
	// called. Closing it again does nothing. The limit stays as it is.
	Close() error
	// Traits returns the optional abilities of the knob, which do not change.
	Traits() Traits
}

// Traits are the optional abilities of a knob. Those that it does not have are nil.
type Traits struct {
	// Pace is how many writes a second the server of the knob accepts from this process; 0: no
	// limit is known. A step of a plan makes only as many as fit into its time, so that it ends
	// long before its lease expires. The next plan, which renews the lease, decides on the rest.
	Pace float64
	// Unit returns the systemd unit whose control group the knob sets; "": it is no unit's. It does
	// not change.
	Unit func() string
	// Location returns the absolute path of what the knob sets, with symbolic links resolved, so that
	// all processes of this host have the same path for it. Only one process at a time sets it.
	Location func() (string, error)
	// Effective returns the value in force. It is for a knob whose values take effect some time
	// after they were written, or never. Read then returns the value written last.
	Effective func(ctx context.Context) (trimtab.Amount, error)
	// Hopeless returns why the value written last will not take effect; "": it may still. The
	// actuator then writes the value in force, and leaves the knob alone for a minute. A knob with
	// this function is remote: it belongs to a system with a control loop of its own, such as
	// Kubernetes, where another program may begin to set the same limit at any time. The actuator
	// then calls MayWrite at every heartbeat.
	Hopeless func(ctx context.Context) string
	// Forgot reports whether the server of a remote knob has lost what was set there, as a restart
	// does. That the last Read found the baseline then does not mean that another program put it
	// back.
	Forgot func() bool
	// SetBy names the program that set the value of the last Read, as the server of a remote knob tells
	// it; "": it is not known, or is trimtab.
	SetBy func() string
	// Version identifies the state that Read returned last, for a knob whose server counts changes;
	// "": none was read. If a value was changed and changed back, the version differs, so that a
	// plan made before does not overwrite it.
	Version func() string
	// Mark changes whenever a value that the knob reports may have changed; the zero Mark: unknown.
	// A heartbeat reads a knob with an unchanged mark only every ten seconds, so a change that
	// comes only from the passing of time is seen that late. A plan always reads it.
	Mark func() Mark
	// Status returns where in a cluster the knob's instance is, and what limits it from above;
	// nil: unknown.
	Status func(ctx context.Context) *trimtab.KnobStatus
	// InForce returns why the value read last has no effect; nil: no reason is known.
	InForce func() error
	// Floor returns the least value that may be set now, because that much is in use. Nearest does
	// not change it. The actuator clamps to it; a Write below it returns trimtab.ErrRefused and has
	// no effect. Raising the knob is always allowed.
	Floor func(ctx context.Context) (trimtab.Amount, error)
	// Recall restores the state of a knob with several parts, such as containers, from the Undo of
	// an earlier process. Its Undo has the value of each part before the first write. Parts may be
	// added later, so Undo is written to the journal again before each write.
	Recall func(undo []byte) error
	// TakesOver reports whether an Undo belongs to this kind of knob. Another kind may have set the
	// same location before, as the limit of a container shares its location with the request. The
	// other kind's change is undone before this knob is set.
	TakesOver func(undo []byte) bool
	// Restore restores exactly the state at the time when Undo of this knob, perhaps in another
	// process, returned undo, and reads it back. It is no error if that state is there already. It
	// is for a baseline that is more than an amount, such as a set of cores: the same number of
	// other cores would not be the baseline. Its error is trimtab.ErrRefused if another program has
	// changed it meanwhile, and trimtab.ErrUnsupported if the baseline cannot be restored by any
	// means.
	Restore func(ctx context.Context, undo []byte) error
	// Settle resets the settings that the knob makes beside the amount, once the amount is
	// restored.
	Settle func() error
	// Beside returns why a setting that the knob makes beside the amount is left alone; "": it is not.
	// That does not keep the amount from being set.
	Beside func() string
	// Scale returns the ratio between the amount of a setting now and the amount of the same
	// setting for the knob that undo describes. The two differ if the configured unit of the amount
	// changed. A result that is not > 0 means unknown.
	Scale func(undo []byte) float64
	// Quick lets a fast loop move the knob many times a second, inside an envelope.
	Quick Quick
	// Pressure returns the total time that all tasks of the group waited for a CPU at once, in
	// seconds, including time in which a quota throttled them; false: the kernel does not report
	// it.
	Pressure func() (total float64, ok bool)
	// Weigh sets the weight of the group, beside its quota, to that of so many cores. The weight
	// matters when CPUs are short. Weigh does nothing before ReadyWeight succeeded, which must be
	// called before the knob is journaled.
	Weigh       func(cores float64) error
	ReadyWeight func() error
	// Reclaim has the kernel take memory away from the group, as much as it finds up to so many bytes, and
	// sets nothing.
	Reclaim func(bytes float64) error
	// Shared is set if the amount is a share by weight of the parent group's quota.
	Shared Shared
	// WriteWith writes an amount and that of another knob of the same instance in one operation, or
	// neither, a Shared one as well. Its error is trimtab.ErrRefused if each may still be written alone.
	WriteWith func(ctx context.Context, a trimtab.Amount, other Knob, b trimtab.Amount) error
}

// remote reports whether other programs may set the knob at any time.
func (t *Traits) remote() bool { return t.Hopeless != nil }

// setBy is SetBy, "" where the knob has none.
func (t *Traits) setBy() string {
	if t.SetBy == nil {
		return ""
	}
	return t.SetBy()
}

// notInForce returns why the knob's value has no effect; "": no reason is known.
func (t *Traits) notInForce() string {
	if t.InForce != nil {
		if err := t.InForce(); err != nil {
			return err.Error()
		}
	}
	return ""
}

// Mark identifies a state of the objects on which a knob's value depends.
type Mark struct {
	// Of is a pointer to the knob's own object, which every change replaces; Changes counts the
	// changes of all other objects that the knob reads.
	Of      any
	Changes uint64
}

// Quick is a knob that the fast loop may move many times a second, inside an envelope.
type Quick interface {
	// Ready prepares the knob before it is journaled. With burst, CPU time that the group leaves in
	// a period may be saved for a later one. The error is trimtab.ErrUnsupported, with the reason,
	// if the knob cannot be moved quickly.
	Ready(burst bool) error
	// Look reads the value and the group's usage in a few microseconds.
	Look() (Counters, error)
	// Move sets an amount and a burst, in the resource's unit, and reads the amount back. It does
	// not raise a parent's limit.
	Move(v trimtab.Amount, burst float64) (found trimtab.Amount, err error)
}

// Shared is a knob whose amount is a share by weight of the parent group's quota. Its target gets
// that amount whenever it needs it, and may also use what others leave idle.
type Shared interface {
	// Fit lowers the target's own quota to the parent's next quota if that is less: version 1 of
	// cgroups refuses a parent's quota below a child's.
	Fit(ctx context.Context, above trimtab.Amount) error
	// Adopted reports whether only the share, the operator's maximum and the parent group's quota,
	// which is above, limit the target.
	Adopted(ctx context.Context, above trimtab.Amount) (bool, error)
	// Adopt removes the target's own quota. Undo has what a restore needs to set it again.
	Adopt(ctx context.Context, above trimtab.Amount) error
	// Cap sets whether the share is also a limit, from the next Adopt on; Capped returns it.
	Cap(on bool)
	Capped() bool
	// Reserves reports whether the amount also reserves capacity of a machine against other
	// workloads, as a request of Kubernetes does: see [trimtab.KnobState].
	Reserves() bool
	// Contended reports whether the quota of a parent was used up most of the time since the last
	// call, a few seconds ago, by the kernel's count. Then targets below it take CPU time from each
	// other. False may also mean unknown.
	Contended() bool
}

// Counters are the readings of a [Quick] knob. Used is the total CPU time, Stalled the total time
// in which the quota throttled the group, both in seconds. Stalled counts once however many CPUs
// stood still.
type Counters struct {
	Set           trimtab.Amount
	Used, Stalled float64
}
