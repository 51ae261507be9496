// Package beside runs work on the capacity that the services of a host leave idle: best-effort jobs
// (files jobs*.go), which are control groups that others started, and speculative tasks
// (tasks*.go), which are processes that this package starts.
//
//	host := beside.Host{Process: &process}
//	parts, err := host.JobsPart(cfg) // package supervise starts and stops them
//
// About once a second a loop reads the knobs, the state of the services and the load of the host,
// lets a pure package decide (planner/colocate, planner/throttle), has package actuator or
// actuator/task carry the decision out, reports to consoles and the planner, and saves the learned
// state. The loops do not use the bus for this, so both continue while the link is cut. The package
// does not decide how much work a host can run.
package beside

import (
	"sync/atomic"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/supervise"
)

// Host has the best-effort jobs and speculative tasks of this host. It outlives reloads of the
// configuration.
type Host struct {
	Process *supervise.Process
	// Fleet says that the configuration file is for many hosts, and may not name the host of a
	// service.
	Fleet bool
	// Watchdog is the command of the process that guards a journal; Counter is that of the process
	// that counts performance events; nil: this program.
	Watchdog, Counter []string

	// jobs is the controller of this host's best-effort jobs; nil: there is none.
	jobs atomic.Pointer[jobHost]
	// ordered is the last pause or resume command received; nil: none was.
	ordered atomic.Pointer[trimtab.Command]
}
