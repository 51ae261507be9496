// Command trimtab watches what services deliver, learns what they need for it,
// and moves resources to where they serve the operator's objective best.
//
// This package only wires: it reads flags and the configuration, opens the
// stages, and prints. See README.md for a tour and ARCHITECTURE.md for the map.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/trimtab/trimtab/internal/cli"
)

// Exit codes, as in `diff`.
const (
	exitDone    = 0
	exitError   = 1
	exitChanges = 2
)

// errChanges makes the process exit with exitChanges and print nothing.
var errChanges = errors.New("changes pending")

// grammar is the grammar of the command line.
type grammar struct {
	Log     logFlags         `embed:"" prefix:"log." group:"Log:"`
	Version kong.VersionFlag `help:"Print the version and exit."`

	Run           runCmd           `cmd:"" group:"Run:" help:"Run the whole pipeline in one process; without a configuration, watch only."`
	Collector     collectorCmd     `cmd:"" group:"Run:" help:"Run the collector alone: it receives spans and alerts, and queries Prometheus."`
	Analyzer      analyzerCmd      `cmd:"" group:"Run:" help:"Run the analyzer alone: it learns performance curves and forecasts load."`
	Planner       plannerCmd       `cmd:"" group:"Run:" help:"Run the planner alone: it decides who gets what."`
	Agent         agentCmd         `cmd:"" group:"Run:" help:"Run the agent of one host alone: it reads and sets the limits there."`
	Console       consoleCmd       `cmd:"" group:"Run:" help:"Run the console alone: web page, API and the metrics of workloads."`
	Gate          gateCmd          `cmd:"" group:"Run:" help:"Run a reverse proxy that admits what can be answered within the SLO, and refuses the rest at once."`
	Demo          demoCmd          `cmd:"" group:"Run:" help:"See it work: three real services of its own, under real load on this machine."`
	Workers       workersCmd       `cmd:"" group:"Run:" help:"Supervise the worker processes of one service."`
	Status        statusCmd        `cmd:"" group:"Look:" help:"Show workloads, allocations and last decisions."`
	Explain       explainCmd       `cmd:"" group:"Look:" help:"Say why a workload or a best-effort job has what it has."`
	Plan          planCmd          `cmd:"" group:"Look:" help:"Show the newest plan: the target and the next step."`
	Diff          diffCmd          `cmd:"" group:"Look:" help:"Compare current allocations with the planner's target; exit code 2 if they differ."`
	Fairness      fairnessCmd      `cmd:"" group:"Look:" help:"Say how fair the allocation is: shares, envy, shortfall, and what limits each workload."`
	Report        reportCmd        `cmd:"" group:"Look:" help:"Report what trimtab was worth: SLO minutes and core-hours, compared with the limits from before it; changes; incidents."`
	WhatIf        whatIfCmd        `cmd:"" name:"what-if" group:"Look:" help:"Say who would gain and who would pay with another capacity, SLO or weight; changes nothing."`
	Contributions contributionsCmd `cmd:"" group:"Look:" help:"Say what each component contributes to the tail of the latency, from recorded traces."`
	Blame         blameCmd         `cmd:"" group:"Look:" help:"Rank components by how much they made the tail latency grow between two recordings."`
	Apply         applyCmd         `cmd:"" group:"Operate:" help:"Carry out one recommended plan, if nothing changed since."`
	Pause         pauseCmd         `cmd:"" group:"Operate:" help:"Change no limit until resume; limits that are set stay."`
	Resume        resumeCmd        `cmd:"" group:"Operate:" help:"End a pause, and accept limits that others changed meanwhile."`
	Restore       restoreCmd       `cmd:"" group:"Operate:" help:"Restore the limits from before trimtab; needs only its journal."`
	Job           jobCmd           `cmd:"" group:"Operate:" help:"Run jobs on CPU and memory that is reserved and idle: submit, list, logs, cancel, grant."`
	Replay        replayCmd        `cmd:"" group:"Look:" help:"Run a recording through another policy; print SLO minutes and resource-hours."`
	Check         checkCmd         `cmd:"" group:"Check and set up:" help:"Check a file."`
	Doctor        doctorCmd        `cmd:"" group:"Check and set up:" help:"Check servers, queries, limits, rights and clocks: what will not work, and how to fix it."`
	Init          initCmd          `cmd:"" group:"Check and set up:" help:"Draft a configuration from what is there, or write the files of a site."`
	Import        importCmd        `cmd:"" group:"Check and set up:" help:"Print the configuration that follows from files of other tools."`
	Test          testCmd          `cmd:"" group:"Check and set up:" help:"Test a connection."`
	Debug         debugCmd         `cmd:"" group:"Check and set up:" help:"Collect what helps to find a fault."`
	ShowVersion   versionCmd       `cmd:"" name:"version" group:"Check and set up:" help:"Print version, commit, Go version and platform, as --version does."`
	Completion    completionCmd    `cmd:"" group:"Check and set up:" help:"Print the completion script of a shell."`
	Complete      completeCmd      `cmd:"" hidden:"" help:"Answer a completion script."`
	Man           manCmd           `cmd:"" hidden:"" help:"Print the manual page."`
	Watchdog      watchdogCmd      `cmd:"" hidden:"" help:"Restore baselines when the actuator dies."`
	TaskExec      taskExecCmd      `cmd:"" hidden:"" help:"Become the first process of a speculative task."`
	TaskWatchdog  taskWatchdogCmd  `cmd:"" hidden:"" help:"Kill speculative tasks when the agent dies."`
	PerfCounter   perfCounterCmd   `cmd:"" hidden:"" help:"Count performance events for an agent."`
	Service       serviceCmd       `cmd:"" hidden:"" name:"demo-service" help:"One service of the demo."`
	Load          loadCmd          `cmd:"" hidden:"" name:"demo-load" help:"Load on one service of the demo."`
}

func main() {
	withProfile()
	cli.WithVersion()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// terminal has the streams that a command may print to.
type terminal struct {
	out, err io.Writer
}

// Main runs one command line and returns its exit code.
func Main(ctx context.Context, args []string, out, errOut io.Writer) int {
	const lab = "trimtab-lab"
	var c grammar
	p := cli.Program{
		Name:    "trimtab",
		About:   "trimtab moves resources to where they serve your objective best, and tells you why.\n\nStart with `trimtab demo`, or `trimtab run` and send it OTLP spans.",
		Foot:    "Exit codes: 0 done, 1 error, 2 changes pending (diff).\n\nExample:\n  trimtab demo --for 3m",
		Grammar: &c,
		Vars:    kong.Vars{"storage": defaultStorage()},
		Bind:    []any{terminal{out, errOut}, &c.Log},
		Args:    eachFile,
		Moved:   map[string]string{"sim": lab, "calc": lab, "bench": lab},
		Silent:  map[error]int{errChanges: exitChanges},
	}
	return p.Main(ctx, args, out, errOut)
}
