// Coverage measures whether the 90% bands of a learner hold their level: for
// each curve and number of reports, the share of the true curve inside the
// band (mean over the seeds, allocations uniform), the median width relative
// to Wilson's interval for the reports of one of 96 bins, the same ten rounds
// after performance drops by 30%, and how often the learner forgot without a
// change. One independent point per seed is judged by the exact binomial test
// against the level. The target is a share of .87 for every row, a width of at
// most 2, and at most one false reset in 10,000 rounds; it fails when missed.
//
//	go run ./internal/bench/coverage -seeds 200
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

	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/bintree"
	"github.com/trimtab/trimtab/analyzer/learn/gp"
	"github.com/trimtab/trimtab/analyzer/learn/learntest"
)

const level = 0.9

func main() {
	seeds := flag.Int("seeds", 200, "independent runs per curve")
	counts := flag.String("counts", "60,600,2160,20000", "numbers of reports to look after")
	only := flag.String("curve", "", "only curves whose name holds this")
	learner := flag.String("learner", "default", "default or bintree")
	flag.Parse()
	if err := run(*seeds, *counts, *only, *learner); err != nil {
		fmt.Fprintln(os.Stderr, "coverage:", err)
		os.Exit(1)
	}
}

func run(seeds int, counts, only, name string) error {
	fresh := func() learn.Learner { l, _ := gp.New(level); return l }
	if name == "bintree" {
		fresh = func() learn.Learner { l, _ := bintree.New(level); return l }
	}
	study := learntest.Study{Seeds: seeds, From: 1, Drop: 0.7}
	for _, v := range strings.Split(counts, ",") {
		n, err := strconv.Atoi(v)
		if err != nil {
			return fmt.Errorf("read counts: %w", err)
		}
		study.Counts = append(study.Counts, n)
	}
	curves, err := profiles(os.Getenv("TRIMTAB_DATA"))
	if err != nil {
		return err
	}
	curves = append(curves, append(learntest.Curves(), learntest.HardCurves()...)...)
	curves = slices.DeleteFunc(curves, func(c learntest.Curve) bool { return !strings.Contains(c.Name, only) })
	fmt.Println(learntest.FindingHeader())
	all := make([][]learntest.Finding, len(curves))
	var group sync.WaitGroup
	slots := make(chan struct{}, 2)
	for i, c := range curves {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			all[i] = learntest.Uniform(fresh, c, study)
		})
	}
	group.Wait()
	return judge(slices.Concat(all...))
}

func judge(all []learntest.Finding) error {
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
		if p := f.Likely(level); p < 1e-3 {
			mark += fmt.Sprintf(" p=%.1g", p)
		}
		least = min(least, f.Share)
		fmt.Println(f.Text() + mark)
	}
	last := map[string]learntest.Finding{}
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
