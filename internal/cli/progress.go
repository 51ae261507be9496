package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Progress shows how far a long command is and about how long it still takes: on one line of a
// terminal, elsewhere with a line now and then, so that a log shows that it continues. It prints
// nothing in the first second, and elsewhere not in the first 15.
type Progress struct {
	out   io.Writer
	what  string
	total int // 0: progress is a fraction of the whole
	// lines says that out is no terminal.
	lines   bool
	begun   time.Time
	printed time.Time
}

// LineEvery is how often progress is printed as a line if the output is not a terminal.
const LineEvery = 15 * time.Second

// NewProgress starts to show the progress of what, with total steps; 0 for [Progress.Part].
func NewProgress(out io.Writer, what string, total int) *Progress {
	now := time.Now()
	return &Progress{out: out, what: what, total: total, lines: !IsTerminal(out), begun: now, printed: now}
}

// At sets that n steps are done.
func (p *Progress) At(n int) {
	p.say(float64(n)/float64(max(p.total, 1)), fmt.Sprintf("%d of %d", n, p.total))
}

// Part sets the fraction that is done, in [0, 1].
func (p *Progress) Part(done float64) { p.say(done, fmt.Sprintf("%.0f%%", 100*done)) }

func (p *Progress) say(part float64, text string) {
	now := time.Now()
	every := 200 * time.Millisecond
	if p.lines {
		every = LineEvery
	}
	if now.Sub(p.begun) < time.Second || now.Sub(p.printed) < every {
		return
	}
	p.printed = now
	if left := Left(part, now.Sub(p.begun)); left != "" {
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

// Left returns how long the rest takes at the present rate; "" while unknown.
func Left(part float64, took time.Duration) string {
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

// Done clears the line.
func (p *Progress) Done() {
	if p.printed != p.begun && !p.lines {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
