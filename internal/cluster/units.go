package cluster

import (
	"fmt"

	"github.com/trimtab/trimtab/bus/natsbus"
)

// unit is the systemd unit of a role. A central stage has a user that exists while it runs, and reads
// its key as a credential; the agent is user 0 without any capability, which may write the files of
// cgroups as their owner.
type unit struct {
	Role natsbus.Role
	// Port is the loopback port of its health and metrics.
	Port int
}

// units returns the roles with a unit that runs trimtab.
func units() []unit {
	return []unit{{natsbus.Console, 9600}, {natsbus.Planner, 9601}, {natsbus.Analyzer, 9602}, {natsbus.Collector, 9603}, {natsbus.Agent, 9604}}
}

func (u unit) name() string { return "trimtab-" + string(u.Role) + ".service" }

// Agent reports whether it is the unit of an agent.
func (u unit) Agent() bool { return u.Role == natsbus.Agent }

// text is the unit's file.
func (u unit) text() string { return filled("trimtab.service", u) }

// Address returns the default address of a role's health and metrics.
func Address(r natsbus.Role) string {
	for _, u := range units() {
		if u.Role == r {
			return fmt.Sprintf("127.0.0.1:%d", u.Port)
		}
	}
	return ""
}
