package cluster

import (
	"fmt"
	"strings"

	"github.com/trimtab/trimtab/bus/natsbus"
)

// unit is the systemd unit of a role.
type unit struct {
	role natsbus.Role
	// port is the loopback port of its health and metrics.
	port int
}

// units returns the roles with a unit that runs trimtab.
func units() []unit {
	return []unit{{natsbus.Console, 9600}, {natsbus.Planner, 9601}, {natsbus.Analyzer, 9602}, {natsbus.Collector, 9603}, {natsbus.Agent, 9604}}
}

func (u unit) name() string { return "trimtab-" + string(u.role) + ".service" }

// Address returns the default address of a role's health and metrics.
func Address(r natsbus.Role) string {
	for _, u := range units() {
		if u.role == r {
			return fmt.Sprintf("127.0.0.1:%d", u.port)
		}
	}
	return ""
}

// hardened is common to all units.
const hardened = `LimitNOFILE=65536
TasksMax=512
Environment=GOMEMLIMIT=800MiB
MemoryMax=1G
TimerSlackNSec=1ms

CapabilityBoundingSet=
AmbientCapabilities=
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
DevicePolicy=closed
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
ProcSubset=all
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
KeyringMode=private
RemoveIPC=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM
UMask=0077
`

// text is the unit's file. A central stage has a user that exists while it
// runs, and reads its key as a credential; the agent is user 0 without any
// capability, which may write the files of cgroups as their owner.
func (u unit) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# trimtab %s, written by "trimtab init cluster".
[Unit]
Description=trimtab %s
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
Type=exec
`, u.role, u.role)
	state := "trimtab-" + string(u.role)
	run := fmt.Sprintf("/usr/bin/trimtab %s --storage.path /var/lib/%s --web.listen-address 127.0.0.1:%d", u.role, state, u.port)
	if u.role == natsbus.Agent {
		fmt.Fprintf(&b, `ExecStart=%s --config.file /etc/trimtab/trimtab.yaml --nats.config.file /etc/trimtab/agent/nats.yaml
# Runs after every end, a SIGKILL too: baselines come back from the journal alone.
ExecStopPost=/usr/bin/trimtab restore --storage.path /var/lib/%s
# It has to act just when the host is full.
CPUWeight=500
Nice=-5
# The locks of knobs, which tell who owns each of them.
RuntimeDirectory=trimtab
RuntimeDirectoryMode=0700
RuntimeDirectoryPreserve=yes
ProtectControlGroups=no
ReadWritePaths=/sys/fs/cgroup
`, run, state)
	} else {
		fmt.Fprintf(&b, `LoadCredential=trimtab.yaml:/etc/trimtab/trimtab.yaml
LoadCredential=nats.yaml:/etc/trimtab/%[1]s/nats.yaml
LoadCredential=ca.pem:/etc/trimtab/%[1]s/ca.pem
LoadCredential=cert.pem:/etc/trimtab/%[1]s/cert.pem
LoadCredential=key.pem:/etc/trimtab/%[1]s/key.pem
ExecStart=%[2]s --config.file ${CREDENTIALS_DIRECTORY}/trimtab.yaml --nats.config.file ${CREDENTIALS_DIRECTORY}/nats.yaml
DynamicUser=yes
PrivateUsers=yes
ProtectControlGroups=yes
`, u.role, run)
	}
	fmt.Fprintf(&b, `ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=5s
KillMode=mixed
TimeoutStopSec=30s
StateDirectory=%s
StateDirectoryMode=0700
%s
[Install]
WantedBy=multi-user.target
`, state, hardened)
	return b.String()
}
