package poll

import (
	"context"
	"log/slog"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/quantity"
)

// Source is a source of samples as a value: all that the rest of a program needs to know
// of it.
type Source struct {
	// Name is what samples, metrics, messages and the configuration call it.
	Name string
	// About says in a few words what it reads.
	About string
	// Quantities are what it can tell. A host may have some of them only.
	Quantities []quantity.Quantity
	// Key is the key below measure in the configuration that asks for it; "": it is always
	// read. [Sources] for all that need no key of their own.
	Key string
	// Check refuses what the file says of it below measure.sources, with a hint; nil: it has
	// another key.
	Check func(setting string) (hint string, err error)
	// Grouped tells that it is read only where workloads have control groups.
	Grouped bool
	// Interval is how often it is read where the configuration does not say.
	Interval time.Duration
	// Open opens it on this host. Its error is trimtab.ErrUnsupported where the host has no
	// such thing, and says what to do.
	Open func(Config) (Reader, error)
}

// Sources is the key below which a source is asked for by its name.
const Sources = "sources"

// The reasons why a value is missing that sources share. They are labels of the metric, too.
const (
	Absent     = "absent"
	Unreadable = "unreadable"
	First      = "first reading"
	Reset      = "counter reset"
)

// Reader is a source that is open. One goroutine uses it at a time.
type Reader interface {
	// Read returns samples of the host ([OfHost]) and of the groups that are there
	// ([Group.Sample]). With an error, what it leaves out and told before is unreadable, and not gone.
	Read(ctx context.Context, groups []Group) ([]*trimtab.Sample, error)
	// Lacks lists what this host does not have of it, with the reasons. A Read may change it.
	Lacks() []string
	// Close releases what is open.
	Close() error
}

// Simple is the part of a Reader that lacks nothing and keeps nothing open; others embed it.
type Simple struct{}

// Lacks lists nothing.
func (Simple) Lacks() []string { return nil }

// Close does nothing.
func (Simple) Close() error { return nil }

// Publisher is the part of a bus in use.
type Publisher interface {
	Publish(ctx context.Context, v trimtab.Value) error
}

// Target is the control group of one workload, or with a * in Path those of its instances.
type Target struct {
	Workload string
	// Host is named in the samples, which are of its copy of the workload alone; "": of
	// the whole workload.
	Host string
	// Path is relative to the root of the hierarchy.
	Path string
}

// Group is a control group of a target that is there now. It is comparable, and one of the
// same path that was made anew is another.
type Group struct {
	Workload, Host string
	hostfs.Instance
}

// Sample returns a sample of the group, without a value.
func (g Group) Sample(q quantity.Quantity) *trimtab.Sample {
	return &trimtab.Sample{Workload: g.Workload, Host: g.Host, Instance: g.Name, Quantity: q}
}

// OfHost returns a sample of the host as a whole, or of the part of it that instance names,
// without a value.
func OfHost(q quantity.Quantity, instance string) *trimtab.Sample {
	return &trimtab.Sample{Workload: trimtab.HostItself, Instance: instance, Quantity: q}
}

// Config says what is read, and where the samples go.
type Config struct {
	// Host is what samples call this host.
	Host string
	// Root is the hierarchy of control groups, Targets those of workloads.
	Root    string
	Targets []Target
	// Settings are what the configuration says of the source.
	Settings []string
	// Helper is the command of the process that counts for perf.
	Helper []string
	// Pod returns the workload of a pod of the cluster, "" if none is known. It may be nil.
	Pod func(namespace, pod string) (workload string)
	// Lacking is told when a round changed what the host lacks. It may be nil.
	Lacking func(lacks []string)
	// Interval is the window of what is a rate; 0: that of the source.
	Interval time.Duration
	// Bus gets the samples.
	Bus Publisher
	// Metrics and Logger may be nil.
	Metrics *metric.Set
	Logger  *slog.Logger
	// Groups is the open hierarchy, nil without targets. The poller opens and closes it.
	Groups *hostfs.Root
}

// Fill sets what was left out of a configuration.
func Fill(interval *time.Duration, usual time.Duration, metrics **metric.Set, logger **slog.Logger) {
	if *interval <= 0 {
		*interval = usual
	}
	if *metrics == nil {
		*metrics = metric.NewSet()
	}
	if *logger == nil {
		*logger = slog.New(slog.DiscardHandler)
	}
}
