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
	var spans []outcome
	for _, s := range senders() {
		if named.MatchString(s.Name) && (s.Core || !o.core) {
			spans = append(spans, outcome{sender: s})
		}
	}
	var series []scraped
	for _, s := range scrapers() {
		if named.MatchString(s.Name) && !o.core {
			series = append(series, scraped{scraper: s})
		}
	}
	var alerts []alerted
	for _, n := range notifiers() {
		if named.MatchString(n.Name) && !o.core {
			alerts = append(alerts, alerted{notifier: n})
		}
	}
	for i := range spans {
		spans[i].Missing = h.install(ctx, &spans[i].sender)
		if spans[i].Missing == nil {
			spans[i].Missing = h.installBetween(ctx, spans[i].Route)
		}
	}
	for i := range series {
		series[i].Missing = h.installScraper(ctx, &series[i].scraper)
	}
	for i := range alerts {
		alerts[i].Missing = h.installNotifier(ctx, &alerts[i].notifier)
	}
	if o.install {
		return installed(spans, series, alerts)
	}
	var work []func()
	for i := range spans {
		if spans[i].Missing == nil {
			work = append(work, func() { spans[i] = p.play(ctx, spans[i].sender) })
		}
	}
	for i := range series {
		if series[i].Missing == nil {
			work = append(work, func() { series[i] = p.scrape(ctx, series[i].scraper) })
		}
	}
	for i := range alerts {
		if alerts[i].Missing == nil {
			work = append(work, func() { alerts[i] = p.notify(ctx, alerts[i].notifier) })
		}
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

// installed says what could not be installed.
func installed(spans []outcome, series []scraped, alerts []alerted) error {
	var missing []error
	for _, o := range spans {
		missing = append(missing, o.Missing)
	}
	for _, o := range series {
		missing = append(missing, o.Missing)
	}
	for _, o := range alerts {
		missing = append(missing, o.Missing)
	}
	return errors.Join(missing...)
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
