package main

import (
	"context"
	"os"

	"github.com/trimtab/trimtab/actuator/task"
)

// taskExecCmd is the shim of a speculative task, which the agent starts.
type taskExecCmd struct{}

// Run returns only when the task cannot be started.
func (taskExecCmd) Run() error { return task.Exec() }

// taskWatchdogCmd is the hidden child of an agent that runs speculative tasks.
type taskWatchdogCmd struct {
	Root  string `help:"The hierarchy of the cpu controller; this host's by default."`
	Group string `help:"The group of all tasks." default:"trimtab"`
	Dir   string `help:"The journal of tasks." required:""`
}

// Run waits for the agent's end.
func (c *taskWatchdogCmd) Run() error {
	waitLean()
	// Not the command's context: a signal to the group must not end the one that has to
	// act when the agent is gone.
	return task.Watchdog(context.Background(), task.Config{Root: c.Root, Group: c.Group, Dir: c.Dir}, os.Stdin)
}
