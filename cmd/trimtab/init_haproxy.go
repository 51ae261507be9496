package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/hint"
)

// initHAProxyCmd is `trimtab init haproxy`.
type initHAProxyCmd struct {
	Config   string `name:"config.file" required:"" help:"The configuration file." type:"path" placeholder:"FILE"`
	Workload string `help:"The workload. Default: the only one that has concurrency.haproxy.map." placeholder:"NAME"`
	Map      bool   `help:"Print the map file, in which nothing is limited, instead of the lines."`
}

// Example is shown by --help.
func (initHAProxyCmd) Example() string {
	return "trimtab init haproxy --config.file trimtab.yaml --map > /etc/haproxy/trimtab.map\ntrimtab init haproxy --config.file trimtab.yaml >> /etc/haproxy/haproxy.cfg   # then merge the backend's lines"
}

// Run prints the lines, or the map.
func (c *initHAProxyCmd) Run(t terminal) error {
	cfg, err := config.Check(c.Config)
	if err != nil {
		return hint.Add(err, "docs/config.md has every key")
	}
	var found []*config.Workload
	var names []string
	for i := range cfg.Workloads {
		w := &cfg.Workloads[i]
		if k := w.Knob.Concurrency; k == nil || k.HAProxy.Refuses() == nil || c.Workload != "" && c.Workload != w.Name {
			continue
		}
		found, names = append(found, w), append(names, w.Name)
	}
	switch {
	case len(found) == 0:
		return hint.Add(fmt.Errorf("init haproxy: no such workload with concurrency.haproxy.map in %s", c.Config), "write map: /etc/haproxy/trimtab.map beside socket and backend, with header and classes")
	case len(found) > 1:
		return hint.Add(fmt.Errorf("init haproxy: %d workloads have concurrency.haproxy.map: %s", len(found), strings.Join(names, ", ")), "name one with --workload")
	}
	refuses := found[0].Knob.Concurrency.HAProxy.Refuses()
	if c.Map {
		fmt.Fprint(t.out, refuses.File())
		return nil
	}
	within := found[0].SLO.Latency
	if within <= 0 {
		within = time.Second
	}
	fmt.Fprint(t.out, refuses.Lines(within*3/4))
	return nil
}
