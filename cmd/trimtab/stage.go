package main

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus/natsbus"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/cluster"
	"github.com/trimtab/trimtab/internal/hint"
	"github.com/trimtab/trimtab/internal/site"
)

// stageFlags has the flags of each process with one role.
type stageFlags struct {
	Config  string   `name:"config.file" required:"" help:"Configuration file of the site, the same for all its processes." type:"path" placeholder:"FILE"`
	NATS    string   `name:"nats.config.file" help:"File with the nats section of this process, which replaces that of the configuration: its certificate says which role it has." type:"path" placeholder:"FILE"`
	Listen  string   `name:"web.listen-address" help:"Address of health and metrics. By default 127.0.0.1, and 9600 for the console, 9601 planner, 9602 analyzer, 9603 collector, 9604 agent." placeholder:"HOST:PORT"`
	WebFile string   `name:"web.config.file" help:"TLS and basic auth of the web server, as in Prometheus's exporter toolkit." type:"path" placeholder:"FILE"`
	Hosts   []string `name:"web.allowed-host" help:"Host name that requests may be for, besides loopback ones; may be repeated." placeholder:"NAME"`
	Storage string   `name:"storage.path" help:"Directory of this process; by default one with the name of its role below that of the configuration." type:"path" placeholder:"DIR"`
}

type collectorCmd struct{ stageFlags }
type analyzerCmd struct{ stageFlags }
type plannerCmd struct{ stageFlags }
type consoleCmd struct{ stageFlags }

// agentCmd is `trimtab agent`.
type agentCmd struct {
	stageFlags
	Host string `name:"host" help:"What this host is called in knobs and in its certificate; by default its host name." placeholder:"NAME"`
}

func exampleOf(r natsbus.Role) string {
	return "trimtab " + string(r) + " --config.file trimtab.yaml --nats.config.file " + string(r) + "/nats.yaml   # see trimtab init cluster"
}

// Example is shown by --help.
func (collectorCmd) Example() string { return exampleOf(natsbus.Collector) }

// Example is shown by --help.
func (analyzerCmd) Example() string { return exampleOf(natsbus.Analyzer) }

// Example is shown by --help.
func (plannerCmd) Example() string { return exampleOf(natsbus.Planner) }

// Example is shown by --help.
func (consoleCmd) Example() string { return exampleOf(natsbus.Console) }

// Example is shown by --help.
func (agentCmd) Example() string { return exampleOf(natsbus.Agent) }

// Run runs until a signal.
func (c *collectorCmd) Run(ctx context.Context, log *logFlags, t terminal) error {
	return c.run(ctx, log, t, site.Options{Role: natsbus.Collector})
}

// Run runs until a signal.
func (c *analyzerCmd) Run(ctx context.Context, log *logFlags, t terminal) error {
	return c.run(ctx, log, t, site.Options{Role: natsbus.Analyzer})
}

// Run runs until a signal.
func (c *plannerCmd) Run(ctx context.Context, log *logFlags, t terminal) error {
	return c.run(ctx, log, t, site.Options{Role: natsbus.Planner})
}

// Run runs until a signal.
func (c *consoleCmd) Run(ctx context.Context, log *logFlags, t terminal) error {
	return c.run(ctx, log, t, site.Options{Role: natsbus.Console})
}

// Run runs until a signal.
func (c *agentCmd) Run(ctx context.Context, log *logFlags, t terminal) error {
	return c.run(ctx, log, t, site.Options{Role: natsbus.Agent, Host: c.Host})
}

// run runs the parts of one role until a signal.
func (f *stageFlags) run(ctx context.Context, log *logFlags, t terminal, o site.Options) error {
	recent := &site.RecentLog{}
	logger, err := log.logger(io.MultiWriter(t.err, recent))
	if err != nil {
		return err
	}
	o.Logger, o.Recent, o.Hosts = logger, recent, f.Hosts
	if o.Role != natsbus.Agent { // an agent needs no SLO
		o.Objectives = &site.Objectives{}
	}
	o.Load = func() (*config.Config, error) { return f.load(o.Role, o.Objectives) }
	cfg, err := o.Load()
	if err != nil {
		return err
	}
	for _, w := range cfg.Warnings {
		logger.Warn(w.Error())
	}
	if o.Role == natsbus.Agent {
		raiseOwnWeight(logger)
	}
	room := uint64(roomApart)
	if o.Role == natsbus.Agent {
		room = roomAgent
	}
	stayLean(ctx, room)
	s, err := site.Open(ctx, cfg, o)
	if err != nil {
		return explainStart(err)
	}
	logger.Info("trimtab is running", "role", o.Role, "web", s.WebAddress(), "storage", cfg.Storage.Path, "workloads", len(cfg.Workloads))
	return errors.Join(untilEnd(ctx, s), s.Close())
}

// load reads the files and lays the flags over them.
func (f *stageFlags) load(r natsbus.Role, objectives *site.Objectives) (*config.Config, error) {
	cfg, err := config.LoadWith(f.Config, objectives.Objects(), nil)
	if err == nil && len(cfg.Namespaces) > 0 {
		err = trimtab.Invalidf("%s: a whole namespace is for trimtab run: roles of several processes would not propose the same SLOs", f.Config)
	}
	if err != nil {
		return nil, hint.Add(err, "trimtab check config %s says the same without starting; docs/config.md has every key", f.Config)
	}
	if f.NATS != "" {
		own, err := config.Load(f.NATS)
		if err != nil {
			return nil, hint.Add(err, "it holds the section nats, as trimtab init cluster writes it")
		}
		for _, c := range config.Changed(config.Default(), own) {
			if !strings.HasPrefix(c.Path, "nats.") {
				return nil, hint.Add(trimtab.Invalidf("read %s: %s is set, and only the section nats is read here", f.NATS, c.Path), "put the rest into %s", f.Config)
			}
		}
		cfg.NATS = own.NATS
	}
	if cfg.NATS.URL == "" {
		return nil, hint.Add(errors.New("a process with one role meets the others on a NATS server, and none is configured"), "trimtab init cluster writes what that takes; trimtab run needs no server")
	}
	cfg.Web.ListenAddress = f.Listen
	if f.Listen == "" {
		cfg.Web.ListenAddress = cluster.Address(r)
	}
	if f.WebFile != "" {
		cfg.Web.ConfigFile = f.WebFile
	}
	cfg.Storage.Path = filepath.Join(cfg.Storage.Path, string(r))
	if f.Storage != "" {
		cfg.Storage.Path = f.Storage
	}
	return cfg, nil
}
