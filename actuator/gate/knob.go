package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"path"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/adminapi"
)

// Lease is the time after which an envelope expires unless it is renewed. An actuator reads its
// knobs every 1 to 5 s, so several reads may fail before the envelope expires.
const Lease = 20 * time.Second

// most is the largest limit that a gate accepts, in requests.
const most = 1 << 20

// Config names the gate.
type Config struct {
	// URL is the address of the gate's admin API: http://HOST:PORT, or unix:/PATH.
	URL string `json:"url"`
}

// Limit is the knob for the number of requests that a gate lets its service work on at once. It is
// an [actuator.Knob].
type Limit struct {
	config Config
	// kept is the limit that this knob set and that its reads renew; unlimited: it set none.
	kept trimtab.Amount
	// adopts says that the limit in force was set by an earlier process, so that the next Read
	// takes it over.
	adopts bool
}

// Kind describes this kind of knob. The path of a location is the URL of the gate's admin API. The
// kind does not measure how many requests the service could serve at once.
func Kind() actuator.Kind {
	return actuator.Kind{
		Name: "gate", Resources: []string{trimtab.Concurrency},
		Probe: func(at actuator.Location) (actuator.Location, error) {
			_, _, err := adminapi.Dialed(at.Path)
			return at, err
		},
		Find: func(context.Context, actuator.Location) ([]actuator.Instance, error) {
			return nil, fmt.Errorf("find gates: each is declared: %w", trimtab.ErrUnsupported)
		},
		Open: func(at actuator.Location, _ string) (actuator.Knob, error) {
			return actuator.OrNil(Open(Config{URL: at.Path}))
		},
		Reopen: actuator.Reopens(Reopen),
	}
}

// Open checks the URL. It does not connect: Probe reports whether the gate answers.
func Open(c Config) (*Limit, error) {
	if _, _, err := adminapi.Dialed(c.URL); err != nil {
		return nil, err
	}
	return &Limit{config: c, kept: trimtab.Unlimited()}, nil
}

// Traits returns the optional abilities of this knob.
func (k *Limit) Traits() actuator.Traits {
	return actuator.Traits{Location: k.Location, Recall: k.Recall}
}

// kind is the format name in what Undo returns.
const kind = "gate-limit/1"

// Reopen opens the knob that undo describes; see [actuator.Reopen].
func Reopen(undo []byte) (*Limit, error) { return actuator.Reopen(kind, undo, Open) }

// Undo describes the knob for Reopen.
func (k *Limit) Undo() []byte { return actuator.UndoOf(kind, k.config) }

// Recall makes the next Read adopt and renew the limit that an earlier process set.
func (k *Limit) Recall(b []byte) error {
	_, err := Reopen(b)
	k.adopts = err == nil
	return err
}

// String names the gate.
func (k *Limit) String() string { return "gate " + k.config.URL }

// Resource returns "concurrency".
func (k *Limit) Resource() string { return trimtab.Concurrency }

// Location returns the gate's address as its identity. It is not a file: that a gate has lost its
// envelope does not mean that another program changed it.
func (k *Limit) Location() (string, error) {
	network, address, err := adminapi.Dialed(k.config.URL)
	return path.Join("/gate", network, address), err
}

// Close does nothing: the envelope expires with its lease.
func (k *Limit) Close() error { return nil }

// Probe returns an error if the gate does not answer.
func (k *Limit) Probe(ctx context.Context) error {
	_, err := k.get(ctx)
	return err
}

// MayWrite returns an error if the gate does not answer: every client that can connect to it may
// also set its limit.
func (k *Limit) MayWrite(ctx context.Context) error { return k.Probe(ctx) }

func (k *Limit) get(ctx context.Context) (limits, error) {
	l, err := call(ctx, k.config.URL, http.MethodGet, nil)
	if err != nil {
		return l, fmt.Errorf("read %s: %w", k, err)
	}
	return l, nil
}

// Read returns the max of the envelope. If this knob set the envelope, Read renews its lease; it
// lets an envelope that another program set expire.
func (k *Limit) Read(ctx context.Context) (trimtab.Amount, error) {
	l, err := k.get(ctx)
	if err != nil {
		return trimtab.Amount{}, err
	}
	v := l.max()
	if k.adopts && l.Envelope != nil && l.Envelope.LeaseLeft <= float64(Lease.Milliseconds()) {
		k.kept = v
	}
	k.adopts = false
	if v.Unlimited || v != k.kept {
		return v, nil
	}
	if err := k.put(ctx, v); err != nil {
		return trimtab.Amount{}, fmt.Errorf("renew %s: %w", k, err)
	}
	return v, nil
}

// Nearest rounds to whole requests, at least one: with a limit of 0 the service would never answer.
func (k *Limit) Nearest(a trimtab.Amount) trimtab.Amount {
	if a.Unlimited {
		return a
	}
	return trimtab.Units(math.Min(math.Max(math.Round(a.Value), 1), most))
}

// Write sets the envelope, or removes it if a is unlimited.
func (k *Limit) Write(ctx context.Context, a trimtab.Amount) error {
	err := errors.Join(ctx.Err(), a.Validate())
	if a = k.Nearest(a); err == nil && a.Unlimited {
		_, err = call(ctx, k.config.URL, http.MethodDelete, nil)
	} else if err == nil {
		err = k.put(ctx, a)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", k, err)
	}
	k.kept, k.adopts = a, false
	return nil
}

func (k *Limit) put(ctx context.Context, a trimtab.Amount) error {
	body, err := json.Marshal(struct {
		Min   float64  `json:"min"`
		Max   float64  `json:"max"`
		Rate  *float64 `json:"rate"`
		Lease int64    `json:"lease_ms"`
	}{1, a.Value, nil, Lease.Milliseconds()})
	if err == nil {
		_, err = call(ctx, k.config.URL, http.MethodPut, body)
	}
	return err
}
