package envoy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/adminapi"
)

// Config names the limit.
type Config struct {
	// Admin is the address of the admin API: http://HOST:PORT, or unix:/PATH.
	Admin string `json:"admin"`
	// Key is circuit_breakers.CLUSTER.PRIORITY.max_requests or …max_connections.
	Key string `json:"key"`
}

func (c *Config) validate() error {
	if _, _, err := adminapi.Dialed(c.Admin); err != nil {
		return err
	}
	if !limits(c.Key) {
		return trimtab.Invalidf("runtime key %.120q of Envoy: want circuit_breakers.CLUSTER.default.max_requests, or high in place of default, or max_connections", c.Key)
	}
	return nil
}

// limits reports whether a runtime key is that of a circuit breaker that limits the requests in
// service.
func limits(key string) bool {
	cluster, ok := strings.CutPrefix(key, "circuit_breakers.")
	for _, setting := range []string{".default.max_requests", ".default.max_connections", ".high.max_requests", ".high.max_connections"} {
		if name, found := strings.CutSuffix(cluster, setting); ok && found {
			return name != "" && len(name) <= 200 && strings.IndexFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == '*' }) < 0
		}
	}
	return false
}

// Threshold is the limit of one circuit breaker in one Envoy. It is an [actuator.Knob].
type Threshold struct {
	config Config
	// admin is the name of the admin layer, in which the marker was seen; nil: no layer had it.
	admin *string
	// marked: a read found the marker after this knob last removed it. forgot: the last read found
	// none in spite of that.
	marked, forgot bool
	// allowed says that Envoy took an empty change.
	allowed bool
}

// Kind describes this kind of knob. The root of a location is the address of the admin API, its path
// the runtime key. The kind does not measure how many requests the cluster could serve at once.
func Kind() actuator.Kind {
	return actuator.Kind{
		Name: "envoy", Resources: []string{trimtab.Concurrency},
		Probe: func(at actuator.Location) (actuator.Location, error) {
			return at, (&Config{at.Root, at.Path}).validate()
		},
		Find: func(context.Context, actuator.Location) ([]actuator.Instance, error) {
			return nil, fmt.Errorf("find Envoys: each is declared: %w", trimtab.ErrUnsupported)
		},
		Open: func(at actuator.Location, _ string) (actuator.Knob, error) {
			return actuator.OrNil(Open(Config{at.Root, at.Path}))
		},
		Reopen: actuator.Reopens(Reopen),
	}
}

// Open checks the names. It does not connect: Probe reports whether Envoy answers.
func Open(c Config) (*Threshold, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Threshold{config: c}, nil
}

// Traits returns the optional abilities of this knob. It is remote: any client of the admin API may
// set the same key.
func (k *Threshold) Traits() actuator.Traits {
	return actuator.Traits{
		Location: k.Location, Hopeless: func(context.Context) string { return "" },
		Forgot: func() bool { return k.forgot },
	}
}

// kind is the format name in what Undo returns.
const kind = "envoy-runtime/1"

// Reopen opens the knob that undo describes; see [actuator.Reopen].
func Reopen(undo []byte) (*Threshold, error) { return actuator.Reopen(kind, undo, Open) }

// Undo describes the knob for Reopen.
func (k *Threshold) Undo() []byte { return actuator.UndoOf(kind, k.config) }

// String names the key and the Envoy.
func (k *Threshold) String() string { return k.config.Key + " of Envoy " + k.config.Admin }

// Resource returns "concurrency".
func (k *Threshold) Resource() string { return trimtab.Concurrency }

// Close does nothing: the knob has no open connection.
func (k *Threshold) Close() error { return nil }

// Location identifies the limit by the address of the admin API and the key.
func (k *Threshold) Location() (string, error) {
	network, address, err := adminapi.Dialed(k.config.Admin)
	return path.Join("/envoy", network, address, url.PathEscape(k.config.Key)), err
}

// look asks Envoy for its runtime.
func (k *Threshold) look(ctx context.Context) (r runtime, err error) {
	b, err := api().Call(ctx, k.config.Admin, http.MethodGet, "/runtime?format=json", nil)
	if err == nil {
		r, err = parse(b, k.config.Key)
	}
	if err != nil {
		return runtime{}, err
	}
	i := r.admin()
	if k.forgot = k.marked && i < 0; i >= 0 {
		k.admin, k.marked = &r.layers[i], true
	}
	return r, nil
}

// layer returns the index of the admin layer; -1: it is not known.
func (k *Threshold) layer(r *runtime) int {
	if k.admin == nil {
		return -1
	}
	return slices.Index(r.layers, *k.admin)
}

// Probe returns an error if Envoy does not list its runtime, or the value of the key is no number.
func (k *Threshold) Probe(ctx context.Context) error {
	_, err := k.Read(ctx)
	return err
}

// MayWrite returns an error if Envoy has no admin layer. To find out it removes a key that no
// program sets. The error is [actuator.ErrReadOnly] if another layer is known to win.
func (k *Threshold) MayWrite(ctx context.Context) error {
	r, err := k.look(ctx)
	if err == nil {
		if err = r.above(k.layer(&r)); err != nil {
			err = fmt.Errorf("%w: %w", err, actuator.ErrReadOnly)
		}
	}
	if err == nil && !k.allowed {
		err = modify(ctx, k.config.Admin, map[string]string{"trimtab.probe": ""})
		k.allowed = err == nil
	}
	if err != nil {
		return fmt.Errorf("probe %s: %w", k, err)
	}
	return nil
}

// Read returns the value in force. It is unlimited if no layer has the key, so that the cluster's
// configuration holds.
func (k *Threshold) Read(ctx context.Context) (trimtab.Amount, error) {
	r, err := k.look(ctx)
	if err != nil {
		return trimtab.Amount{}, fmt.Errorf("read %s: %w", k, err)
	}
	return r.limit, nil
}

// Nearest rounds to whole requests, and to at least one, since with 0 Envoy refuses all. Only an exact 0
// stays, so that it can be restored if it was the baseline.
func (k *Threshold) Nearest(a trimtab.Amount) trimtab.Amount {
	if a.Unlimited || a.Value == 0 {
		return a
	}
	return trimtab.Units(math.Min(math.Max(math.Round(a.Value), 1), math.MaxUint32))
}

// Write sets the key in the admin layer. It removes the key from there if a is unlimited, or equals the
// value of the layers before it. If a later layer wins, Write puts the previous value back.
func (k *Threshold) Write(ctx context.Context, a trimtab.Amount) error {
	err := errors.Join(ctx.Err(), a.Validate())
	var before runtime
	if err == nil {
		before, err = k.look(ctx)
	}
	if err == nil {
		err = k.set(ctx, &before, k.Nearest(a))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", k, err)
	}
	return nil
}

// set does the work of Write, given the runtime before.
func (k *Threshold) set(ctx context.Context, before *runtime, a trimtab.Amount) error {
	value := ""
	if !a.Unlimited {
		value = strconv.FormatUint(uint64(a.Value), 10)
	}
	if i := k.layer(before); i >= 0 && value == before.below(i) {
		value = ""
	}
	put := func(value, mark string) error {
		return modify(ctx, k.config.Admin, map[string]string{k.config.Key: value, marker(k.config.Key): mark})
	}
	if err := put(value, value); err != nil {
		return err
	}
	k.marked = false
	after, err := k.look(ctx)
	if err != nil || a.Unlimited || after.limit == a {
		return err
	}
	i := k.layer(&after)
	held := after.above(i)
	if held == nil {
		return fmt.Errorf("a restart of Envoy, or somebody else, set it to %v meanwhile: %w", after.limit, trimtab.ErrStale)
	}
	had, mark := "", ""
	if j := slices.Index(before.layers, after.layers[i]); j >= 0 {
		had, mark = before.values[j], before.marks[j]
	}
	return errors.Join(held, put(had, mark))
}
