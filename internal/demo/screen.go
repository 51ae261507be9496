package demo

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/demo/loadgen"
)

// linesEvery is how often an output that is no terminal gets a line.
const linesEvery = 5 * time.Second

// Screen shows the demo: a table that is redrawn in place on a terminal, or
// lines elsewhere.
type Screen struct {
	Out io.Writer
	// Live redraws in place; Color uses colours.
	Live, Color bool

	drawn    int // lines to go back over
	lastLine time.Duration
}

// NewScreen checks out and the environment: it redraws on a terminal unless headless, and uses
// colour unless NO_COLOR is set or the terminal is dumb.
func NewScreen(out *os.File, headless bool) *Screen {
	_, err := unix.IoctlGetTermios(int(out.Fd()), unix.TCGETS)
	dumb := os.Getenv("TERM") == "dumb"
	live := err == nil && !headless && !dumb
	if size, err := unix.IoctlGetWinsize(int(out.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 && size.Col < columns {
		// A row that wraps cannot be drawn over.
		live = false
	}
	return &Screen{Out: out, Live: live, Color: live && os.Getenv("NO_COLOR") == ""}
}

// frame is the content of one screen.
type frame struct {
	// phase is the number-th of so many; "": those are over.
	phase       string
	number, of  int
	at, day     time.Duration
	setup       *Setup
	results     []loadgen.Result
	allocations []float64
}

func (s *Screen) printf(format string, args ...any) { fmt.Fprintf(s.Out, format, args...) }

// paint wraps text in an SGR sequence.
func (s *Screen) paint(sgr, text string) string {
	if !s.Color {
		return text
	}
	return "\x1b[" + sgr + "m" + text + "\x1b[0m"
}

const (
	green, red, blue, bold, dim = "32", "31", "34", "1", "2"
)

// shortDay leaves too few reports for curves of a whole day.
const shortDay = 40 * time.Second

// opening prints which phases will be played, on which machine, and where else to look.
func (s *Screen) opening(r *run, m Machine) {
	knob := "CPU of cgroups"
	if r.setup.Knob == KnobProcess {
		knob = "number of worker processes"
	}
	s.printf("%d CPUs, %.3g cores of them free.\nPool of %.3g %s for %d services; knob: %s; seed %d.\n",
		m.CPUs, m.Free, r.setup.Capacity, trimtab.ResourceOf(r.setup.Resource).Unit, len(r.setup.Services), knob, r.Seed)
	day := r.length.Round(time.Second)
	if slices.Contains(r.phases, Kernel) {
		s.printf("One day in %v by the kernel alone: one quota for all, equal weights;\nthe same day with equal shares, while trimtab only watches and learns;\nthen with trimtab in charge. Ctrl-C stops and restores all.\n", day)
	} else {
		s.printf("One day in %v with equal shares, while trimtab only watches and learns;\nthen the same day again with trimtab in charge. Ctrl-C stops and restores all.\n", day)
	}
	if m.busy() {
		s.printf("%s: other programs use about %.2g of %d cores.\nLatencies are noisy then, and SLOs missed: end them, or try again later.\n",
			s.paint(red, "This machine is busy"), float64(m.CPUs)-m.Free, m.CPUs)
	}
	if r.length < shortDay {
		s.printf("That is short: little can be learned in it. make demo FOR=6m shows more.\n")
	}
}

// usual is the default address at which commands look for trimtab.
const usual = "http://127.0.0.1:9600"

// page says where a person can look.
func (s *Screen) page(address, service string) {
	switch address {
	case "":
	case usual:
		s.printf("Page: %s\nIn another terminal: trimtab status, trimtab explain %s\n", address, service)
	default:
		s.printf("Page: %[1]s\nIn another terminal: export TRIMTAB_URL=%[1]s\nand then: trimtab status, trimtab explain %[2]s\n", address, service)
	}
}

// draw shows f.
func (s *Screen) draw(f *frame) {
	if !s.Live {
		s.line(f)
		return
	}
	var b strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn)
	}
	rows := s.table(f)
	for _, row := range rows {
		b.WriteString(row + "\x1b[K\n")
	}
	s.drawn = len(rows)
	_, _ = io.WriteString(s.Out, b.String())
}

// commit leaves the drawn lines on the screen.
func (s *Screen) commit() { s.drawn, s.lastLine = 0, 0 }

// columns is the width of the picture.
const columns = 79

// table is the picture.
func (s *Screen) table(f *frame) []string {
	share := min(1, f.at.Seconds()/f.day.Seconds())
	hour := int(share * 24 * 60)
	left := max(0, f.day-f.at) + time.Duration(f.of-f.number)*f.day
	rows := []string{"",
		fmt.Sprintf("%s  %s  %02d:%02d of the day, %s left", s.paint(bold, title(f)), bar(share, 24), hour/60, hour%60, left.Round(time.Second)),
		s.paint(dim, fmt.Sprintf("%-8s %8s %6s %7s %7s  %-17s %s", "service", "SLO", "req/s", "p95", "p99", "in time / SLO", fmt.Sprintf("of %.3g %s", f.setup.Capacity, trimtab.ResourceOf(f.setup.Resource).Unit))),
	}
	for i, svc := range f.setup.Services {
		rows = append(rows, s.row(svc, &f.results[i], f, i))
	}
	return rows
}

func (s *Screen) row(svc *Service, r *loadgen.Result, f *frame, i int) string {
	slo := fmt.Sprintf("%-17s", "   -")
	if p, ok := r.Attained(); ok {
		mark, sgr := "ok  ", green
		if p < svc.SLO.Fraction {
			mark, sgr = "MISS", red
		}
		slo = s.paint(sgr, fmt.Sprintf("%3.0f%% / %.0f%% %s", floor(p), svc.SLO.Fraction*100, mark)) + "   "
	}
	allocation := "-"
	if f.allocations != nil {
		a := f.allocations[i]
		allocation = s.paint(blue, bar(a/f.setup.Capacity, 10)) + fmt.Sprintf(" %.3g", a)
	}
	return fmt.Sprintf("%-8s %8s %6.1f %7s %7s  %s %s", svc.Name, "<"+milliseconds(svc.SLO.Latency.Seconds()), r.Rate(), latencyAt(r, 0.95), latencyAt(r, 0.99), slo, allocation)
}

// line writes the state as one line for a log.
func (s *Screen) line(f *frame) {
	if f.at-s.lastLine < linesEvery {
		return
	}
	s.lastLine = f.at
	var b strings.Builder
	fmt.Fprintf(&b, "%-7s %3.0f%%", cmp.Or(f.phase, "kept"), 100*min(1, f.at.Seconds()/f.day.Seconds()))
	for i, svc := range f.setup.Services {
		r := &f.results[i]
		p, _ := r.Attained()
		fmt.Fprintf(&b, " | %s %.0f/s p95 %s slo %.0f%%", svc.Name, r.Rate(), latencyAt(r, 0.95), p*100)
		if f.allocations != nil {
			fmt.Fprintf(&b, " has %.3g", f.allocations[i])
		}
	}
	s.printf("%s\n", b.String())
}

// title names the phase, in one width.
func title(f *frame) string {
	if f.phase == "" {
		return fmt.Sprintf("%-20s", "trimtab in charge")
	}
	return fmt.Sprintf("%d/%d %-16s", f.number, f.of, called(f.phase))
}

// called returns a phase's name for people.
func called(phase string) string {
	if phase == Kernel {
		return "the kernel alone"
	}
	return phase + " shares"
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// floor is a share in whole percent that never looks met when it is not.
func floor(share float64) float64 { return math.Floor(100*share + 1e-9) }

// bar draws a share of width cells.
func bar(share float64, width int) string {
	full := int(max(0, min(1, share))*float64(width) + 0.5)
	return strings.Repeat("█", full) + strings.Repeat("░", width-full)
}

func latencyAt(r *loadgen.Result, q float64) string {
	v, ok := r.Latency.Quantile(q)
	if !ok {
		return "-"
	}
	return milliseconds(v)
}

func milliseconds(seconds float64) string { return fmt.Sprintf("%.0fms", seconds*1e3) }

// summary compares the phases and says in words what changed. It includes each service's
// allocation if that fits.
func (s *Screen) summary(r *Report) {
	if len(r.Phases) == 0 {
		return
	}
	heads, width := fmt.Sprintf("%-8s %8s %8s", "in time", "p99", "share"), 26
	if len(r.Phases) > 2 {
		heads, width = heads[:17], 17
	}
	s.printf("\n%-8s %13s", "", "")
	for _, p := range r.Phases {
		s.printf("  %-*s", width, called(p.Name))
	}
	s.printf("\n%-8s %13s", "service", "SLO")
	for range r.Phases {
		s.printf("  %s", heads)
	}
	s.printf("\n")
	for i := range r.Phases[0].Services {
		first := &r.Phases[0].Services[i]
		s.printf("%-8s %13s", first.Name, fmt.Sprintf("%.0f%% <%s", first.SLO.Fraction*100, milliseconds(first.SLO.LatencyMS/1e3)))
		for _, p := range r.Phases {
			v := &p.Services[i]
			sgr, mark := green, " "
			if !v.SLOMet {
				sgr, mark = red, "!"
			}
			s.printf("  %s %8s", s.paint(sgr, fmt.Sprintf("%6.1f%%%s", v.SLOAttained*100, mark)), milliseconds(v.P99/1e3))
			if len(r.Phases) <= 2 {
				s.printf(" %8.3g", v.Allocation)
			}
		}
		s.printf("\n")
	}
	for _, row := range []struct {
		name string
		of   func(*Phase) float64
	}{{"least utility", func(p *Phase) float64 { return p.MinUtility }}, {"mean utility", func(p *Phase) float64 { return p.Social }}} {
		s.printf("%-22s", row.name)
		for i := range r.Phases {
			s.printf("  %7.3f", row.of(&r.Phases[i]))
			if i < len(r.Phases)-1 {
				s.printf("%*s", width-7, "")
			}
		}
		s.printf("\n")
	}
	s.printf("\n")
	for _, p := range r.Phases {
		s.printf("%s: %s\n", capital(called(p.Name)), verdict(&p))
	}
	if said := r.compare(); said != "" {
		s.printf("%s\n", said)
	}
	if r.Interrupted {
		s.printf("The last day was cut short: it cannot be compared.\n")
	}
	restored := "limits are what they were before"
	if !r.Restored {
		restored = s.paint(red, "limits were NOT all restored")
	}
	s.printf("Never more than %.3g of %.3g %s given out; %s.\n%d rounds, seed %d.\n",
		r.MaxAllocatedSum, r.Capacity, trimtab.ResourceOf(r.Resource).Unit, restored, r.Rounds, r.Seed)
}

// same is the difference of two utilities that means nothing.
const same = 0.01

// compare says whether trimtab was better than the kernel alone; "": not both were played.
func (r *Report) compare() string {
	kernel, learned := r.phase(Kernel), r.phase(Learned)
	if kernel == nil || learned == nil || r.Interrupted {
		return ""
	}
	switch {
	case learned.MinUtility > kernel.MinUtility+same:
		return "trimtab served the least of them better than the kernel alone did."
	case learned.MinUtility < kernel.MinUtility-same:
		return "The kernel alone did better: this load fits the pool, and quotas give away what is\nidle. See \"For whom\" in README.md."
	}
	return "The kernel alone did as well: where the load fits, it is all that you need."
}

// phase returns a phase that was played; nil: it was not.
func (r *Report) phase(name string) *Phase {
	for i := range r.Phases {
		if r.Phases[i].Name == name {
			return &r.Phases[i]
		}
	}
	return nil
}

// verdict says which services missed the SLO over the whole phase.
func verdict(p *Phase) string {
	var missed []string
	for _, v := range p.Services {
		if !v.SLOMet {
			missed = append(missed, fmt.Sprintf("%s %.0f%%/%.0f%%", v.Name, floor(v.SLOAttained), v.SLO.Fraction*100))
		}
	}
	if len(missed) == 0 {
		return "every SLO was met."
	}
	return "missed by " + strings.Join(missed, ", ") + "."
}
