// Coverage measures whether the 90% bands of a learner hold their level: for
// each curve and number of reports, the share of the true curve inside the
// band (mean over the seeds, allocations uniform), the median width relative
// to Wilson's interval for the reports of one of 96 bins, the same ten rounds
// after performance drops by 30%, and how often the learner forgot without a
// change. One independent point per seed is judged by the exact binomial test
// against the level. The target is a share of .87 for every row, a width of at
// most 2, and at most one false reset in 10,000 rounds; it fails when missed.
// 200 seeds take about 25 minutes of one core; -for ends it sooner, with as
// many seeds for all curves as were done by then.
//
//	go run ./lab/bench/coverage -seeds 200
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/gp"
	"github.com/trimtab/trimtab/analyzer/learn/learntest"
	"github.com/trimtab/trimtab/lab/bintree"
)

const level = 0.9

// settings are the flags.
type settings struct {
	seeds, jobs           int
	counts, only, learner string
	most                  time.Duration
}

func main() {
	var s settings
	flag.IntVar(&s.seeds, "seeds", 200, "independent runs per curve")
	flag.StringVar(&s.counts, "counts", "60,600,2160,20000", "numbers of reports to look after")
	flag.StringVar(&s.only, "curve", "", "only curves whose name holds this")
	flag.StringVar(&s.learner, "learner", "default", "default or bintree")
	flag.IntVar(&s.jobs, "jobs", 2, "curves at the same time")
	flag.DurationVar(&s.most, "for", 0, "end after this time, with fewer seeds; 0: never")
	flag.Parse()
	if err := run(&s); err != nil {
		fmt.Fprintln(os.Stderr, "coverage:", err)
		os.Exit(1)
	}
}

// batch is how many seeds all curves are run for between two looks at the time.
const batch = 5

func run(s *settings) error {
	fresh := func() learn.Learner { l, _ := gp.New(level); return l }
	if s.learner == "bintree" {
		fresh = func() learn.Learner { l, _ := bintree.New(level); return l }
	}
	if s.seeds < 1 || s.jobs < 1 {
		return fmt.Errorf("run study: %d seeds on %d jobs: want at least 1", s.seeds, s.jobs)
	}
	of := study{Drop: 0.7}
	for _, v := range strings.Split(s.counts, ",") {
		n, err := strconv.Atoi(v)
		if err != nil {
			return fmt.Errorf("read counts: %w", err)
		}
		of.Counts = append(of.Counts, n)
	}
	curves, err := profiles(os.Getenv("TRIMTAB_DATA"))
	if err != nil {
		return err
	}
	curves = append(curves, append(learntest.Curves(), learntest.HardCurves()...)...)
	curves = slices.DeleteFunc(curves, func(c learntest.Curve) bool { return !strings.Contains(c.Name, s.only) })
	began := time.Now()
	var all []finding
	done := 0
	for ; done < s.seeds && (s.most == 0 || done == 0 || time.Since(began) < s.most); done += of.Seeds {
		of.From, of.Seeds = uint64(1+done), min(batch, s.seeds-done)
		if found := play(fresh, curves, of, s.jobs); all == nil {
			all = found
		} else {
			all = join(all, found)
		}
		fmt.Fprintf(os.Stderr, "%d of %d seeds, %v\n", done+of.Seeds, s.seeds, time.Since(began).Round(time.Second))
	}
	fmt.Printf("%d seeds\n%s\n", done, header())
	return judge(all)
}

// play runs a study of all curves, so many at a time.
func play(fresh func() learn.Learner, curves []learntest.Curve, of study, jobs int) []finding {
	all := make([][]finding, len(curves))
	var group sync.WaitGroup
	slots := make(chan struct{}, jobs)
	for i, c := range curves {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			all[i] = of.of(fresh, c)
		})
	}
	group.Wait()
	return slices.Concat(all...)
}

func judge(all []finding) error {
	low, wide, resets, rounds := 0, 0, 0, 0
	least := 1.0
	for _, f := range all {
		mark := ""
		if f.Share < 0.87 {
			low, mark = low+1, mark+" LOW"
		}
		if f.Count > 0 && f.Width > 2 {
			wide, mark = wide+1, mark+" WIDE"
		}
		if p := f.likely(level); p < 1e-3 {
			mark += fmt.Sprintf(" p=%.1g", p)
		}
		least = min(least, f.Share)
		fmt.Println(f.text() + mark)
	}
	last := map[string]finding{}
	for _, f := range all {
		if f.Count > last[f.Curve].Count {
			last[f.Curve] = f
		}
	}
	for _, f := range last {
		resets, rounds = resets+f.Changes, rounds+f.Rounds
	}
	missed := low+wide > 0 || 10_000*resets > rounds
	fmt.Printf("least share %.3f; %d below .87, %d wider than 2; %d false resets in %d rounds\n", least, low, wide, resets, rounds)
	if missed {
		return fmt.Errorf("judge bands: a target is missed")
	}
	return nil
}

func profiles(dir string) (out []learntest.Curve, err error) {
	if dir == "" {
		fmt.Println("TRIMTAB_DATA is not set: without the recorded profiles")
		return nil, nil
	}
	for _, name := range []string{"craydb0", "craydb1", "craypredserv", "craymltrain"} {
		f, err := os.Open(filepath.Join(dir, "cilantro", "profile_"+name+".csv"))
		if err != nil {
			return nil, fmt.Errorf("read profile: %w", err)
		}
		c, err := learntest.ReadProfile(name, f, name == "craymltrain")
		if err := cmp.Or(err, f.Close()); err != nil {
			return nil, fmt.Errorf("read profile %s: %w", name, err)
		}
		out = append(out, c)
	}
	return out, nil
}
