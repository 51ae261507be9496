// Package bus says how values travel between stages: which subject, which
// guarantee, who else gets them. It is the seam; natsbus implements it on
// NATS, bustest holds the contract and an in-memory bus for the contract suite
// and the simulator.
//
// Guarantees, per [topic.Delivery]:
//
//   - Shed: at most once, never blocks the publisher, loss is counted exactly
//     by per-publisher sequence numbers ([Stats.Lost]).
//   - Answered: Publish returns nil after one consumer's handler returned nil;
//     after an error no consumer is responsible for the value: the publisher
//     still owns it.
//   - Durable: Publish returns after the value is stored. Handlers see it at
//     least once, in order per subject; a handler's error brings it again
//     after a pause, up to the limit of the table in ARCHITECTURE.md. A command
//     is stored within a second, or Publish returns an error and no handler
//     ever sees it, unless the error is [ErrInDoubt]: then no answer came, also
//     to the question what became of it, and a handler may see it.
//   - Latest: as Durable, with one value kept per subject; a new subscriber
//     first gets the last value of every key. A bus that no other process can
//     reach may hand the value over at once and store it within half a minute,
//     so after a crash the last values may be older; publishers of this kind
//     publish again all the time.
//
// Inside one process a bus may hand over the very value that was published.
//
// Values that cannot be decoded or fail Validate never reach a handler: they
// are counted and, if durable, moved to the subject trimtab.unreadable.<kind>.
//
// The package does not encode (root package does) and holds no connection.
package bus

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

// ErrNoConsumer says that an Answered value had no consumer, or that none answered in time.
var ErrNoConsumer = errors.New("no consumer")

// ErrConflict says that a bucket's key changed since it was read.
var ErrConflict = errors.New("conflict")

// ErrInDoubt says that a value was sent to be stored, and no answer came: it may be stored or not.
var ErrInDoubt = errors.New("nobody knows whether it is stored")

// ErrEnding says that the process is ending and has no more time to wait for the bus.
var ErrEnding = errors.New("the process ends")

// ErrNotFound says that a bucket does not have the key.
var ErrNotFound = errors.New("not found")

// Bus moves values. All methods are safe for concurrent use.
type Bus interface {
	// Publish sends v with the guarantee of its kind and stamps its origin.
	// It returns an error that is trimtab.ErrInvalid without sending when v
	// does not validate, and ErrNoConsumer for Answered values.
	Publish(ctx context.Context, v trimtab.Value) error
	// Subscribe starts delivery and returns when it is in force: a value published afterwards, by
	// anyone, is delivered. stop ends it, waits for a running handler, and leaves unhandled values
	// on the bus.
	Subscribe(ctx context.Context, s Subscription) (stop func(), err error)
	// Bucket opens the named key-value store, making it when it is absent.
	Bucket(ctx context.Context, name string) (Bucket, error)
	// Stats returns the counts since the bus was opened.
	Stats() Stats
	// Queues returns how much waits for each subscription of this bus now, and how many dead
	// letters there are.
	Queues(ctx context.Context) (Queues, error)
	// Close ends all subscriptions and releases the connection.
	Close() error
}

// Subscription selects values and says how to handle them.
type Subscription struct {
	Kind trimtab.Kind
	// Key selects one key; empty selects all.
	Key string
	// For says who subscribes, for those that look on ([Queue]).
	For string
	// Consumer names a group that shares the work: each value reaches one of its members, and a
	// Durable or Latest group resumes where it stopped. Empty: this subscriber alone, which gets
	// everything from now on.
	Consumer string
	// History makes a nameless subscriber to a Durable kind start with
	// everything that is still stored.
	History bool
	// MaxAge makes a group of a Durable kind, when it begins or a member joins after a pause,
	// skip values that the bus stored longer ago; 0: none. On a bus that no other
	// process can reach it also skips what was stored before this process began.
	MaxAge time.Duration
	// Handle is called by one goroutine at a time per subscription. nil means
	// handled. For Durable and Latest an error brings the value again later;
	// for Answered it is the publisher's error; for Shed it is only counted.
	// An error that is trimtab.ErrInvalid puts a stored value aside at once,
	// since the same value fails again. ctx ends when stop is called.
	Handle func(ctx context.Context, d Delivery) error
	// Trouble, if not nil, is called with the reason why nothing can be delivered, and with nil
	// once something can. Calls do not overlap.
	Trouble func(err error)
}

// Delivery is a delivered value.
type Delivery struct {
	Value  trimtab.Value
	Origin trimtab.Origin
	// Stored is when the bus stored a Durable or Latest value; zero otherwise.
	Stored time.Time
	// Again is the number of earlier deliveries.
	Again int
}

// Bucket is a small key-value store with revisions. Keys are any text.
type Bucket interface {
	// Get returns the value and its revision (> 0), or ErrNotFound.
	Get(ctx context.Context, key string) (value []byte, revision uint64, err error)
	// Put writes unconditionally.
	Put(ctx context.Context, key string, value []byte) (revision uint64, err error)
	// Update writes if the key's revision is still the given one (0: the key
	// is absent), and returns ErrConflict otherwise.
	Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
	// Delete removes the key; an absent key is no error.
	Delete(ctx context.Context, key string) error
	// Keys lists the keys in order.
	Keys(ctx context.Context) ([]string, error)
}

// Stats counts, by kind.
type Stats struct {
	// Published and Delivered count values that were sent and handled.
	Published, Delivered map[trimtab.Kind]uint64
	// Lost counts gaps in publishers' sequences, as this subscriber saw them.
	Lost map[trimtab.Kind]uint64
	// Unreadable counts values that could not be decoded or did not validate.
	Unreadable map[trimtab.Kind]uint64
	// Again counts redeliveries.
	Again map[trimtab.Kind]uint64
	// Older counts values in the form of an older version, read as they were meant.
	Older map[trimtab.Kind]uint64
}

// Queues has the values that wait for their handlers.
type Queues struct {
	// Waiting has one entry per subscription.
	Waiting []Queue
	// Aside counts the stored dead letters, by kind.
	Aside map[trimtab.Kind]uint64
}

// Queue is the state of one subscription's queue.
type Queue struct {
	For      string
	Kind     trimtab.Kind
	Consumer string
	// Waiting counts the values that were not handled; of a group it is the
	// group's. The one that a handler has now is among them.
	Waiting uint64
	// Again counts the waiting values that were delivered before.
	Again uint64
	// Oldest is when the bus stored the first waiting value of a Durable or Latest kind; zero
	// when none waits.
	Oldest time.Time
}

// Subject returns "trimtab.<kind>.<key>" with the key escaped as one token: letters, digits, '-'
// and '_' stay, any other byte is "=XX" in hexadecimal; the empty key is "=".
func Subject(k trimtab.Kind, key string) string {
	return "trimtab." + string(k) + "." + EscapeKey(key)
}

// EscapeKey escapes one key; see [Subject].
func EscapeKey(key string) string {
	if key == "" {
		return "="
	}
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(key) {
		switch c := key[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
			b.WriteByte(c)
		default:
			b.WriteByte('=')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}

// UnescapeKey reverses EscapeKey; ok is false when s is not its output.
func UnescapeKey(s string) (key string, ok bool) {
	if s == "=" {
		return "", true
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '=' {
			b = append(b, s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", false
		}
		hi, lo := strings.IndexByte("0123456789ABCDEF", s[i+1]), strings.IndexByte("0123456789ABCDEF", s[i+2])
		if hi < 0 || lo < 0 {
			return "", false
		}
		b = append(b, byte(hi<<4|lo))
		i += 2
	}
	return string(b), EscapeKey(string(b)) == s
}
