package perf

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Ability lists the events that this machine counts, and why it does not count the others.
type Ability struct {
	// Software and Hardware are the events that are counted, by name.
	Software []string `json:"software,omitempty"`
	Hardware []string `json:"hardware,omitempty"`
	Missing  []string `json:"lacks,omitempty"`
}

// Probe starts the counting process, lets it count each event for a moment, and ends it. The
// result is what an agent with the rights of this process can count, since the counting process
// drops all capabilities but CAP_PERFMON. command is as in [Config].Helper.
func Probe(ctx context.Context, command []string) (Ability, error) {
	h := &helper{command: append(append([]string{}, command...), ""), logger: slog.New(slog.DiscardHandler), started: func() {}}
	defer h.end()
	err := h.start(ctx)
	return h.able, err
}

// probe returns the events that work. An event that the kernel accepts and the CPU does not
// count, as in some virtual machines, does not. Without cycles and instructions no hardware event
// is used: misses alone mean nothing.
func probe() (sw, hw []event, a Ability) {
	try := func(e event) bool {
		err := tryEvent(e)
		if err != nil {
			a.Missing = append(a.Missing, err.Error())
		}
		return err == nil
	}
	if try(software()[taskClock]) {
		sw = software()
	}
	all := hardware()
	if !try(all[cycles]) || !try(all[instructions]) {
		return sw, nil, a
	}
	hw = all[:misses:misses]
	for _, cache := range [][]event{all[misses:], reads()} {
		if !try(cache[0]) {
			continue
		}
		if hw = append(hw, cache[0]); try(cache[1]) {
			hw = append(hw, cache[1])
		}
		break
	}
	return sw, hw, a
}

// enough is the least CPU time for which a probe counts its own work.
const enough = 2 * time.Millisecond

// tryEvent counts on the CPU that this thread is on.
func tryEvent(e event) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cpus, err := onlineCPUs()
	if err != nil {
		return err
	}
	fds := make([]int, 0, len(cpus))
	defer func() {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}()
	for _, cpu := range cpus {
		fd, err := e.open(nil, cpu, -1)
		if err != nil {
			return explain(err)
		}
		fds = append(fds, fd)
	}
	for begun := time.Now(); time.Since(begun) < enough; {
		continue // it is counted while it waits
	}
	buffer := make([]byte, 8*(header+1))
	for _, fd := range fds {
		n, err := unix.Read(fd, buffer)
		if err != nil {
			return fmt.Errorf("read %s: %w", e.name, err)
		}
		r, err := parseReading(buffer[:n], 1)
		if err != nil {
			return err
		}
		if r.counts[0] > 0 || e.kind == unix.PERF_TYPE_HW_CACHE && r.running > 0 {
			return nil
		}
	}
	return fmt.Errorf("count %s: the CPUs count nothing", e.name)
}

// mostParanoid is the highest level of kernel.perf_event_paranoid that Linux itself knows.
// Debian's kernels add 3, which they begin with: there CAP_PERFMON alone opens no counter.
const mostParanoid = 2

// refused returns what to do if the kernel allows no counter, given the capabilities and the
// level of kernel.perf_event_paranoid.
func refused(err error, has uint64, paranoid string) error {
	level, bad := strconv.Atoi(strings.TrimSpace(paranoid))
	if bad == nil && level > mostParanoid && has&(1<<unix.CAP_PERFMON) != 0 {
		return fmt.Errorf("%w (kernel.perf_event_paranoid is %d, where CAP_PERFMON alone opens no counter: sysctl kernel.perf_event_paranoid=%d)", err, level, mostParanoid)
	}
	return fmt.Errorf("%w (%s)", err, giveRight)
}

// giveRight is the advice when the right to count is missing.
const giveRight = "give CAP_PERFMON, on kernels before 5.8 set kernel.perf_event_paranoid to 0"

// explain explains an error of perf_event_open(2).
func explain(err error) error {
	switch {
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, syscall.ENODEV):
		return fmt.Errorf("%w (this machine has no such counter: most virtual machines have none)", err)
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		has, bad := capabilities()
		if text, unread := os.ReadFile("/proc/sys/kernel/perf_event_paranoid"); bad == nil && unread == nil {
			return refused(err, has, string(text))
		}
		return fmt.Errorf("%w (%s)", err, giveRight)
	case errors.Is(err, syscall.ENOSYS):
		return fmt.Errorf("%w (the kernel was built without perf events)", err)
	}
	return err
}

// String describes it for an operator.
func (a Ability) String() string {
	return fmt.Sprintf("software events: %s; hardware events: %s", orNone(a.Software), orNone(a.Hardware))
}

func orNone(all []string) string {
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}
