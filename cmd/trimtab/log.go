package main

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/prometheus/common/promslog"
)

// logFlags has the same flags as Prometheus's own programs.
type logFlags struct {
	Level  string `help:"debug, info, warn or error." enum:"debug,info,warn,error" default:"info"`
	Format string `help:"logfmt or json." enum:"logfmt,json" default:"logfmt"`
}

// logger writes structured lines to w.
func (f *logFlags) logger(w io.Writer) (*slog.Logger, error) {
	c := &promslog.Config{Level: promslog.NewLevel(), Format: promslog.NewFormat(), Writer: w}
	if err := c.Level.Set(f.Level); err != nil {
		return nil, fmt.Errorf("set log level: %w", err)
	}
	if err := c.Format.Set(f.Format); err != nil {
		return nil, fmt.Errorf("set log format: %w", err)
	}
	return promslog.New(c), nil
}
