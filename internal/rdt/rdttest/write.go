package rdttest

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// change runs a command. It clears the status before, and records the command.
func (t *Tree) change(op, name, value string, run func() error) error {
	t.mu.Lock()
	before := t.before
	t.before = nil
	t.mu.Unlock()
	if before != nil {
		before(op, name)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.before == nil {
		t.before = before
	}
	var err error
	switch {
	case t.gone:
		err = syscall.ENOENT
	case t.fail != nil:
		err = t.fail(op, name, value)
	}
	if err == nil {
		t.status = ""
		err = run()
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", op, name, err)
	}
	t.writes = append(t.writes, strings.TrimSpace(op+" "+name+" "+value))
	return nil
}

// say sets the last command's status, and returns the error with it.
func (t *Tree) say(err syscall.Errno, format string, args ...any) error {
	t.status += fmt.Sprintf(format, args...) + "\n"
	return err
}

// Mkdir creates a group, which gets the unused ways and those of other shareable groups.
func (t *Tree) Mkdir(name string) error {
	return t.change("mkdir", name, "", func() error {
		switch {
		case t.groups[name] != nil || name == "info" || name == "mon_data" || name == "mon_groups":
			return syscall.EEXIST
		case name == "" || strings.ContainsAny(name, "\n/") || len(name) > 255:
			return syscall.EINVAL
		case len(t.resources()) == 0:
			return syscall.EPERM // only monitors: no control groups
		}
		closid := t.free()
		if closid == 0 {
			return t.say(syscall.ENOSPC, "Out of CLOSIDs")
		}
		if t.spec.RMIDs > 0 && len(t.groups) >= t.spec.RMIDs {
			return t.say(syscall.ENOSPC, "Out of RMIDs")
		}
		g := &group{closid: closid, mode: "shareable", values: map[string]map[int]uint64{}, monitors: map[string]string{}}
		for _, resource := range t.resources() {
			g.values[resource] = map[int]uint64{}
			for _, d := range t.spec.Domains {
				v := t.most(resource)
				if resource != "MB" {
					if v = t.initial(d); bits.OnesCount64(v) < t.spec.MinBits {
						return t.say(syscall.ENOSPC, "No space on %s:%d", resource, d)
					}
				}
				g.values[resource][d] = v
			}
		}
		t.groups[name] = g
		return nil
	})
}

// free returns the lowest class that no group has, 0 where there is none.
func (t *Tree) free() int {
	for id := 1; id < t.spec.CLOSIDs; id++ {
		taken := false
		for _, g := range t.groups {
			taken = taken || g.closid == id
		}
		if !taken {
			return id
		}
	}
	return 0
}

// initial is the mask of cache ways of a new group in one domain. It may use the ways
// that are shared with devices, those of shareable groups, and those that no group
// uses; the kernel takes the first run of consecutive ones.
func (t *Tree) initial(domain int) uint64 {
	mask, used := t.spec.Shareable, t.spec.Shareable
	for _, g := range t.groups {
		for _, name := range t.caches() {
			used |= g.values[name][domain]
			if g.mode == "shareable" {
				mask |= g.values[name][domain]
			}
		}
	}
	mask |= ^used & t.most(t.caches()[0])
	if mask == 0 {
		return 0
	}
	first := bits.TrailingZeros64(mask)
	return (1<<bits.TrailingZeros64(^(mask>>first)) - 1) << first
}

// Rmdir removes a group; its tasks go to the default one.
func (t *Tree) Rmdir(name string) error {
	return t.change("rmdir", name, "", func() error {
		if t.groups[name] == nil && name != "info" && name != "mon_data" && name != "mon_groups" {
			return syscall.ENOENT
		}
		if name == "" || t.groups[name] == nil {
			return syscall.EPERM
		}
		delete(t.groups, name)
		for id, in := range t.tasks {
			if in == name {
				t.tasks[id] = ""
			}
		}
		return nil
	})
}

// Write writes a file.
func (t *Tree) Write(name, value string) error {
	return t.change("write", name, value, func() error {
		g, dir, file, err := t.parse(name)
		switch {
		case err != nil:
			return err
		case dir == "info":
			return syscall.EACCES
		case file == "schemata":
			return t.writeSchemata(g, value)
		case file == "tasks":
			return t.writeTasks(dir, value)
		case file == "mode":
			return t.writeMode(g, strings.TrimSuffix(value, "\n"))
		}
		if _, err := t.monData(g, file); err == nil {
			return syscall.EACCES
		}
		return syscall.ENOENT
	})
}

// writeTasks moves tasks, one after the other, up to the first that fails.
func (t *Tree) writeTasks(dir, value string) error {
	for part := range strings.SplitSeq(strings.TrimSuffix(value, "\n"), ",") {
		part = strings.TrimSpace(part)
		id, err := strconv.ParseInt(part, 0, 32)
		switch {
		case err != nil:
			return t.say(syscall.EINVAL, "Task list parsing error pid %s", part)
		case id < 0:
			return t.say(syscall.EINVAL, "Invalid pid %d", id)
		}
		if _, lives := t.tasks[int(id)]; !lives {
			_ = t.say(syscall.ESRCH, "No task %d", id)
			return t.say(syscall.ESRCH, "Error while processing task %d", id)
		}
		t.tasks[int(id)] = dir
	}
	return nil
}

// staged is one value that was parsed and not applied yet.
type staged struct {
	resource string
	domain   int
	value    uint64
}

// writeSchemata applies all lines, or none; MiB/s, which the kernel's own controller reads, apply
// line by line.
func (t *Tree) writeSchemata(g *group, text string) error {
	if !strings.HasSuffix(text, "\n") {
		return syscall.EINVAL
	}
	var all []staged
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		name, rest, ok := strings.Cut(line, ":")
		name = strings.TrimSpace(name)
		switch {
		case !ok:
			return t.say(syscall.EINVAL, "Missing ':'")
		case rest == "":
			return t.say(syscall.EINVAL, "Missing '%s' value", name)
		case !slices.Contains(t.resources(), name):
			return t.say(syscall.EINVAL, "Unknown or unsupported resource name '%s'", name)
		}
		line, err := t.parseLine(g, name, rest, all)
		if err != nil {
			return err
		}
		all = line
	}
	for _, s := range all {
		g.values[s.resource][s.domain] = s.value
	}
	return nil
}

func (t *Tree) parseLine(g *group, name, rest string, all []staged) ([]staged, error) {
	for part := range strings.SplitSeq(rest, ";") {
		if part == "" {
			return all, nil // the kernel stops at an empty rest
		}
		id, value, ok := strings.Cut(part, "=")
		domain, err := strconv.ParseUint(id, 10, 31)
		if !ok || err != nil {
			return nil, t.say(syscall.EINVAL, "Missing '=' or non-numeric domain")
		}
		if !slices.Contains(t.spec.Domains, int(domain)) {
			return nil, syscall.EINVAL
		}
		s := staged{name, int(domain), 0}
		if slices.ContainsFunc(all, func(x staged) bool { return x.resource == name && x.domain == s.domain }) {
			return nil, t.say(syscall.EINVAL, "Duplicate domain %d", domain)
		}
		validate := t.validMask
		if name == "MB" {
			validate = t.validBandwidth
		}
		if s.value, err = validate(g, int(domain), strings.TrimSpace(value)); err != nil {
			return nil, err
		}
		if name == "MB" && t.spec.MBps {
			g.values[name][s.domain] = s.value
			continue
		}
		all = append(all, s)
	}
	return all, nil
}

// validBandwidth checks a percentage, which is rounded up to the next step.
func (t *Tree) validBandwidth(_ *group, _ int, text string) (uint64, error) {
	v, err := strconv.ParseUint(text, 10, 32)
	switch {
	case err != nil:
		return 0, t.say(syscall.EINVAL, "Invalid MB value %s", text)
	case t.spec.MBps:
		return v, nil
	case v < uint64(t.spec.Min) || v > t.most("MB"):
		return 0, t.say(syscall.EINVAL, "MB value %d out of range [%d,%d]", v, t.spec.Min, t.most("MB"))
	}
	gran := uint64(t.spec.Gran)
	v = (v + gran - 1) / gran * gran
	if t.spec.MPAM > 0 {
		all := uint64(1) << t.spec.MPAM
		k := min(all, max(1, (v*all+50)/100))
		v = (200*k + all) / (2 * all)
	}
	return v, nil
}

// validMask checks a mask of ways.
func (t *Tree) validMask(g *group, domain int, text string) (uint64, error) {
	v, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
	if err != nil {
		return 0, t.say(syscall.EINVAL, "Non-hex character in the mask %s", text)
	}
	if v == 0 || v > t.most(t.caches()[0]) {
		return 0, t.say(syscall.EINVAL, "Mask out of range")
	}
	run := v >> bits.TrailingZeros64(v)
	if run&(run+1) != 0 {
		return 0, t.say(syscall.EINVAL, "The mask %x has non-consecutive 1-bits", v)
	}
	if bits.OnesCount64(v) < t.spec.MinBits {
		return 0, t.say(syscall.EINVAL, "Need at least %d bits in the mask", t.spec.MinBits)
	}
	if t.overlaps(g, domain, v, true) {
		return 0, t.say(syscall.EINVAL, "Overlaps with exclusive group")
	}
	if g.mode == "exclusive" && t.overlaps(g, domain, v, false) {
		return 0, t.say(syscall.EINVAL, "Overlaps with other group")
	}
	return v, nil
}

// overlaps reports whether another group, or only one that is exclusive, has ways of a
// mask.
func (t *Tree) overlaps(g *group, domain int, mask uint64, exclusive bool) bool {
	for other := range maps.Values(t.groups) {
		if other == g || exclusive && other.mode != "exclusive" {
			continue
		}
		for _, name := range t.caches() {
			if other.values[name][domain]&mask != 0 {
				return true
			}
		}
	}
	return false
}

// writeMode makes a group exclusive, or shareable again.
func (t *Tree) writeMode(g *group, mode string) error {
	switch mode {
	case "shareable":
		g.mode = mode
		return nil
	case "exclusive":
		for _, name := range t.caches() {
			for d, v := range g.values[name] {
				if t.overlaps(g, d, v, false) {
					return t.say(syscall.EINVAL, "Schemata overlaps")
				}
			}
		}
		g.mode = mode
		return nil
	}
	return t.say(syscall.EINVAL, "Unknown or unsupported mode")
}
