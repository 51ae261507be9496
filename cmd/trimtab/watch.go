package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/trimtab/trimtab/internal/cli"
)

// watchEvery is the time between two questions of --watch without a value.
const watchEvery = 2 * time.Second

// every is the value of --watch, --watch=5s; 0: once.
type every time.Duration

// IsBool allows the flag without a value.
func (*every) IsBool() bool { return true }

// Decode reads the duration behind "=".
func (e *every) Decode(ctx *kong.DecodeContext) error {
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		*e = every(watchEvery)
		return nil
	}
	text := fmt.Sprint(ctx.Scan.Pop().Value)
	d, err := time.ParseDuration(text)
	if err != nil || d < 100*time.Millisecond {
		return fmt.Errorf("want a time of at least 100ms, as in --watch=5s, not %q", text)
	}
	*e = every(d)
	return nil
}

// watchFlags are embedded in commands that can repeat.
type watchFlags struct {
	Watch every `help:"Print again every 2s, or at the given interval (--watch=5s), until Ctrl-C." group:"Connection and output:"`
}

// repeat shows once, or repeatedly until ctx ends. While watching, it shows an error and tries
// again, so that a restart of trimtab does not end the watch.
func (f watchFlags) repeat(ctx context.Context, t terminal, show func(context.Context, terminal) error) error {
	if f.Watch == 0 {
		return show(ctx, t)
	}
	tick := time.NewTicker(time.Duration(f.Watch))
	defer tick.Stop()
	for {
		f.draw(ctx, t, show)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// draw shows the state once. On a terminal it replaces the former output.
func (f watchFlags) draw(ctx context.Context, t terminal, show func(context.Context, terminal) error) {
	var b strings.Builder
	err := show(ctx, terminal{&b, t.err})
	if ctx.Err() != nil {
		return
	}
	if cli.IsTerminal(t.out) {
		// Cursor home, each line cleared behind its text, then clear below: clearing the screen
		// first would flicker.
		fmt.Fprint(t.out, "\x1b[H", strings.ReplaceAll(b.String(), "\n", "\x1b[K\n"))
		defer fmt.Fprint(t.out, "\x1b[J")
	} else {
		fmt.Fprint(t.out, b.String())
	}
	if err != nil && !errors.Is(err, errChanges) {
		cli.PrintError(t.err, "trimtab", err)
	}
}

// Run asks and prints.
func (c *statusCmd) Run(ctx context.Context, t terminal) error { return c.repeat(ctx, t, c.once) }

// Run asks and prints.
func (c *planCmd) Run(ctx context.Context, t terminal) error { return c.repeat(ctx, t, c.once) }

// Run asks and prints; exit code 2 when something differs.
func (c *diffCmd) Run(ctx context.Context, t terminal) error { return c.repeat(ctx, t, c.once) }
