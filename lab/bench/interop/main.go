package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"sync"
	"time"
)

func main() {
	var only, cache, out string
	var during time.Duration
	var beside int
	var core, install bool
	flag.StringVar(&only, "only", ".", "senders to try, a regular expression on their names")
	flag.StringVar(&cache, "cache", "", "where senders are installed; empty: ~/.cache/trimtab-interop")
	flag.StringVar(&out, "o", "", "file to print the page to; empty: standard output")
	flag.DurationVar(&during, "for", time.Minute, "how long each is asked")
	flag.IntVar(&beside, "beside", 3, "how many senders run at a time")
	flag.BoolVar(&core, "core", false, "only those that make integration tries")
	flag.BoolVar(&install, "install", false, "install and try nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, options{only: only, cache: cache, out: out, during: during, beside: beside, core: core, install: install})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	only, cache, out string
	during           time.Duration
	beside           int
	core, install    bool
}

// trial is one row of the page before it is played.
type trial struct {
	// missing is where the row says why it has no figures.
	missing *error
	install func() error
	play    func()
}

func run(ctx context.Context, o options) error {
	h, err := open(".", o.cache)
	if err != nil {
		return err
	}
	named, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("read -only: %w", err)
	}
	trimtab, err := filepath.Abs("bin/trimtab")
	if err != nil {
		return fmt.Errorf("find trimtab: %w", err)
	}
	p := &player{home: h, trimtab: trimtab, during: o.during}
	wanted := func(name string, core bool) bool { return named.MatchString(name) && (core || !o.core) }
	spans, series, alerts := rows(wanted)
	var all []trial
	for i := range spans {
		r := &spans[i]
		all = append(all, trial{&r.Missing, func() error { return h.install(ctx, &r.sender) }, func() { *r = p.play(ctx, r.sender) }})
	}
	for i := range series {
		r := &series[i]
		all = append(all, trial{&r.Missing, func() error { return h.installScraper(ctx, &r.scraper) }, func() { *r = p.scrape(ctx, r.scraper) }})
	}
	for i := range alerts {
		r := &alerts[i]
		all = append(all, trial{&r.Missing, func() error { return h.installNotifier(ctx, &r.notifier) }, func() { *r = p.notify(ctx, r.notifier) }})
	}
	var missing []error
	var work []func()
	for _, t := range all {
		if *t.missing = t.install(); *t.missing != nil {
			missing = append(missing, *t.missing)
		} else {
			work = append(work, t.play)
		}
	}
	if o.install {
		return errors.Join(missing...)
	}
	together(work, o.beside)
	text := page(o.during, spans, series, alerts)
	if o.out == "" {
		fmt.Print(text)
		return nil
	}
	if err := os.WriteFile(o.out, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// rows are those of the page, without figures.
func rows(wanted func(name string, core bool) bool) (spans []outcome, series []scraped, alerts []alerted) {
	for _, s := range senders() {
		if wanted(s.Name, s.Core) {
			spans = append(spans, outcome{sender: s})
		}
	}
	for _, s := range scrapers() {
		if wanted(s.Name, s.Core) {
			series = append(series, scraped{scraper: s})
		}
	}
	for _, n := range notifiers() {
		if wanted(n.Name, n.Core) {
			alerts = append(alerts, alerted{notifier: n})
		}
	}
	return spans, series, alerts
}

// together runs all of them, at most n at a time.
func together(work []func(), n int) {
	var wait sync.WaitGroup
	room := make(chan struct{}, max(1, n))
	for _, do := range work {
		room <- struct{}{}
		wait.Go(func() {
			defer func() { <-room }()
			do()
		})
	}
	wait.Wait()
}
