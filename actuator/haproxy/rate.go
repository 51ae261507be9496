package haproxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/haproxy"
)

// Lease is the time after which HAProxy ends a rate that is not renewed, to a second. An actuator reads
// its knobs every 1 to 5 s, so several reads may fail before.
const Lease = 20 * time.Second

// RateConfig names the rate of a backend with the lines of `trimtab init haproxy`.
type RateConfig struct {
	Socket  string `json:"socket"`
	Backend string `json:"backend"`
	// Map is the map file that the lines read.
	Map string `json:"map"`
	// Class is the class of requests whose rate it is; "": all requests.
	Class string `json:"class,omitempty"`
}

func (c *RateConfig) rate() *haproxy.Classes { return &haproxy.Classes{Backend: c.Backend, Map: c.Map} }

func (c *RateConfig) validate() error {
	if _, _, err := haproxy.Dialed(c.Socket); err != nil {
		return err
	}
	if c.Class != "" && !haproxy.Plain(c.Class) {
		return trimtab.Invalidf("class %.40q of HAProxy: want letters, digits, -, _, . and :", c.Class)
	}
	return c.rate().Validate()
}

// Rate is how many requests per second HAProxy admits to a backend, of all or of one class, by an
// entry of its map. It is an [actuator.Knob]. Each read renews its lease. A reload or restart of
// HAProxy ends the rate until the next plan sets it.
type Rate struct {
	config RateConfig
	// kept is the rate that this knob set and that its reads renew; unlimited: it set none.
	kept trimtab.Amount
	// adopts says that the rate in force was set by an earlier process, so that the next Read takes
	// it over.
	adopts bool
}

// OpenRate checks the configuration. It does not connect.
func OpenRate(c RateConfig) (*Rate, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Rate{config: c, kept: trimtab.Unlimited()}, nil
}

// rateKind is the format name in what Undo returns.
const rateKind = "haproxy-rate/1"

// ReopenRate opens the knob that undo describes; see [actuator.Reopen].
func ReopenRate(undo []byte) (*Rate, error) { return actuator.Reopen(rateKind, undo, OpenRate) }

// rateAt converts a location into a configuration: the path is BACKEND/MAP.
func rateAt(at actuator.Location) (RateConfig, error) {
	backend, file, _ := strings.Cut(at.Path, "/")
	c := RateConfig{Socket: at.Root, Backend: backend, Map: "/" + file, Class: at.Class}
	return c, c.validate()
}

// Undo describes the knob for ReopenRate.
func (k *Rate) Undo() []byte { return actuator.UndoOf(rateKind, k.config) }

// Traits returns the optional abilities of this knob.
func (k *Rate) Traits() actuator.Traits {
	return actuator.Traits{Location: k.Location, Recall: k.Recall}
}

// Recall makes the next Read adopt and renew the rate that an earlier process set.
func (k *Rate) Recall(b []byte) error {
	_, err := ReopenRate(b)
	k.adopts = err == nil
	return err
}

// String names the rate.
func (k *Rate) String() string {
	if k.config.Class == "" {
		return "rate of HAProxy backend " + k.config.Backend
	}
	return "rate of class " + k.config.Class + " of HAProxy backend " + k.config.Backend
}

// Resource returns "rate".
func (k *Rate) Resource() string { return trimtab.Rate }

// Location identifies the rate by its socket. It is not a file: that a HAProxy has lost it does not
// mean that another program changed it.
func (k *Rate) Location() (string, error) {
	network, address, err := haproxy.Dialed(k.config.Socket)
	return path.Join("/haproxy", network, address, k.config.Backend, trimtab.Rate, k.config.Class), err
}

// Close does nothing: the rate ends with its lease.
func (k *Rate) Close() error { return nil }

// Probe returns an error if HAProxy has no such backend or map.
func (k *Rate) Probe(ctx context.Context) error {
	_, err := k.entries(ctx)
	return err
}

// MayWrite returns an error if HAProxy has no such map. Whoever reaches the socket may set it: HAProxy
// 2.6 asks for no level.
func (k *Rate) MayWrite(ctx context.Context) error { return k.Probe(ctx) }

// entries reads the map, and checks that it has what this knob sets.
func (k *Rate) entries(ctx context.Context) (map[string]uint64, error) {
	text, err := haproxy.Ask(ctx, k.config.Socket, k.config.rate().Show())
	var read map[string]uint64
	if err == nil {
		read, err = haproxy.ParseMap(text)
	}
	for _, key := range []string{haproxy.RateKeyOf(k.config.Class), haproxy.RateUntilKey} {
		if _, ok := read[key]; err == nil && !ok {
			err = fmt.Errorf("the map %s has no entry %s: write it anew with `trimtab init haproxy --map`, and reload HAProxy: %w", k.config.Map, key, trimtab.ErrUnsupported)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", k, err)
	}
	return read, nil
}

// Read returns the rate in force. If this knob set it, Read renews its lease; it lets a rate that
// another program set end.
func (k *Rate) Read(ctx context.Context) (trimtab.Amount, error) {
	read, err := k.entries(ctx)
	if err != nil {
		return trimtab.Amount{}, err
	}
	v, until, now := trimtab.Unlimited(), read[haproxy.RateUntilKey], uint64(time.Now().Unix())
	if n := read[haproxy.RateKeyOf(k.config.Class)]; n < haproxy.None && until > now {
		v = trimtab.Units(float64(n))
	}
	if k.adopts && until <= now+uint64(Lease/time.Second) {
		k.kept = v
	}
	k.adopts = false
	if v.Unlimited || v != k.kept {
		return v, nil
	}
	if err := k.set(ctx, v); err != nil {
		return trimtab.Amount{}, fmt.Errorf("renew %s: %w", k, err)
	}
	return v, nil
}

// Nearest rounds to whole requests per second, at least one: with a rate of 0 nothing would ever be
// answered.
func (k *Rate) Nearest(a trimtab.Amount) trimtab.Amount {
	if a.Unlimited {
		return a
	}
	return trimtab.Units(min(max(math.Round(a.Value), 1), haproxy.None-1))
}

// Write sets the rate, or ends it if a is unlimited.
func (k *Rate) Write(ctx context.Context, a trimtab.Amount) error {
	err := errors.Join(ctx.Err(), a.Validate())
	if a = k.Nearest(a); err == nil {
		_, err = k.entries(ctx) // HAProxy must have what is set
	}
	if err == nil {
		err = k.set(ctx, a)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", k, err)
	}
	k.kept, k.adopts = a, false
	return nil
}

func (k *Rate) set(ctx context.Context, a trimtab.Amount) error {
	v := cmp.Or(int(a.Value), haproxy.None)
	text, err := haproxy.Ask(ctx, k.config.Socket, k.config.rate().SetRate(k.config.Class, v, time.Now().Add(Lease).Unix())...)
	if err == nil {
		err = haproxy.Set(text)
	}
	return err
}
