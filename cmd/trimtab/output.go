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

// progress tells how far a long command is and about how long it still takes: on one
// line of a terminal, elsewhere with a line now and then, so that a log shows that it
// goes on. It says nothing in the first second, and elsewhere not in the first 15.
type progress struct {
	out   io.Writer
	what  string
	total int // 0: told in parts of the whole
	// lines tells that out is no terminal.
	lines   bool
	begun   time.Time
	printed time.Time
}

// lineEvery is how often a line tells of progress where there is no terminal.
const lineEvery = 15 * time.Second

// newProgress starts to tell about what, of total steps; 0 for [progress.part].
func newProgress(out io.Writer, what string, total int) *progress {
	now := time.Now()
	return &progress{out: out, what: what, total: total, lines: !isTerminal(out), begun: now, printed: now}
}

// at tells that n steps are done.
func (p *progress) at(n int) {
	p.say(float64(n)/float64(max(p.total, 1)), fmt.Sprintf("%d of %d", n, p.total))
}

// part tells that a part of all is done, in [0, 1].
func (p *progress) part(done float64) { p.say(done, fmt.Sprintf("%.0f%%", 100*done)) }

func (p *progress) say(part float64, text string) {
	now := time.Now()
	every := 200 * time.Millisecond
	if p.lines {
		every = lineEvery
	}
	if now.Sub(p.begun) < time.Second || now.Sub(p.printed) < every {
		return
	}
	p.printed = now
	if left := leftOf(part, now.Sub(p.begun)); left != "" {
		text += ", " + left
	}
	if p.lines {
		fmt.Fprintf(p.out, "%s: %s\n", p.what, text)
		return
	}
	const width = 30
	full := int(width * min(max(part, 0), 1))
	fmt.Fprintf(p.out, "\r%s [%s%s] %s\x1b[K", p.what, strings.Repeat("=", full), strings.Repeat(" ", width-full), text)
}

// leftOf says how long the rest takes if it goes on as it did; "" while nothing can be
// said.
func leftOf(part float64, took time.Duration) string {
	if !(part > 0 && part < 1) {
		return ""
	}
	left := time.Duration(float64(took) * (1 - part) / part)
	if left > 100*24*time.Hour {
		return ""
	}
	return "about " + roughly(left) + " left"
}

// roughly rounds a time as people do.
func roughly(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", max(1, d.Seconds()))
	case d < 10*time.Minute:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60/10*10)
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return fmt.Sprintf("%.1f h", d.Hours())
}

// done clears the line.
func (p *progress) done() {
	if p.printed != p.begun && !p.lines {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
