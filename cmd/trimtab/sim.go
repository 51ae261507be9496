package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trimtab/trimtab/sim"
)

// simCmd is `trimtab sim`.
type simCmd struct {
	Cilantro simCilantroCmd `cmd:"" help:"A cluster shared by many jobs: learning policies, oracles and baselines side by side."`

	Microservices simMicroservicesCmd `cmd:"" help:"One application of 19 services that share CPUs: its P99 under policies that see nothing else, or its spans."`
}

// simFlags are those of every simulation. Who embeds them sets policies, rounds
// and their length, and the figures that it draws.
type simFlags struct {
	Policy  []string `help:"Policies to run, side by side; \"all\" for every one." default:"${policies}" placeholder:"NAME,..."`
	Rounds  int      `help:"Rounds of ${length}." default:"${rounds}"`
	Seeds   int      `help:"Runs of each policy." default:"5"`
	Seed    uint64   `help:"Seed of the first run." default:"1"`
	Threads int      `help:"Runs at the same time; 0: one per core." default:"0"`
	Output  string   `short:"o" help:"Form of the output: ${enum}." enum:"text,json,yaml" default:"text"`
	Plot    string   `help:"Directory to draw the paper's ${figures} into, as SVG." type:"path" placeholder:"DIR"`
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
