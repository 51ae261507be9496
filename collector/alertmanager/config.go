package alertmanager

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/metric"
)

// Path is the path at which the webhook is served.
const Path = "/webhook/alertmanager"

// MaxBody bounds a request's body, in bytes.
const MaxBody = 1 << 20

// Deadline is how long the answer may take once the body was read: if not all alerts are on the
// bus by then, the answer is 503. Alertmanager is promised 500 ms.
const Deadline = 400 * time.Millisecond

// Publisher is the part of a bus in use.
type Publisher interface {
	Publish(ctx context.Context, v trimtab.Value) error
}

// Config says who may send alerts, and which workloads they can concern.
type Config struct {
	// Bus takes the alerts. Required.
	Bus Publisher
	// Metrics counts. Required.
	Metrics *metric.Set
	// Logger logs a token that cannot be read; nil: silent.
	Logger *slog.Logger
	// TokenFile is a file with the bearer token only. It is read for every request, so a change
	// takes effect at once. Empty: every request is refused with 403.
	TokenFile string
	// Workloads are the workloads that an alert can concern.
	Workloads []Workload
	// ReadTimeout bounds how long a body may take to arrive; 0 means 3 s.
	ReadTimeout time.Duration
	// Requests bounds how many requests publish at a time; 0 means 64.
	Requests int
	// HeldBytes bounds the bodies of all requests together; 0 means 8 MiB.
	HeldBytes int
}

// Workload says which alerts concern a workload: those that carry all Labels.
// Without labels, none.
type Workload struct {
	Name   string
	Labels map[string]string
}

// validate fills in the defaults, checks the rest and reads the token once, so that a wrong file
// name is an error at the start.
func (c *Config) validate() error {
	if c.Bus == nil || c.Metrics == nil {
		return trimtab.Invalidf("no bus or no metrics")
	}
	if c.ReadTimeout < 0 || c.Requests < 0 || c.HeldBytes < 0 {
		return trimtab.Invalidf("negative bound")
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.ReadTimeout = cmp.Or(c.ReadTimeout, 3*time.Second)
	c.Requests = cmp.Or(c.Requests, 64)
	c.HeldBytes = cmp.Or(c.HeldBytes, 8<<20)
	if c.TokenFile == "" {
		return nil
	}
	if _, err := readToken(c.TokenFile); err != nil {
		return fmt.Errorf("read token: %w", err)
	}
	return nil
}
