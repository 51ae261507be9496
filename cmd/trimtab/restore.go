package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/kinds"
	"github.com/trimtab/trimtab/actuator/process"
	agent "github.com/trimtab/trimtab/agent/beside"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/hint"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/site"
)

// restoreCmd is `trimtab restore`, which systemd runs as ExecStopPost.
type restoreCmd struct {
	Storage string `name:"storage.path" help:"The directory that trimtab ran with." default:"${storage}" type:"path"`
	Config  string `name:"config.file" help:"The configuration that trimtab ran with: needed where kubernetes.journal keeps the journal in the cluster." type:"path" placeholder:"FILE"`
}

// Example is shown by --help.
func (restoreCmd) Example() string { return "trimtab restore --storage.path /var/lib/trimtab" }

// Run restores the knobs and prints the results.
func (c *restoreCmd) Run(ctx context.Context, t terminal) error {
	var errs []error
	if c.Config != "" {
		// The API server limits the rate of changes, so thousands of pods take minutes.
		all, cancel := context.WithTimeout(ctx, actuator.MaxCloseTime)
		defer cancel()
		if errs = append(errs, restoreCluster(all, c.Config, t)); errs[0] == nil {
			if _, err := os.Stat(site.JournalDir(c.Storage)); os.IsNotExist(err) {
				return nil // the cluster has the whole journal
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	// Speculative tasks end before the resources that they use are given back.
	if there, err := agent.SweepTasks(ctx, c.Storage); err != nil {
		errs = append(errs, hint.Add(err, "what cannot be killed waits for a device; trimtab restore tries again"))
	} else if there {
		fmt.Fprintln(t.out, "no speculative task is left, or a running trimtab has them")
	}
	// Best-effort jobs first: they shrink.
	for _, dir := range []string{agent.JobsDir(c.Storage), site.JournalDir(c.Storage)} {
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			if dir == site.JournalDir(c.Storage) {
				fmt.Fprintf(t.out, "nothing to restore: %s has no journal\n", dir)
			}
			continue
		}
		errs = append(errs, restoreFrom(ctx, dir, t))
	}
	return errors.Join(errs...)
}

// restoreCluster restores the baselines of the journal that a cluster keeps, if any.
func restoreCluster(ctx context.Context, file string, t terminal) error {
	cfg, err := config.Load(file)
	if err != nil {
		return hint.Add(err, "docs/config.md has every key")
	}
	if cfg.Kubernetes.Journal == "" {
		return nil
	}
	report, err := site.RestoreCluster(ctx, cfg)
	text := report.String()
	if report.Left > 0 {
		fmt.Fprint(t.out, text)
		return hint.Add(fmt.Errorf("restore from the cluster: %w", err), "run the same command again: it goes on with those that are left")
	}
	if err != nil {
		return hint.Add(fmt.Errorf("restore from the cluster: %w", err), "docs/kubernetes.md says what each mode needs")
	}
	if text == "" {
		text = "nothing to restore: the journal in the cluster holds no baseline\n"
	}
	fmt.Fprint(t.out, text)
	return nil
}

// restoreFrom restores the baselines of one journal.
func restoreFrom(ctx context.Context, dir string, t terminal) error {
	report, err := actuator.Restore(ctx, dir, kinds.Reopen)
	if errors.Is(err, hostfs.ErrUnreadable) {
		for _, knob := range actuator.Written(actuator.DefaultLockDir(), dir) {
			fmt.Fprintf(t.out, "may still be as trimtab set it: %s\n", knob)
		}
		return hint.Add(fmt.Errorf("restore from %s: %w", dir, err), "limits that trimtab set may still be in place, and nothing says what they were: compare the limits of your workloads with those that you want, set them by hand, then move the damaged files away (docs/operations.md, \"When the journal is damaged\")")
	}
	if err != nil {
		return hint.Add(fmt.Errorf("restore from %s: %w", dir, err), "a running trimtab restores by itself when it stops; --storage.path names the directory that it ran with")
	}
	text := report.String()
	if text == "" {
		text = fmt.Sprintf("nothing to restore: the journal in %s holds no baseline\n", dir)
	}
	fmt.Fprint(t.out, text)
	return report.Err()
}

// watchdogCmd is the hidden child of an actuator.
type watchdogCmd struct {
	Dir string `help:"The actuator's journal." required:""`
}

// Run waits for the actuator's end.
func (c *watchdogCmd) Run() error {
	waitLean()
	// Not the command's context: a signal to the process group must not end the watchdog, which
	// acts when all others have died.
	report, err := actuator.Watchdog(context.Background(), c.Dir, os.Stdin, kinds.Reopen)
	if err == nil {
		err = report.Err()
	}
	return err
}

// workersCmd supervises the worker processes of one service; their number is
// the process knob.
type workersCmd struct {
	Dir     string   `help:"Directory of the knob: workers.max is read there." required:"" type:"path"`
	Start   int      `help:"How many to start with when the directory does not say." default:"1"`
	Max     int      `help:"Most workers, whatever the directory says." default:"64"`
	Command []string `arg:"" help:"Program and arguments of one worker." passthrough:""`
}

// Example is shown by --help.
func (workersCmd) Example() string {
	return "trimtab workers --dir /run/thumbs --max 16 -- /usr/bin/thumb-worker --port 8080"
}

// Run supervises until ctx ends.
func (c *workersCmd) Run(ctx context.Context, log *logFlags, t terminal) error {
	logger, err := log.logger(t.err)
	if err != nil {
		return err
	}
	command := c.Command
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	return process.Supervise(ctx, process.Supervisor{Dir: c.Dir, Command: command, Start: c.Start, Max: c.Max, Logger: logger})
}

// defaultStorage is the default of --storage.path.
func defaultStorage() string { return config.Default().Storage.Path }
