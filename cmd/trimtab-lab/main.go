// Command trimtab-lab is the laboratory of trimtab: simulators that replay the experiments of
// papers, algorithms of the papers on files, and benches of algorithms. It needs no running
// trimtab and changes nothing on a host.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/trimtab/trimtab/internal/cli"
)

// grammar is the grammar of the command line.
type grammar struct {
	Version kong.VersionFlag `help:"Print the version and exit."`

	Sim   simCmd   `cmd:"" help:"Replay an experiment of a paper: policies side by side in a simulated cluster."`
	Calc  calcCmd  `cmd:"" help:"Run one algorithm of the papers on a file."`
	Bench benchCmd `cmd:"" help:"Measure the speed of algorithms on this machine."`
}

// exitDone and exitError are the exit codes.
const (
	exitDone  = 0
	exitError = 1
)

func main() {
	cli.WithVersion()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// terminal is what a command may print to.
type terminal struct {
	out, err io.Writer
}

// Main runs one command line and returns its exit code.
func Main(ctx context.Context, args []string, out, errOut io.Writer) int {
	p := cli.Program{
		Name:    "trimtab-lab",
		About:   "trimtab-lab replays the experiments of papers, runs their algorithms on files, and measures how fast algorithms are. It changes nothing on this host.",
		Foot:    "Exit codes: 0 done, 1 error.\n\nExample:\n  trimtab-lab sim services",
		Grammar: &grammar{},
		Bind:    []any{terminal{out, errOut}},
	}
	return p.Main(ctx, args, out, errOut)
}
