package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"path"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/adminapi"
)

// Lease is the time after which an envelope expires unless it is renewed. An actuator reads its
// knobs every 1 to 5 s, so several reads may fail before the envelope expires.
const Lease = 20 * time.Second

// Config names the limit.
type Config struct {
	// URL is the address of the gate's admin API: http://HOST:PORT, or unix:/PATH.
	URL string `json:"url"`
	// Resource is [trimtab.Concurrency], which "" stands for too, or [trimtab.Rate].
	Resource string `json:"resource,omitempty"`
	// Class is the class of requests whose rate it is; "": all requests.
	Class string `json:"class,omitempty"`
	// Exact: the gate may not raise the rate by what it sees.
	Exact bool `json:"exact,omitempty"`
}

func (c *Config) validate() error {
	_, _, err := adminapi.Dialed(c.URL)
	switch {
	case err != nil:
		return err
	case !slices.Contains([]string{"", trimtab.Concurrency, trimtab.Rate}, c.Resource):
		return trimtab.Invalidf("limit of %.40q at a gate: want %s or %s", c.Resource, trimtab.Concurrency, trimtab.Rate)
	case c.Class != "" && c.Resource != trimtab.Rate:
		return trimtab.Invalidf("limit of class %.40q at a gate: only the rate has classes", c.Class)
	}
	return nil
}

// Limit is a knob for what a gate admits: the number of requests that its service works on at once, or
// the number of requests per second, of all or of one class. It is an [actuator.Knob].
type Limit struct {
	config Config
	of     form
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
		Name: "gate", Resources: []string{trimtab.Concurrency, trimtab.Rate},
		Probe: func(at actuator.Location) (actuator.Location, error) {
			_, _, err := adminapi.Dialed(at.Path)
			return at, err
		},
		Find: func(context.Context, actuator.Location) ([]actuator.Instance, error) {
			return nil, fmt.Errorf("find gates: each is declared: %w", trimtab.ErrUnsupported)
		},
		Open: func(at actuator.Location, resource string) (actuator.Knob, error) {
			c := Config{URL: at.Path, Resource: resource}
			if resource == trimtab.Rate {
				c.Class, c.Exact = at.Class, at.Exact
			}
			return actuator.OrNil(Open(c))
		},
		Reopen: actuator.Reopens(Reopen),
	}
}

// Open checks the configuration. It does not connect: Probe reports whether the gate answers.
func Open(c Config) (*Limit, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Limit{config: c, of: formOf(c.Resource), kept: trimtab.Unlimited()}, nil
}

// Traits returns the optional abilities of this knob.
func (k *Limit) Traits() actuator.Traits {
	return actuator.Traits{Location: k.Location, Recall: k.Recall}
}

// kind and rateKind are the format names in what Undo returns. Releases that know no rate refuse the
// latter.
const kind, rateKind = "gate-limit/1", "gate-rate/1"

// Reopen opens the knob that undo describes; see [actuator.Reopen].
func Reopen(undo []byte) (*Limit, error) {
	k, err := actuator.Reopen(kind, undo, Open)
	if errors.Is(err, trimtab.ErrUnsupported) {
		return actuator.Reopen(rateKind, undo, Open)
	}
	return k, err
}

// Undo describes the knob for Reopen.
func (k *Limit) Undo() []byte {
	if k.Resource() == trimtab.Rate {
		return actuator.UndoOf(rateKind, k.config)
	}
	return actuator.UndoOf(kind, Config{URL: k.config.URL})
}

// Recall makes the next Read adopt and renew the limit that an earlier process set.
func (k *Limit) Recall(b []byte) error {
	_, err := Reopen(b)
	k.adopts = err == nil
	return err
}

// String names the gate, and the limit if it is a rate.
func (k *Limit) String() string {
	switch {
	case k.Resource() == trimtab.Concurrency:
		return "gate " + k.config.URL
	case k.config.Class == "":
		return "rate of gate " + k.config.URL
	}
	return "rate of class " + k.config.Class + " of gate " + k.config.URL
}

// Resource returns "concurrency" or "rate".
func (k *Limit) Resource() string { return cmp.Or(k.config.Resource, trimtab.Concurrency) }

// Location returns the gate's address as its identity, with the limit if it is a rate. It is not a
// file: that a gate has lost its envelope does not mean that another program changed it.
func (k *Limit) Location() (string, error) {
	network, address, err := adminapi.Dialed(k.config.URL)
	at := path.Join("/gate", network, address)
	if k.Resource() == trimtab.Rate {
		at = path.Join(at, trimtab.Rate, url.PathEscape(k.config.Class))
	}
	return at, err
}

// Close does nothing: the envelope expires with its lease.
func (k *Limit) Close() error { return nil }

// Probe returns an error if the gate does not answer.
func (k *Limit) Probe(ctx context.Context) error {
	_, _, err := k.get(ctx)
	return err
}

// MayWrite returns an error if the gate does not answer: every client that can connect to it may
// also set its limit.
func (k *Limit) MayWrite(ctx context.Context) error { return k.Probe(ctx) }

// get returns the limit that the gate has, and the time until it expires, in milliseconds.
func (k *Limit) get(ctx context.Context) (v trimtab.Amount, left float64, err error) {
	b, err := k.call(ctx, http.MethodGet, nil)
	if err == nil {
		v, left, err = k.of.parse(b)
	}
	if err != nil {
		return v, 0, fmt.Errorf("read %s: %w", k, err)
	}
	return v, left, nil
}

// Read returns the limit. If this knob set it, Read renews its lease; it lets a limit that another
// program set expire.
func (k *Limit) Read(ctx context.Context) (trimtab.Amount, error) {
	v, left, err := k.get(ctx)
	if err != nil {
		return trimtab.Amount{}, err
	}
	if k.adopts && left <= float64(Lease.Milliseconds()) {
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

// Nearest rounds to whole requests, at least one, or to thousandths of a request per second, at least
// one: with a limit of 0 the service would never answer.
func (k *Limit) Nearest(a trimtab.Amount) trimtab.Amount {
	if a.Unlimited {
		return a
	}
	per := k.of.per
	return trimtab.Units(min(max(math.Round(a.Value*per), 1), k.of.most*per) / per)
}

// Write sets the limit, or removes it if a is unlimited.
func (k *Limit) Write(ctx context.Context, a trimtab.Amount) error {
	err := errors.Join(ctx.Err(), a.Validate())
	if a = k.Nearest(a); err == nil && a.Unlimited {
		_, err = k.call(ctx, http.MethodDelete, nil)
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
	_, err := k.call(ctx, http.MethodPut, k.of.body(a.Value, k.config.Exact))
	return err
}

// call sends one request to the gate and returns the answer. body may be nil.
func (k *Limit) call(ctx context.Context, method string, body []byte) ([]byte, error) {
	api := adminapi.API{Name: "the gate", Start: "start `trimtab gate`, or name its admin address", Most: maxAnswer}
	at := k.of.path
	if k.config.Class != "" {
		at += "/" + url.PathEscape(k.config.Class)
	}
	return api.Call(ctx, k.config.URL, method, at, body)
}
