package actuator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// The keys of the journal.
const (
	positionKey   = "position"
	leaseKey      = "lease"
	pausedKey     = "paused"
	knobPrefix    = "knob/"
	releasePrefix = "released/"
	touchedPrefix = "foreign/"
	locksKey      = "locks"
)

// position identifies the newest plan that was accepted. It is durable before the first effect of
// that plan.
type position struct {
	Epoch    uint64 `json:"epoch"`
	Sequence uint64 `json:"sequence"`
	Step     int    `json:"step"`
}

// compare returns -1, 0 or +1 if p is before, at or after q.
func (p position) compare(q position) int {
	switch {
	case p == q:
		return 0
	case p.Epoch != q.Epoch:
		return sign(p.Epoch < q.Epoch)
	case p.Sequence != q.Sequence:
		return sign(p.Sequence < q.Sequence)
	}
	return sign(p.Step < q.Step)
}

func sign(before bool) int {
	if before {
		return -1
	}
	return 1
}

// lease is the time until which the allocation lasts, on the clock of one boot.
type lease struct {
	Boot  string        `json:"boot"`
	Until time.Duration `json:"until_ns"`
	// BorrowUntil is when knobs above their baselines must be lowered to them; 0: at Until.
	BorrowUntil time.Duration   `json:"borrow_until_ns,omitempty"`
	Length      trimtab.Seconds `json:"length_s"`
}

// left returns the time until the lease expires at the given boot time, at least 0.
func (l lease) left(boot string, now time.Duration) time.Duration {
	if l.Boot != boot {
		return 0
	}
	return max(0, l.Until-now)
}

// entry is the journal entry of a knob that was written: enough to restore it without any
// configuration.
type entry struct {
	trimtab.KnobID
	// ID is the ID of the instance; 0: the knob is declared.
	ID uint64 `json:"instance_id,omitempty"`
	// Undo is the result of Knob.Undo.
	Undo []byte `json:"undo"`
	// Baseline is the value to restore; it was read before the first write.
	Baseline trimtab.Amount `json:"baseline"`
	// Rest says that Baseline is not the value found, but a lower one to which the target falls
	// back. [Traits].Restore must not restore more either.
	Rest bool `json:"rest,omitempty"`
	// Wrote are the values that trimtab may have set: the last one that was read back, and the one
	// about to be written.
	Wrote []trimtab.Amount `json:"wrote"`
	// Free is the range in which the fast loop may set the knob; nil: it may not.
	Free *[2]float64 `json:"free,omitempty"`
	// Above says that the knob is the parent group's: it is raised first, and lowered last.
	Above bool `json:"above,omitempty"`
}

// ours reports whether trimtab wrote the value v.
func (e *entry) ours(v trimtab.Amount) bool {
	if e.free(v) {
		return true
	}
	for _, w := range e.Wrote {
		if same(v, w) {
			return true
		}
	}
	return false
}

// last returns the value that was written last, or is about to be.
func (e *entry) last() trimtab.Amount { return e.Wrote[len(e.Wrote)-1] }

// tolerance is the difference below which two amounts are the same: far below
// the quantum of any knob (1 us of 1 s), far above rounding.
const tolerance = 1e-7

func same(a, b trimtab.Amount) bool { return a.Equal(b, tolerance) }

// journalKey returns the entry's key in the journal. It leaves out pool and host, since a journal
// belongs to one of each.
func (e *entry) journalKey() string { return keyIn(knobPrefix, e.KnobID) }

func keyIn(prefix string, id trimtab.KnobID) string {
	key := prefix + id.Resource + "/" + id.Workload
	if id.Instance != "" {
		key += "\x00" + id.Instance
	}
	return key
}

// put makes the journal entry that stores v.
func put(key string, v any) hostfs.Entry {
	b, err := json.Marshal(v)
	if err != nil {
		// The types of this file cannot contain NaN, channels or cycles.
		panic("actuator: encode journal record: " + err.Error())
	}
	return hostfs.Entry{Key: key, Value: b}
}

// stored is the decoded content of a journal.
type stored struct {
	position position
	lease    lease
	paused   time.Time
	released map[string]bool
	// locks is the directory of the knobs' locks.
	locks   string
	entries []*entry
	// touched are the knobs that another program changed lately.
	touched []*touched
	// unreadable counts damaged places, and valid records with an invalid meaning.
	unreadable int
	// damage describes damage of the journal's files.
	damage hostfs.Damage
}

// whole reports whether nothing was lost: each record is valid, and one copy of the journal is
// complete, as after a kill in the middle of a write to the other.
func (s *stored) whole() bool { return !s.damage.Lost && s.unreadable == s.damage.Places }

// readState decodes what a journal holds. It counts and leaves out invalid records.
func readState(state map[string][]byte, keys []string) stored {
	s := stored{released: map[string]bool{}}
	for _, k := range keys {
		if err := s.read(k, state[k]); err != nil {
			s.unreadable++
		}
	}
	return s
}

func (s *stored) read(k string, value []byte) error {
	switch {
	case k == positionKey:
		return json.Unmarshal(value, &s.position)
	case k == leaseKey:
		return json.Unmarshal(value, &s.lease)
	case k == pausedKey:
		return json.Unmarshal(value, &s.paused)
	case k == locksKey:
		return json.Unmarshal(value, &s.locks)
	case len(k) > len(releasePrefix) && k[:len(releasePrefix)] == releasePrefix:
		s.released[k[len(releasePrefix):]] = true
		return nil
	case strings.HasPrefix(k, touchedPrefix):
		return s.readTouched(k, value)
	}
	var e entry
	old := struct {
		*entry
		Target string `json:"target"` // the name of the workload in entries of releases before trimtab.KnobID
	}{entry: &e}
	if err := json.Unmarshal(value, &old); err != nil {
		return fmt.Errorf("read journal record %q: %w", k, err)
	}
	e.Workload = cmp.Or(e.Workload, old.Target)
	if err := e.validate(); err != nil || e.journalKey() != k {
		return trimtab.Invalidf("journal record %q", k)
	}
	s.entries = append(s.entries, &e)
	return nil
}

func (e *entry) validate() error {
	if len(e.Wrote) == 0 {
		return trimtab.Invalidf("nothing was written")
	}
	for _, v := range append([]trimtab.Amount{e.Baseline}, e.Wrote...) {
		if err := v.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// scaled converts the entry's amounts to the knob's present unit, which may have changed since.
func (e *entry) scaled(can *Traits) *entry {
	if can.Scale == nil {
		return e
	}
	factor := can.Scale(e.Undo)
	if !(factor > 0) || math.IsInf(factor, 0) || factor == 1 {
		return e
	}
	out := *e
	out.Wrote = make([]trimtab.Amount, len(e.Wrote))
	scale := func(v trimtab.Amount) trimtab.Amount {
		if v.Unlimited {
			return v
		}
		return trimtab.Units(v.Value * factor)
	}
	for i, v := range e.Wrote {
		out.Wrote[i] = scale(v)
	}
	out.Baseline = scale(e.Baseline)
	return &out
}

// borrowed returns the lease of amounts above the baselines.
func (l lease) borrowed() lease {
	if l.BorrowUntil > 0 {
		l.Until = min(l.Until, l.BorrowUntil)
	}
	return l
}

// borrows reports whether a value above the baseline takes a resource that hosts share. A number of
// instances or requests does not, and neither does a parent group's quota.
func (e *entry) borrows(v trimtab.Amount) bool {
	return e.Baseline.Less(v) && e.Resource != trimtab.Replicas && !trimtab.ResourceOf(e.Resource).Apart && !e.Above
}
