package link

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/internal/hosted"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Interfaces is the kernel's directory of network interfaces.
const Interfaces = "/sys/class/net"

// Reading is the kernel's counters of one interface at one time.
type Reading struct {
	// At is the time since the host booted.
	At time.Duration
	// Bytes is the kernel's counter of bytes sent.
	Bytes uint64
	// Bandwidth is in bytes per second; 0 if the interface reports no speed.
	Bandwidth float64
}

// Read reads one interface below dir, or below Interfaces if dir is empty.
func Read(dir, name string) (Reading, error) {
	if name == "" || name != filepath.Base(name) || name == "." || name == ".." {
		return Reading{}, trimtab.Invalidf("interface %.40q: want the name of one", name)
	}
	if dir == "" {
		dir = Interfaces
	}
	r := Reading{At: hostfs.BootTime()}
	text, err := readFile(filepath.Join(dir, name, "statistics", "tx_bytes"))
	if err == nil {
		r.Bytes, err = strconv.ParseUint(text, 10, 64)
	}
	if err != nil {
		return Reading{}, fmt.Errorf("read interface %s: %w", name, err)
	}
	// The kernel answers EINVAL for an interface that is down.
	text, err = readFile(filepath.Join(dir, name, "speed"))
	if err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.EOPNOTSUPP) {
		return Reading{}, fmt.Errorf("read speed of interface %s: %w", name, err)
	}
	if err == nil {
		r.Bandwidth = ParseSpeed(text)
	}
	return r, nil
}

// maxFile bounds what is read of a file.
const maxFile = 64

func readFile(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b := make([]byte, maxFile)
	n, err := f.Read(b)
	return strings.TrimSpace(string(b[:n])), err
}

// ParseSpeed converts the kernel's text of a speed in Mbit/s to bytes per second. It
// returns 0 if the speed is unknown, for which the kernel writes -1.
func ParseSpeed(text string) float64 {
	v, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
	if err != nil || v <= 0 {
		return 0
	}
	return float64(v) * 1e6 / 8
}

// Sent returns how much was sent between two readings of an interface, in bytes per
// second.
func Sent(before, after Reading) (float64, error) {
	window := after.At - before.At
	if window <= 0 || after.Bytes < before.Bytes {
		return 0, trimtab.Invalidf("from %d to %d bytes in %v: not two readings of one interface", before.Bytes, after.Bytes, window)
	}
	return float64(after.Bytes-before.Bytes) / window.Seconds(), nil
}

// Source is the source of all samples of this package.
const Source = "link"

// Config says where samples of the host go.
type Config = hosted.Config

// Collector publishes readings of interfaces.
type Collector struct {
	config Config
	dir    string
	names  []string
	before map[string]Reading
}

// Open checks the configuration. An interface that does not exist yet is no error.
func Open(dir string, names []string, c Config) (*Collector, error) {
	if err := c.Fill(Source); err != nil {
		return nil, err
	}
	return &Collector{config: c, dir: dir, names: names, before: map[string]Reading{}}, nil
}

// Close does nothing: nothing is kept open.
func (c *Collector) Close() error { return nil }

// Run publishes until ctx ends; it then returns nil.
func (c *Collector) Run(ctx context.Context) error { return c.config.Run(ctx, Source, c.measure) }

// measure returns two samples of each interface; its name is their instance.
func (c *Collector) measure() (all []*trimtab.Sample) {
	for _, name := range c.names {
		sent := &trimtab.Sample{Quantity: trimtab.Sent, Instance: name}
		bandwidth := &trimtab.Sample{Quantity: trimtab.Bandwidth, Instance: name}
		all = append(all, sent, bandwidth)
		now, err := Read(c.dir, name)
		if err != nil {
			why := "unreadable"
			if errors.Is(err, fs.ErrNotExist) {
				why = "absent"
			}
			sent.Missing, bandwidth.Missing = why, why
			delete(c.before, name)
			continue
		}
		before, known := c.before[name]
		c.before[name] = now
		if bandwidth.Value = now.Bandwidth; now.Bandwidth == 0 {
			bandwidth.Missing = "no speed told"
		}
		switch v, err := Sent(before, now); {
		case !known:
			sent.Missing = "first reading"
		case err != nil:
			sent.Missing = "counter reset"
		default:
			sent.Value, sent.Window = v, trimtab.SecondsOf(now.At-before.At)
		}
	}
	return all
}
