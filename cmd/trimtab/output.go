package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// printed writes v as JSON or YAML, or calls text for every other form.
func printed(w io.Writer, form string, v any, text func(io.Writer)) error {
	if form != "json" && form != "yaml" {
		text(w)
		return nil
	}
	b, err := json.MarshalIndent(v, "", "  ")
	if err == nil && form == "yaml" {
		b, err = yaml.JSONToYAML(b)
	}
	if err != nil {
		return fmt.Errorf("print answer: %w", err)
	}
	_, err = fmt.Fprintln(w, strings.TrimRight(string(b), "\n"))
	return err
}

// progress tells how far a long command is, on one line of a terminal; it
// prints nothing elsewhere, and nothing in the first second.
type progress struct {
	out     io.Writer
	what    string
	total   int // 0: unknown
	begun   time.Time
	printed time.Time
}

// newProgress starts a line about what, of total steps; 0 when unknown.
func newProgress(out io.Writer, what string, total int) *progress {
	if !isTerminal(out) {
		out = io.Discard
	}
	now := time.Now()
	return &progress{out: out, what: what, total: total, begun: now, printed: now}
}

// at tells that n steps are done.
func (p *progress) at(n int) {
	now := time.Now()
	if now.Sub(p.begun) < time.Second || now.Sub(p.printed) < 200*time.Millisecond {
		return
	}
	p.printed = now
	if p.total == 0 {
		fmt.Fprintf(p.out, "\r%s: %d\x1b[K", p.what, n)
		return
	}
	const width = 30
	full := width * min(n, p.total) / p.total
	fmt.Fprintf(p.out, "\r%s [%s%s] %d of %d\x1b[K", p.what, strings.Repeat("=", full), strings.Repeat(" ", width-full), n, p.total)
}

// done clears the line.
func (p *progress) done() {
	if p.printed != p.begun {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
