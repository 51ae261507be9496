package poll

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/quantity"
)

// Source describes a source of samples, with all that the rest of the program needs to know of it.
type Source struct {
	// Name is the source's name in samples, metrics, messages and the configuration.
	Name string
	// About says in a few words what the source reads.
	About string
	// Quantities are those that the source can measure. A host may offer only some of them.
	Quantities []quantity.Quantity
	// Key is the configuration key below measure that enables the source; "": it is always read.
	// Sources without a key of their own have the key [Sources].
	Key string
	// Check validates the source's setting below measure.sources, and returns a hint with an error;
	// nil: the source has another key.
	Check func(setting string) (hint string, err error)
	// Grouped says that the source is read only if workloads have control groups.
	Grouped bool
	// Prompt says that the source is read at its Interval whatever the configuration says of reports,
	// because its news must not wait for one.
	Prompt bool
	// Interval is how often the source is read if the configuration does not say.
	Interval time.Duration
	// Open opens the source on this host. If the host does not offer it, the error is
	// trimtab.ErrUnsupported and says what to do.
	Open func(Config) (Reader, error)
}

// Sources is the configuration key that enables sources by their names.
const Sources = "sources"

// Reasons, shared by sources, why a value is missing. They are also values of a metric label.
const (
	Absent     = "absent"
	Unreadable = "unreadable"
	First      = "first reading"
	Reset      = "counter reset"
)

// WhyMissing returns the reason for a file that cannot be read: of a control group that is gone, the
// kernel also answers ENODEV.
func WhyMissing(err error) string {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENODEV) {
		return Absent
	}
	return Unreadable
}

// Reader is an open source. Only one goroutine may use it at a time.
type Reader interface {
	// Read returns samples of the host ([OfHost]) and of the given groups ([Group.Sample]). If it
	// also returns an error, a value that it leaves out counts as unreadable, not as gone.
	Read(ctx context.Context, groups []Group) ([]*trimtab.Sample, error)
	// Unavailable lists the parts of the source that this host does not have, with the reasons. A Read
	// may change the list.
	Unavailable() []string
	// Close releases the source.
	Close() error
}

// Waker is a Reader that is told by the kernel when a group must not wait for the next round.
type Waker interface {
	// Woken has the paths of such groups.
	Woken() <-chan string
	// Early returns one of them with its samples, which only Config.Seen is told: the next round counts
	// since the last round. No samples: the group is gone.
	Early(path string) (Group, []*trimtab.Sample)
}

// Simple implements Unavailable and Close for a Reader that lacks nothing and keeps nothing open; such
// readers embed it.
type Simple struct{}

// Unavailable lists nothing.
func (Simple) Unavailable() []string { return nil }

// Close does nothing.
func (Simple) Close() error { return nil }

// Publisher is the part of a bus that the poller uses.
type Publisher interface {
	Publish(ctx context.Context, v trimtab.Value) error
}

// Target is the control group of one workload. With a * in Path, it is those of the workload's
// instances.
type Target struct {
	Workload string
	// Host is the host named in the samples, which then describe only its copy of the workload; "":
	// they describe the whole workload.
	Host string
	// Path is relative to the root of the cgroup hierarchy.
	Path string
}

// Group is an existing control group of a target. It is comparable: if a group is removed and made
// again with the same path, the two differ.
type Group struct {
	Workload, Host string
	hostfs.Instance
}

// Sample returns a sample of the group, for the reader to set its value.
func (g Group) Sample(q quantity.Quantity) *trimtab.Sample {
	return &trimtab.Sample{Workload: g.Workload, Host: g.Host, Instance: g.Name, Quantity: q}
}

// OfHost returns a sample of the host as a whole, or of the part of it that instance names, for the
// reader to set its value.
func OfHost(q quantity.Quantity, instance string) *trimtab.Sample {
	return &trimtab.Sample{Workload: trimtab.HostItself, Instance: instance, Quantity: q}
}

// Config says what to read and where to publish the samples.
type Config struct {
	// Host is the name of this host in samples.
	Host string
	// Root is the directory of the cgroup hierarchy; Targets are the control groups of workloads.
	Root    string
	Targets []Target
	// Settings are the configured settings of the source.
	Settings []string
	// Helper is the command of the process that counts performance events.
	Helper []string
	// Pod returns the workload of a pod of the cluster, "" if none is known. It may be nil.
	Pod func(namespace, pod string) (workload string)
	// Unavailable is called when a round changed what the host lacks. It may be nil.
	Unavailable func(lacks []string)
	// Seen is called with the groups and the samples of each round of a Prompt source, before they are
	// published, and with those that its [Waker] reads in between. It may be nil, and must not keep the samples.
	Seen func(groups []Group, all []*trimtab.Sample)
	// Repeat is how often a Prompt source publishes a value that hardly changes; 0: every 5 s; below 0:
	// at each reading.
	Repeat time.Duration
	// Interval is the time between two reads, and the window of rates; 0: that of the source.
	Interval time.Duration
	// Bus receives the samples.
	Bus Publisher
	// Metrics and Logger may be nil.
	Metrics *metric.Set
	Logger  *slog.Logger
	// Groups is the open cgroup hierarchy, nil without targets. The poller opens and closes it.
	Groups *hostfs.Root
}

// Fill sets the fields that a configuration left out to their defaults.
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
