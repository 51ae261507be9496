package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alecthomas/kong"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hint"
	"github.com/trimtab/trimtab/sim"
)

// simCmd is `trimtab sim`.
type simCmd struct {
	Cilantro simCilantroCmd `cmd:"" help:"A cluster shared by many jobs: learning policies, oracles and baselines side by side."`

	Colocate simColocateCmd `cmd:"" help:"Latency-critical services beside best-effort jobs: co-location policies side by side, with an oracle."`

	Kubernetes simKubernetesCmd `cmd:"" help:"A day of ten services whose pods take seconds to a minute to start: trimtab, HPA and KEDA at their best thresholds, an oracle."`

	Microservices simMicroservicesCmd `cmd:"" help:"One application of 19 services that share CPUs: its P99 under policies that see only that P99, or its spans."`

	Rose simRoseCmd `cmd:"" help:"Batch jobs that use what is reserved and idle: ROSE beside other ways to select machines, the paper's tables with theirs and ours."`

	Services simServicesCmd `cmd:"" help:"Three services behind CPU quotas under load that moves, with the settings of production."`
}

// simFlags are those of every simulation. A command that embeds them sets policies, rounds
// and their length, the figures that it draws, and what else a policy may be.
type simFlags struct {
	Policy  policyNames `help:"Policies to run, side by side; \"all\" for every one${own=.}" default:"${policies}" placeholder:"NAME,..."`
	Rounds  int         `help:"Rounds of ${length}, 1 to 100000." default:"${rounds}"`
	Seeds   int         `help:"Runs of each policy, 1 to 10000." default:"5"`
	Seed    uint64      `help:"Seed of the first run." default:"1"`
	Threads int         `help:"Runs at the same time, 0 to 1024; 0: one per core." default:"0"`
	Output  string      `short:"o" help:"Form of the output: ${enum}." enum:"text,json,yaml" default:"text"`
	Plot    string      `help:"Directory to draw the paper's ${figures} into, as SVG." type:"path" placeholder:"DIR"`
}

// Validate is called by kong.
func (f *simFlags) Validate() error { return within(f.ranges()...) }

func (f *simFlags) ranges() []ranged {
	return []ranged{{"rounds", float64(f.Rounds), 1, 100_000}, {"seeds", float64(f.Seeds), 1, 10_000}, {"threads", float64(f.Threads), 0, 1024}}
}

// chosen are the policies to run, each once; "all" stands for every known one.
func (f *simFlags) chosen(known []string) (names []string) {
	for _, p := range f.Policy {
		of := []string{p}
		if p == "all" {
			of = known
		}
		for _, name := range of {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// policyNames are separated by commas, but for those within parentheses.
type policyNames []string

// Decode is called by kong, for every time that the flag is given.
func (p *policyNames) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("policies", &text); err != nil {
		return fmt.Errorf("read policies: %w", err)
	}
	depth, start := 0, 0
	for i, r := range text + "," {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && (depth <= 0 || i == len(text)):
			*p = append(*p, strings.TrimSpace(text[start:i]))
			start = i + 1
		}
	}
	return nil
}

// ranged is a flag with the least and the greatest value that make sense; its
// help names them.
type ranged struct {
	flag             string
	value, low, high float64
}

// within returns an error for the first flag that is not in its range.
func within(flags ...ranged) error {
	for _, f := range flags {
		if !(f.value >= f.low && f.value <= f.high) {
			return trimtab.Invalidf("--%s is %v: want %s", f.flag, f.value, f.span())
		}
	}
	return nil
}

// span is the range as it is written.
func (f *ranged) span() string {
	return plain(f.low) + " to " + plain(f.high)
}

func plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// plottable makes the directory for figures and tries to write there, so that a bad
// one is refused before a run of minutes.
func plottable(dir string) error {
	if dir == "" {
		return nil
	}
	const what = "name a directory that can be made and written with --plot"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return hint.Add(fmt.Errorf("make directory for figures: %w", err), what)
	}
	f, err := os.CreateTemp(dir, ".figure-*")
	if err != nil {
		return hint.Add(fmt.Errorf("write into directory for figures: %w", err), what)
	}
	if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
		return fmt.Errorf("write into directory for figures: %w", err)
	}
	return nil
}

// cutShort is the error of a simulation that was told to stop, after what was finished
// of it was printed; nil: it was not.
func cutShort(ctx context.Context, finished int) error {
	switch {
	case ctx.Err() == nil:
		return nil
	case finished == 0:
		return fmt.Errorf("run simulation: nothing was finished: %w", ctx.Err())
	}
	return fmt.Errorf("run simulation: only what was finished is printed: %w", ctx.Err())
}

// counted runs work under a progress bar; work calls done after each part.
func counted(out io.Writer, what string, total int, work func(done func()) error) error {
	bar := newProgress(out, what, total)
	var parts atomic.Int64
	over := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() {
		every := time.NewTicker(200 * time.Millisecond)
		defer every.Stop()
		for {
			select {
			case <-over:
				return
			case <-every.C:
				bar.at(int(parts.Load()))
			}
		}
	})
	err := work(func() { parts.Add(1) })
	close(over)
	shown.Wait()
	bar.done()
	return err
}

// parallel returns a runner on so many threads; each iteration writes only
// what is its own, so the figures are the same for any number. Once ctx is
// done, no iteration begins.
func parallel(ctx context.Context, threads int) sim.Runner {
	if threads < 1 {
		threads = runtime.GOMAXPROCS(0)
	}
	return func(n int, work func(i int)) {
		var next atomic.Int64
		var all sync.WaitGroup
		for range min(threads, n) {
			all.Go(func() {
				for ctx.Err() == nil {
					i := int(next.Add(1)) - 1
					if i >= n {
						return
					}
					work(i)
				}
			})
		}
		all.Wait()
	}
}

// stopwatch returns the time since the call.
func stopwatch() sim.Watch {
	begin := time.Now()
	return func() time.Duration { return time.Since(begin) }
}

// readFile reads one input file with parse, and names it in errors.
func readFile[T any](name string, parse func(io.Reader, string) (T, error)) (T, error) {
	f, err := os.Open(name)
	if err != nil {
		var none T
		return none, fmt.Errorf("read %s: %w", filepath.Base(name), err)
	}
	defer f.Close()
	return parse(f, filepath.Base(name))
}

// didYouMean is a hint for a word that is none of the known ones.
func didYouMean(word string, known []string) string {
	best, least := "", len(word)/2+1
	for _, k := range known {
		if d := edits(word, k); d < least {
			best, least = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q? There are: %s", best, strings.Join(known, ", "))
	}
	return "there are: " + strings.Join(known, ", ")
}

// edits is the number of letters to insert, delete or replace between a and b.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		corner := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			corner, row[j] = row[j], min(row[j]+1, row[j-1]+1, corner+cost)
		}
	}
	return row[len(b)]
}
