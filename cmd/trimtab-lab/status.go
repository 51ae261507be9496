package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/trimtab/trimtab/internal/cli"
)

// statusLine shows what is being done, once a command has taken two seconds: on one line of a
// terminal, elsewhere with a line now and then. A step reported as "n of m" is shown with an
// estimate of its remaining time.
type statusLine struct {
	out         io.Writer
	begun, last time.Time
	// step is what is being done without its count, from first of it at since.
	step  string
	first int
	since time.Time
}

// newStatusLine begins now.
func newStatusLine(out io.Writer) *statusLine { return &statusLine{out: out, begun: time.Now()} }

// say sets what is being done from now on.
func (s *statusLine) say(doing string) {
	now := time.Now()
	left := s.left(doing, now)
	every := 200 * time.Millisecond
	if !cli.IsTerminal(s.out) {
		every = cli.LineEvery
	}
	if now.Sub(s.begun) < 2*time.Second || now.Sub(s.last) < every || every == cli.LineEvery && now.Sub(s.begun) < every {
		return
	}
	s.last = now
	text := fmt.Sprintf("%s (%.0f s%s)", doing, now.Sub(s.begun).Seconds(), left)
	if every == cli.LineEvery {
		fmt.Fprintln(s.out, text)
		return
	}
	fmt.Fprintf(s.out, "\r%s\x1b[K", text)
}

// left returns the remaining time of a step reported as "n of m".
func (s *statusLine) left(doing string, now time.Time) string {
	at := strings.LastIndex(doing, " of ")
	if at < 0 {
		return ""
	}
	before := strings.LastIndexByte(doing[:at], ' ') + 1
	var n, m int
	if _, err := fmt.Sscanf(doing[before:], "%d of %d", &n, &m); err != nil {
		return ""
	}
	if step := doing[:before]; step != s.step || n < s.first {
		s.step, s.first, s.since = step, n, now
	}
	if left := cli.Left(float64(n-s.first)/float64(max(m-s.first, 1)), now.Sub(s.since)); left != "" {
		return ", " + left + " of this"
	}
	return ""
}

// clear removes the line from a terminal.
func (s *statusLine) clear() {
	if !s.last.IsZero() && cli.IsTerminal(s.out) {
		fmt.Fprint(s.out, "\r\x1b[K")
	}
}
