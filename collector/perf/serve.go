package perf

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/poll"
)

// Serve counts for a collector until in ends, which it does when the collector dies. root
// is the hierarchy of control groups that paths are relative to. Where it is "", or cannot
// be opened, the whole host alone is counted.
func Serve(root string, in io.Reader, out io.Writer) error {
	s := &server{open: map[group]*counters{}, room: room()}
	defer s.clear()
	sw, hw, ability := probe()
	if root != "" {
		dir, err := os.OpenRoot(root)
		if err != nil {
			ability.Missing = append(ability.Missing, "counters of cgroups: "+err.Error())
		} else {
			defer dir.Close()
			s.root = dir
		}
	}
	s.sets = [2][]event{sw, hw}
	ability.Software, ability.Hardware = names(sw), names(hw)
	if err := writeMessage(out, ability); err != nil {
		return fmt.Errorf("count: %w", err)
	}
	lines := bufio.NewReader(in)
	for {
		var q request
		err := readMessage(lines, &q)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = writeMessage(out, s.answer(q))
		}
		if err != nil {
			return fmt.Errorf("count: %w", err)
		}
	}
}

func names(events []event) (all []string) {
	for _, e := range events {
		all = append(all, e.name)
	}
	return all
}

// server has the counters of the groups of the last request.
type server struct {
	root *os.Root
	sets [2][]event
	cpus []int
	open map[group]*counters
	// used of room descriptors are open.
	used, room int
}

func (s *server) clear() {
	for g := range s.open {
		s.drop(g)
	}
}

func (s *server) drop(g group) {
	s.used -= len(s.open[g].fds)
	s.open[g].close()
	delete(s.open, g)
}

// answer reads the groups of a request, and closes all others. If the set of online CPUs has
// changed, all counters start again.
func (s *server) answer(q request) answer {
	cpus, err := onlineCPUs()
	if err != nil || !slices.Equal(cpus, s.cpus) {
		s.clear()
		s.cpus = cpus
	}
	asked := make(map[group]bool, len(q.Groups))
	for _, g := range q.Groups {
		asked[g] = true
	}
	for g := range s.open {
		if !asked[g] {
			s.drop(g)
		}
	}
	out := answer{Seq: q.Seq, Groups: make([]interval, len(q.Groups))}
	for i, g := range q.Groups {
		out.Groups[i] = s.count(g)
	}
	return out
}

// count reads one group, and opens it where it is new.
func (s *server) count(g group) interval {
	c := s.open[g]
	if c == nil {
		var why string
		if c, why = s.begin(g); c == nil {
			return interval{Software: set{Missing: why}, Hardware: set{Missing: why}}
		}
	}
	return c.read(s.sets)
}

// begin opens the counters of a group, or says why it cannot.
func (s *server) begin(g group) (*counters, string) {
	need := len(s.cpus) * (len(s.sets[0]) + len(s.sets[1]))
	switch {
	case need == 0:
		return nil, notCounted
	case s.used+need > s.room || len(s.open) >= MaxGroups:
		return nil, tooMany
	}
	var dir *os.File
	if g.Path != "" {
		if s.root == nil {
			return nil, notCounted
		}
		f, err := s.root.Open(g.Path)
		if err != nil {
			return nil, poll.WhyMissing(err)
		}
		defer f.Close()
		dir = f
	}
	c, err := openCounters(dir, s.cpus, s.sets)
	if err != nil {
		return nil, poll.Unreadable
	}
	s.open[g] = c
	s.used += len(c.fds)
	return c, ""
}

// validate checks an answer of the counting process.
func (a *answer) validate(q request, able Ability) error {
	if a.Seq != q.Seq || len(a.Groups) != len(q.Groups) {
		return trimtab.Invalidf("answer %d of %d groups to request %d of %d", a.Seq, len(a.Groups), q.Seq, len(q.Groups))
	}
	for i := range a.Groups {
		g := &a.Groups[i]
		if g.Window < 0 {
			return trimtab.Invalidf("answer over %v", g.Window)
		}
		for _, of := range []struct {
			s set
			n int
		}{{g.Software, len(able.Software)}, {g.Hardware, len(able.Hardware)}} {
			if of.s.Missing == "" && len(of.s.Counts) != of.n || of.s.Missing != "" && !slices.Contains(reasons(), of.s.Missing) {
				return trimtab.Invalidf("answer of %d counts, missing %.40q: want %d", len(of.s.Counts), of.s.Missing, of.n)
			}
			for _, v := range of.s.Counts {
				if !(v >= 0 && v < 1e30) {
					return trimtab.Invalidf("answer with a count of %v", v)
				}
			}
		}
	}
	return nil
}
