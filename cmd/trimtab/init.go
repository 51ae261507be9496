package main

import (
	"fmt"
	"strings"

	"github.com/trimtab/trimtab/internal/cluster"
	"github.com/trimtab/trimtab/internal/hint"
)

// initCmd is `trimtab init`.
type initCmd struct {
	Draft   initDraftCmd   `cmd:"" default:"withargs" help:"Draft a configuration from what is there: services in the spans of a running trimtab, control groups, metrics of Prometheus."`
	Cluster initClusterCmd `cmd:"" help:"Write what a cluster needs to run each role as its own process: NATS servers, permissions, certificates, systemd units."`
	HAProxy initHAProxyCmd `cmd:"" name:"haproxy" help:"Print the lines of haproxy.cfg by which HAProxy refuses requests by class, for a workload with concurrency.haproxy.map."`
}

// initClusterCmd is `trimtab init cluster`.
type initClusterCmd struct {
	Servers []string `required:"" help:"Names or addresses of the hosts that run nats-server: one, three or five." placeholder:"HOST,..."`
	Hosts   []string `required:"" help:"Names of the hosts whose limits trimtab sets." placeholder:"HOST,..."`
	Out     string   `required:"" help:"Directory to write to. A certificate authority and certificates that exist there are kept." type:"path" placeholder:"DIR"`
	Pool    string   `help:"Pool that the hosts share." default:"default"`
}

// Example is shown by --help.
func (initClusterCmd) Example() string {
	return "trimtab init cluster --servers n1,n2,n3 --hosts h1,h2 --out site"
}

// Run writes the files and prints what to do with them.
func (c *initClusterCmd) Run(t terminal) error {
	s := cluster.Spec{Servers: c.Servers, Hosts: c.Hosts, Pool: c.Pool}
	if err := s.Write(c.Out); err != nil {
		return hint.Add(fmt.Errorf("init cluster: %w", err), "trimtab init cluster --help shows an example")
	}
	fmt.Fprintf(t.out, `Wrote %[1]s. Keep %[1]s/ca-key.pem off every host: it signs certificates of this site.

1. NATS, on each of %[2]s:
     copy %[1]s/nats-HOST to /etc/nats, readable for the user of nats-server only
     nats-server -c /etc/nats/nats-server.conf
2. Central stages, on one or more hosts each (collector, analyzer, planner, console):
     copy %[1]s/ROLE to /etc/trimtab/ROLE, your trimtab.yaml to /etc/trimtab,
     and %[1]s/systemd/trimtab-ROLE.service to /etc/systemd/system
     systemctl enable --now trimtab-ROLE      (a planner first: it makes the streams)
3. Agents, on each of %[3]s:
     copy %[1]s/agent-HOST to /etc/trimtab/agent, the same trimtab.yaml to /etc/trimtab,
     and %[1]s/systemd/trimtab-agent.service to /etc/systemd/system
     systemctl enable --now trimtab-agent     (it reaches ports 4222 and 7422 of the NATS servers)
4. Look: trimtab status, on a host of the console. Read along: nats sub 'trimtab.>'
   with the certificate in %[1]s/observer.

To add hosts, run this again with all of them, and copy nats-server.conf to the servers
(nats-server --signal reload). Certificates are good for two years: to renew one, remove
its cert.pem and run this again. In mode act a knob of a host needs host: in trimtab.yaml.
`, c.Out, strings.Join(c.Servers, ", "), strings.Join(c.Hosts, ", "))
	return nil
}
