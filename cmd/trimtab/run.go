package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/hint"
	"github.com/trimtab/trimtab/internal/site"
)

// runCmd is `trimtab run`.
type runCmd struct {
	Config  string   `name:"config.file" help:"Configuration file. Without one, services are found from spans and only shown." type:"path" placeholder:"FILE"`
	Listen  string   `name:"web.listen-address" help:"Address of page, API and metrics; overrides the file." placeholder:"HOST:PORT"`
	WebFile string   `name:"web.config.file" help:"TLS and basic auth of the web server, as in Prometheus's exporter toolkit." type:"path" placeholder:"FILE"`
	Hosts   []string `name:"web.allowed-host" help:"Host name that requests may be for, besides loopback ones; may be repeated." placeholder:"NAME"`
	Record  string   `name:"record" help:"Directory to record the inputs and outputs of the stages to; overrides the file." type:"path" placeholder:"DIR"`
	Storage string   `name:"storage.path" help:"Directory of bus, journal and models; overrides the file." type:"path" placeholder:"DIR"`
}

// Example is shown by --help.
func (runCmd) Example() string {
	return "trimtab run                                  # watch: send OTLP spans to 127.0.0.1:4317\ntrimtab run --config.file trimtab.yaml       # decide: see docs/config.md"
}

// Run runs until a signal.
func (c *runCmd) Run(ctx context.Context, log *logFlags, t terminal) error {
	recent := &site.RecentLog{}
	logger, err := log.logger(io.MultiWriter(t.err, recent))
	if err != nil {
		return err
	}
	objectives := &site.Objectives{}
	load := func() (*config.Config, error) { return c.load(objectives) }
	cfg, err := load()
	if err != nil {
		return err
	}
	for _, w := range cfg.Warnings {
		logger.Warn(w.Error())
	}
	raiseOwnWeight(logger)
	stayLean(ctx, roomBeside)
	s, err := site.Open(ctx, cfg, site.Options{Logger: logger, Recent: recent, Hosts: c.Hosts, Load: c.reloader(load), Objectives: objectives})
	if err != nil {
		return explainStart(err)
	}
	logger.Info("trimtab is running", "web", s.WebAddress(), "otlp", cfg.OTLP.GRPC, "storage", cfg.Storage.Path, "workloads", len(cfg.Workloads))
	return errors.Join(untilEnd(ctx, s), s.Close())
}

// untilEnd returns when ctx ends or a part fails; SIGHUP reloads.
func untilEnd(ctx context.Context, s *site.Site) error {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-s.Failed():
			return err
		case <-hup:
			// Reload logs its own error: the old configuration stays.
			_ = s.Reload(ctx)
		}
	}
}

// load reads the file and lays the flags over it.
func (c *runCmd) load(objectives *site.Objectives) (*config.Config, error) {
	cfg := config.Default()
	if c.Config != "" {
		var err error
		if cfg, err = config.LoadWith(c.Config, objectives.Objects(), objectives.Members()); err != nil {
			return nil, hint.Add(err, "trimtab check config %s says the same without starting; docs/config.md has every key", c.Config)
		}
	}
	if c.Listen != "" {
		cfg.Web.ListenAddress = c.Listen
	}
	if c.WebFile != "" {
		cfg.Web.ConfigFile = c.WebFile
	}
	if c.Record != "" {
		cfg.Exporters.Record.Path = c.Record
	}
	if c.Storage != "" {
		cfg.Storage.Path = c.Storage
	}
	return cfg, nil
}

func (c *runCmd) reloader(load func() (*config.Config, error)) func() (*config.Config, error) {
	if c.Config == "" {
		return nil
	}
	return load
}

// explainStart adds hints to common errors at a start.
func explainStart(err error) error {
	switch {
	case errors.Is(err, trimtab.ErrRefused) && strings.Contains(err.Error(), "NATS user"):
		return hint.Add(err, "trimtab init cluster writes the permissions of every role: copy nats-server.conf to the NATS servers and reload them; or this is the nats.yaml of another role")
	case errors.Is(err, jetstream.ErrStreamNotFound), errors.Is(err, jetstream.ErrBucketNotFound):
		return hint.Add(err, "start a planner on the same NATS servers: it makes the streams")
	case errors.Is(err, syscall.EADDRINUSE):
		return hint.Add(err, "another program listens there; choose another address in the configuration, or stop it")
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR):
		return hint.Add(err, "trimtab must be able to write there: use --storage.path, or change the owner")
	case errors.Is(err, syscall.EAGAIN):
		return hint.Add(err, "is trimtab running already? Stop it, or give this one a --storage.path of its own")
	case errors.Is(err, os.ErrNotExist):
		return hint.Add(err, "the configuration names a file that is not there")
	case errors.Is(err, nats.ErrNoServers), errors.Is(err, nats.ErrAuthorization):
		return hint.Add(err, "is a nats-server with JetStream running there, and does it accept these credentials? See nats in docs/config.md")
	case errors.Is(err, syscall.ENOSPC):
		return hint.Add(err, "the disk is full: make room, or use --storage.path elsewhere")
	}
	return err
}
