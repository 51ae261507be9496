package service

import (
	"flag"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/trimtab/trimtab"
)

// flags binds every field of cfg that a command line carries.
func flags(cfg *Config) *flag.FlagSet {
	f := flag.NewFlagSet("demo-service", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&cfg.Name, "name", "", "component")
	f.StringVar(&cfg.Workload, "workload", "", "workload it belongs to")
	f.StringVar(&cfg.Listen, "listen", "", "host:port")
	f.StringVar(&cfg.Inherit, "inherit", "", "Unix socket that lends the socket to listen on")
	f.StringVar(&cfg.OTLP, "otlp", "", "host:port of an OTLP gRPC receiver")
	f.DurationVar(&cfg.CPU.Mean, "cpu", 5*time.Millisecond, "mean CPU time of a request")
	f.Float64Var(&cfg.CPU.CoV, "cpu-cov", 0, "its coefficient of variation")
	f.DurationVar(&cfg.Wait.Mean, "wait", 0, "mean time a request waits")
	f.Float64Var(&cfg.Wait.CoV, "wait-cov", 0, "its coefficient of variation")
	f.StringVar(&cfg.Calls, "calls", "", "URL of the next component")
	f.IntVar(&cfg.Slots, "slots", 1, "requests on the processor at a time")
	f.IntVar(&cfg.Queue, "queue", 64, "requests that may wait for a slot")
	f.DurationVar(&cfg.Patience, "patience", 2*time.Second, "longest wait for a slot")
	f.Uint64Var(&cfg.Seed, "seed", 1, "seed of the draws")
	return f
}

// ParseArgs reads the flags that [Config.Args] writes; see there for the
// names. The error is trimtab.ErrInvalid.
func ParseArgs(args []string) (Config, error) {
	var cfg Config
	f := flags(&cfg)
	if err := f.Parse(args); err != nil {
		return cfg, fmt.Errorf("read flags of demo-service: %w: %w", trimtab.ErrInvalid, err)
	}
	if f.NArg() > 0 {
		return cfg, trimtab.Invalidf("demo-service: argument %.40q", f.Arg(0))
	}
	return cfg, cfg.Validate()
}

// Args returns the flags for another process to run c; Ready cannot be passed.
func (c *Config) Args() []string {
	float := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	return []string{
		"--name=" + c.Name, "--workload=" + c.Workload, "--listen=" + c.Listen, "--inherit=" + c.Inherit,
		"--otlp=" + c.OTLP, "--calls=" + c.Calls,
		"--cpu=" + c.CPU.Mean.String(), "--cpu-cov=" + float(c.CPU.CoV),
		"--wait=" + c.Wait.Mean.String(), "--wait-cov=" + float(c.Wait.CoV),
		"--slots=" + strconv.Itoa(c.Slots), "--queue=" + strconv.Itoa(c.Queue),
		"--patience=" + c.Patience.String(), "--seed=" + strconv.FormatUint(c.Seed, 10),
	}
}
