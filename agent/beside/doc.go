// Package beside runs work beside the services of a host, in what they leave: best-effort
// jobs (files jobs*.go), which are control groups that others started, and speculative
// tasks (tasks*.go), which are processes that it starts itself.
//
//	host := beside.Host{Process: &process}
//	parts, err := host.JobsPart(cfg) // package supervise starts and stops them
//
// Each second or so a loop looks (at the knobs, at how services stand, at the loads of
// the host), lets a pure package decide (planner/colocate, planner/throttle), has the
// decision carried out (package actuator, actuator/task), tells consoles and the planner,
// and saves what was learned. No bus is between them: both go on while the link is cut.
// It has no rule of its own on how much work a host bears.
package beside

import (
	"sync/atomic"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/supervise"
)

// Host owns what runs beside the services of this host, across reloads of the configuration.
type Host struct {
	Process *supervise.Process
	// Fleet: the file is for many hosts, and may not say which of them has a service.
	Fleet bool
	// Watchdog is the command of the process that guards a journal, Counter that of the process
	// that counts performance events; nil: this program.
	Watchdog, Counter []string

	// jobs decides for the best-effort jobs of this host; nil: nothing does.
	jobs atomic.Pointer[jobHost]
	// ordered is the last pause or resume that was heard of; nil: there was none.
	ordered atomic.Pointer[trimtab.Command]
}
