package speculation

import (
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/valid"
)

// Candidates is the message that selects hosts for speculative tasks: versioned bits over the
// list of all machines, which is in a bucket.
type Candidates struct {
	Pool string `json:"pool"`
	// Message is encoded by package planner/machines.
	Message []byte `json:"message"`
}

// MaxCandidates bounds the bytes of one message.
const MaxCandidates = 1 << 20

// Kind returns KindCandidates.
func (c *Candidates) Kind() trimtab.Kind { return KindCandidates }

// Key returns the pool.
func (c *Candidates) Key() string { return c.Pool }

// Validate checks name and size; the reader of the message checks its content.
func (c *Candidates) Validate() error {
	if err := valid.Named("candidates of pool", c.Pool); err != nil {
		return err
	}
	if n := len(c.Message); n < 1 || n > MaxCandidates {
		return trimtab.Invalidf("candidates of %s: %d bytes: want 1 to %d", c.Pool, n, MaxCandidates)
	}
	return nil
}
