package runtimes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

// jvm is a HotSpot JVM. Its limit is SoftMaxHeapSize, which ZGC and Shenandoah keep to: they collect
// as if the heap were that large, and give the rest back to the kernel. G1, Parallel and Serial of JDK
// 17 ignore it.
type jvm struct{ process Process }

// heapNeed is how much larger than what is reachable the heap must be, so that the collector does not
// run all the time. A collection costs time in proportion to what is reachable, and there is one each
// time the rest is filled: with a quarter more, four times the reachable bytes are copied or marked
// for each byte that is allocated.
const heapNeed = 1.25

// findJVMs finds the processes that have loaded libjvm.so.
func findJVMs(members []int) (all []Program, err error) {
	for _, pid := range members {
		p, err := processOf(pid)
		if err != nil {
			continue // it ended
		}
		is, err := isJVM(p)
		if err != nil {
			return nil, err
		}
		if is {
			all = append(all, &jvm{p})
		}
	}
	return all, nil
}

func isJVM(p Process) (bool, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", p.PID))
	if err != nil {
		if p.alive() != nil {
			return false, nil
		}
		return false, fmt.Errorf("look for a JVM: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if strings.HasSuffix(lines.Text(), "/libjvm.so") {
			return true, nil
		}
	}
	return false, nil // it ended meanwhile, or is none
}

func (j *jvm) String() string { return fmt.Sprintf("JVM %d", j.process.PID) }

func (j *jvm) Process() Process { return j.process }

// flags asks for the values of flags, by name. A JVM without one of them leaves it out.
func (j *jvm) flags(ctx context.Context) (map[string]string, error) {
	text, err := j.process.attach(ctx, "jcmd", "VM.flags -all")
	if err != nil {
		return nil, err
	}
	return parseFlags(text), nil
}

// parseFlags reads lines like
//
//	size_t SoftMaxHeapSize      = 419430400      {manageable} {ergonomic}
func parseFlags(text string) map[string]string {
	flags := map[string]string{}
	for line := range strings.Lines(text) {
		if w := strings.Fields(line); len(w) >= 4 && (w[2] == "=" || w[2] == ":=") {
			flags[w[1]] = w[3]
		}
	}
	return flags
}

// heap has what matters of the flags and of the heap, in bytes.
type heap struct {
	soft, least, most uint64
	// obeys says that the collector keeps to SoftMaxHeapSize. uncommit is how long ZGC keeps unused
	// memory, in seconds.
	obeys    bool
	uncommit uint64
}

func (j *jvm) look(ctx context.Context) (h heap, err error) {
	flags, err := j.flags(ctx)
	if err != nil {
		return h, err
	}
	h, err = heapOf(flags)
	if err != nil {
		return h, fmt.Errorf("read flags of %s: %w", j, err)
	}
	return h, nil
}

func heapOf(flags map[string]string) (h heap, err error) {
	var bad []error
	number := func(name string) uint64 {
		v, err := strconv.ParseUint(flags[name], 10, 50)
		if err != nil {
			bad = append(bad, trimtab.Invalidf("%s is %.40q", name, flags[name]))
		}
		return v
	}
	on := func(name string) bool { return flags[name] == "true" }
	if flags["SoftMaxHeapSize"] == "" {
		return h, fmt.Errorf("it has no SoftMaxHeapSize, which JDK 13 brought: %w", trimtab.ErrUnsupported)
	}
	h = heap{soft: number("SoftMaxHeapSize"), least: number("MinHeapSize"), most: number("MaxHeapSize")}
	h.obeys = on("UseZGC") && on("ZUncommit") || on("UseShenandoahGC") && flags["ShenandoahUncommit"] != "false"
	if on("UseZGC") && flags["ZUncommitDelay"] != "" {
		h.uncommit = number("ZUncommitDelay")
	}
	return h, errors.Join(bad...)
}

// parseHeap returns the memory that the heap has from the kernel, and what objects take of it, from
// GC.heap_info, whose form depends on the collector. G1, Serial and Parallel (a line for each
// generation), Shenandoah and ZGC say
//
//	garbage-first heap   total 301056K, used 127864K [0x…
//	400M max, 219M soft max, 277M committed, 124M used
//	ZHeap           used 132M, capacity 206M, max capacity 400M
func parseHeap(text string) (committed, used float64, err error) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, "Metaspace") || strings.Contains(line, "class space") {
			continue
		}
		words := strings.FieldsFunc(line, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })
		at := func(i int) (float64, bool) {
			if i < 0 || i >= len(words) {
				return 0, false
			}
			return parseSize(words[i])
		}
		for i, word := range words {
			before, isBefore := at(i - 1)
			after, isAfter := at(i + 1)
			switch {
			case word == "total" && isAfter, word == "capacity" && isAfter && (i == 0 || words[i-1] != "max"):
				committed += after
			case word == "committed" && isBefore:
				committed += before
			case word == "used" && isAfter:
				used += after
			case word == "used" && isBefore:
				used += before
			}
		}
	}
	if !(committed > 0) || used > committed || committed > 1<<50 {
		return 0, 0, trimtab.Invalidf("its heap has %v bytes, of which %v are used: %.200q", committed, used, text)
	}
	return committed, used, nil
}

// parseSize reads a number with K, M, G, B or nothing behind it.
func parseSize(word string) (bytes float64, ok bool) {
	digits := strings.TrimRight(word, "BKMG")
	n, err := strconv.ParseUint(digits, 10, 50)
	unit, ok := map[string]float64{"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[word[len(digits):]]
	return float64(n) * unit, ok && err == nil
}

func (j *jvm) heap(ctx context.Context) (committed, used float64, err error) {
	text, err := j.process.attach(ctx, "jcmd", "GC.heap_info")
	if err == nil {
		if committed, used, err = parseHeap(text); err != nil {
			err = fmt.Errorf("read heap of %s: %w", j, err)
		}
	}
	return committed, used, err
}

// Read asks for the flags and the heap.
func (j *jvm) Read(ctx context.Context) (State, error) {
	h, err := j.look(ctx)
	if err != nil {
		return State{}, err
	}
	committed, _, err := j.heap(ctx)
	return State{Setting: strconv.FormatUint(h.soft, 10), Held: committed, Least: min(committed, float64(h.least))}, err
}

// Set sets SoftMaxHeapSize.
func (j *jvm) Set(ctx context.Context, to Room, was State) error {
	h, err := j.look(ctx)
	if err != nil {
		return err
	}
	before, err := strconv.ParseUint(was.Setting, 10, 64)
	switch {
	case err != nil:
		return trimtab.Invalidf("SoftMaxHeapSize of %s was %.40q", j, was.Setting)
	case !h.obeys && float64(h.most) > to.Bytes:
		return fmt.Errorf("the collector of %s does not keep to SoftMaxHeapSize, and its heap may grow to %s: start it with -XX:+UseZGC or -XX:+UseShenandoahGC, or with a smaller -Xmx: %w",
			j, bytesOf(float64(h.most)), trimtab.ErrUnsupported)
	case !h.obeys:
		return nil
	case to.Bytes < float64(h.least):
		return needs(j, float64(h.least), to)
	}
	return j.set(ctx, min(uint64(to.Bytes), before, h.most))
}

func (j *jvm) set(ctx context.Context, bytes uint64) error {
	want := strconv.FormatUint(bytes, 10)
	if _, err := j.process.attach(ctx, "setflag", "SoftMaxHeapSize", want); err != nil {
		return err
	}
	h, err := j.look(ctx)
	if err == nil && h.soft != bytes {
		err = trimtab.Invalidf("set SoftMaxHeapSize of %s to %s, read back %d", j, want, h.soft)
	}
	return err
}

// Free runs a collection, after which Shenandoah gives back at once what is free, and ZGC after its
// ZUncommitDelay.
func (j *jvm) Free(ctx context.Context, to Room) error {
	h, err := j.look(ctx)
	if err != nil {
		return err
	}
	if until, ok := ctx.Deadline(); ok && time.Until(until).Seconds() < float64(h.uncommit) {
		return fmt.Errorf("%s keeps unused memory for %d s: start it with -XX:ZUncommitDelay=1, or raise wait in the configuration: %w", j, h.uncommit, trimtab.ErrUnsupported)
	}
	if _, err := j.process.attach(ctx, "jcmd", "GC.run"); err != nil {
		return err
	}
	_, used, err := j.heap(ctx)
	if err == nil && heapNeed*used > to.Bytes {
		err = needs(j, heapNeed*used, to)
	}
	return err
}

// Restore sets SoftMaxHeapSize to what it was.
func (j *jvm) Restore(ctx context.Context, setting string) error {
	bytes, err := strconv.ParseUint(setting, 10, 50)
	if err != nil {
		return trimtab.Invalidf("SoftMaxHeapSize of %s was %.40q", j, setting)
	}
	return j.set(ctx, bytes)
}
