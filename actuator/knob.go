package actuator

import (
	"context"
	"errors"

	"github.com/trimtab/trimtab"
)

// ErrBarred: the knob can be read but not set, because another program sets it (as long as
// that program is there), or because it cannot be set here at all. It is planned for as in
// mode recommend.
var ErrBarred = errors.New("it is only recommended")

// Knob is one limit that can be set for one target on this host. An implementation does
// only the reads and the one write; epoch, clamp, compare, journal and lease are the
// actuator's work. It is not safe for concurrent use.
type Knob interface {
	// String names kind and place, as in "cgroup v2 shop.slice/checkout".
	String() string
	// Resource is the resource that it limits: "cpu" (cores), "workers" (processes), and so
	// on.
	Resource() string
	// Probe says whether the knob is there and can be read: nil, or an error
	// that is trimtab.ErrUnsupported (this kernel cannot) or any other cause.
	Probe(ctx context.Context) error
	// MayWrite says, without an effect, whether a Write would be let through: nil, or an
	// error that is trimtab.ErrRefused (somebody else owns it) or any other cause. It need
	// not be called in mode recommend.
	MayWrite(ctx context.Context) error
	// Read returns the value in force, unless the knob has [Traits].Effective.
	Read(ctx context.Context) (trimtab.Amount, error)
	// Nearest returns the value to write for a: one that is kept, and reads back
	// as it is, so that a quantised value is compared with itself. A value that
	// was read can be written again, too.
	Nearest(a trimtab.Amount) trimtab.Amount
	// Write sets the value with one effect. It does not read back.
	Write(ctx context.Context, a trimtab.Amount) error
	// Undo describes the knob for the journal: enough for Reopen in another
	// process, without the configuration, to restore it.
	Undo() []byte
	// Close releases what the knob has open; nothing of it is used afterwards but
	// String, Resource and Undo. Closing it again does nothing. What it turns
	// stays as it is.
	Close() error
	// Traits returns what else the knob can do. That does not change.
	Traits() Traits
}

// Traits are what a knob can do beyond what every knob can. It leaves nil what it cannot do.
type Traits struct {
	// Pace is how many writes a second the server of the knob takes of this process; 0: no bound
	// is known. A step of a plan makes no more of them than fit in its time, so that what the plan
	// says is done long before its lease ends, and the next plan, which renews the lease, decides
	// on the rest anew.
	Pace float64
	// Unit returns the systemd unit whose control group is turned; "": none's. It does not change.
	Unit func() string
	// Place returns the absolute path of what is turned, without links in it: the same for all
	// processes of this host that turn it. One of them at a time does.
	Place func() (string, error)
	// Effective returns the value in force, of a knob whose values take effect some time after
	// they were written, or never: that of before, or one asked for since. Read returns what was
	// asked for last, from the write on.
	Effective func(ctx context.Context) (trimtab.Amount, error)
	// Hopeless says why what was asked for last will not come into force, "" while it may. The
	// actuator then puts back what is in force, and leaves the knob alone for a minute. A knob
	// with this function is remote: it belongs to a system with a control loop of its own, such
	// as Kubernetes, where another program may begin to set the same limit at any time. The
	// actuator then calls MayWrite at every heartbeat.
	Hopeless func(ctx context.Context) string
	// Version names the state that Read returned last, of a knob whose server counts changes;
	// "": none was read. A value that was changed and put back meanwhile is another version:
	// nothing that was decided before is written over it.
	Version func() string
	// Mark is the same for as long as nothing changed that the knob tells; the zero Mark: that is
	// not known. A heartbeat does not read a knob whose mark is as it was, but for one in ten
	// seconds: what the clock alone changes is seen as late. A plan reads it all the same.
	Mark func() Mark
	// Standing returns what is known of where in a cluster its instance is, or what bounds it
	// from above; nil: nothing is.
	Standing func(ctx context.Context) *trimtab.Standing
	// InForce returns why what was read last reads back and does nothing; nil: nothing says so.
	InForce func() error
	// Floor returns the least value that may be set now, since so much is in use; Nearest keeps
	// it as it is. The actuator clamps to it; a Write below it returns trimtab.ErrRefused and has
	// no effect. The knob may always be raised.
	Floor func(ctx context.Context) (trimtab.Amount, error)
	// Recall takes over what an Undo of an earlier process describes, of a knob of several parts,
	// such as containers. Its Undo has the value of each part before the first write. Parts may be
	// added later, so Undo is written to the journal again before each write.
	Recall func(undo []byte) error
	// TakesOver reports whether an Undo is one of this kind, where one of another kind may have
	// been at its place before, as the limit of a container is where its request was turned.
	// Another's is put back before this one is turned.
	TakesOver func(undo []byte) bool
	// Restore puts back exactly what was there when Undo of this knob, perhaps in another process,
	// returned undo, and reads it back. It is no error if that is there already. It is for a
	// baseline that is more than an amount, such as a set of cores: the same number of other
	// cores would not be the baseline. Its error is trimtab.ErrRefused if another program has
	// changed it meanwhile, and trimtab.ErrUnsupported if the baseline cannot be restored by any
	// means.
	Restore func(ctx context.Context, undo []byte) error
	// Settle takes back what the knob sets beside the amount, once that is as before.
	Settle func() error
	// Scale is how many times as large an amount is now as the same setting was for the knob that
	// undo describes, where amounts are in proportion to a unit of the configuration; not a
	// number > 0: that cannot be told.
	Scale func(undo []byte) float64
	// Quick moves it many times a second, inside an envelope.
	Quick Quick
	// Pressure is how long all tasks of the group waited for a CPU, as a total in seconds that
	// counts stops by quotas too; false where the kernel does not tell.
	Pressure func() (total float64, ok bool)
	// Weigh sets how much the group counts where CPUs are short, beside a quota, to that of so
	// many cores; it does nothing before ReadyWeight succeeded, which prepares for it before the
	// knob is journaled.
	Weigh       func(cores float64) error
	ReadyWeight func() error
	// Shared is set where the amount is a share by weight of what a group above has.
	Shared Shared
}

// remote reports whether others may turn the knob at any time.
func (t *Traits) remote() bool { return t.Hopeless != nil }

// notInForce is why what a knob is set to does nothing, "" where nothing says so.
func (t *Traits) notInForce() string {
	if t.InForce != nil {
		if err := t.InForce(); err != nil {
			return err.Error()
		}
	}
	return ""
}

// Mark names a state of what is watched.
type Mark struct {
	// Of is the knob's own object, as a pointer that a change replaces, and Changes counts
	// those of all others that the knob looks at.
	Of      any
	Changes uint64
}

// Quick is a knob that a host moves many times a second, inside an envelope.
type Quick interface {
	// Ready prepares for it, before the knob is journaled; with burst, what a period
	// leaves over may be saved. Its error is trimtab.ErrUnsupported where it cannot be
	// moved so, and says why.
	Ready(burst bool) error
	// Look reads what is set, and what the group used, at the cost of a few microseconds.
	Look() (Counters, error)
	// Move sets an amount and a burst, in the resource's unit, and reads the amount back.
	// It raises no parent.
	Move(v trimtab.Amount, burst float64) (found trimtab.Amount, err error)
}

// Shared is a knob whose amount is a share by weight of what a group above has: its target
// has that much at every instant at which it wants it, and what others leave idle, too.
type Shared interface {
	// Fit lowers what else bounds the target to what the group above is about to have, where
	// that is less: version 1 of cgroups refuses a group above that has less than one below it.
	Fit(ctx context.Context, above trimtab.Amount) error
	// Adopted reports whether nothing bounds the target but the share, the operator's most and
	// the group above, which has that much.
	Adopted(ctx context.Context, above trimtab.Amount) (bool, error)
	// Adopt lifts what else bounds it. What a restore puts back is in Undo.
	Adopt(ctx context.Context, above trimtab.Amount) error
	// Cap says whether the share is a limit, too, from the next Adopt on; Capped is what was
	// said.
	Cap(on bool)
	Capped() bool
	// Reserves reports whether the amount is room on a machine, too, that nobody else is placed
	// in, as a request of Kubernetes is: see [trimtab.KnobState].
	Reserves() bool
	// Contended reports whether, since it was asked last, some seconds ago at most, a limit
	// above was used up most of the time, by the kernel's count: then what one target has
	// there another lacks. False: nothing says so.
	Contended() bool
}

// Counters are what a look at a [Quick] knob finds: Used and Stalled are totals in
// seconds, of CPU time and of time in which the quota stopped the group, which counts
// once however many CPUs stood still.
type Counters struct {
	Set           trimtab.Amount
	Used, Stalled float64
}
