package cpuset

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func FuzzParseSet(f *testing.F) {
	for _, s := range []string{"", "0", "0-3,7", "7,0-3", "3-1", "0-99999", "-", "0-", ",", "0-3,2", "00", "1 2", "0-16383,0-16383,0-16383"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSet(text)
		if err != nil {
			return
		}
		again, err := ParseSet(s.String())
		if err != nil || !slices.Equal(again, s) || !slices.IsSorted(s) || len(s) > maxCPU+1 {
			t.Errorf("%q is %v, and that %q is %v, %v", text, s, s.String(), again, err)
		}
	})
}

func TestTheKernelsListsAreRead(t *testing.T) {
	for text, want := range map[string]string{"0-3,7": "0-3,7", "7,0-3\n": "0-3,7", "0,1,2,5": "0-2,5", "": "", "5-5": "5"} {
		if s, err := ParseSet(text); err != nil || s.String() != want {
			t.Errorf("%q: %q, %v, want %q", text, s, err, want)
		}
	}
	for _, text := range []string{"x", "3-1", "0-99999", "1-", "-1", "1,,2", "0x1"} {
		if s, err := ParseSet(text); err == nil {
			t.Errorf("%q: %v, want an error", text, s)
		}
	}
}

// machines draws a machine: cores of 1 to 4 threads, numbered as kernels do (threads
// of a core side by side, or a round over all cores after the other), or at random.
func machines() *rapid.Generator[Topology] {
	return rapid.Custom(func(t *rapid.T) Topology {
		n, threads := rapid.IntRange(1, 12).Draw(t, "cores"), rapid.IntRange(1, 4).Draw(t, "threads")
		numbers := make([]int, n*threads)
		for i := range numbers {
			numbers[i] = i
		}
		order := rapid.SampledFrom([]string{"side by side", "round by round", "shuffled"}).Draw(t, "order")
		if order == "shuffled" {
			numbers = rapid.Permutation(numbers).Draw(t, "numbers")
		}
		var out Topology
		for i := range n {
			var core Set
			for j := range threads {
				at := i*threads + j
				if order == "round by round" {
					at = j*n + i
				}
				core = append(core, numbers[at])
			}
			slices.Sort(core)
			out = append(out, core)
		}
		return out
	})
}

// subset draws some of a set.
func subset(t *rapid.T, of Set, label string) (out Set) {
	for _, n := range of {
		if rapid.Bool().Draw(t, fmt.Sprint(label, n)) {
			out = append(out, n)
		}
	}
	return out
}

func TestAChoiceIsWholeCoresNeverEmptyAndSharesNothingNew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		machine := machines().Draw(t, "machine")
		allowed := subset(t, union(machine), "allowed")
		c := Choice{Cores: machine.Cores(allowed), High: rapid.Bool().Draw(t, "high")}
		c.Has, c.Others = subset(t, allowed, "has"), subset(t, union(machine), "others")
		n := rapid.IntRange(-1, len(machine)+1).Draw(t, "n")
		set, ok := Choose(n, c)
		if again, same := Choose(n, c); same != ok || !slices.Equal(again, set) {
			t.Fatalf("%v, and again %v", set, again)
		}
		had, shared, free := 0, 0, 0
		for _, core := range c.Cores {
			switch has, taken := c.Has.Meets(core), c.Others.Meets(core); {
			case has && taken:
				had, shared = had+1, shared+1
			case has:
				had, free = had+1, free+1
			case !taken:
				free++
			}
		}
		if want := n >= 1 && (n <= free || n <= had && n <= free+shared); ok != want {
			t.Fatalf("%d of %d free, %d shared, %d had: %v", n, free, shared, had, ok)
		}
		if !ok {
			return
		}
		got, kept := 0, 0
		for _, core := range machine {
			part := core.And(set)
			if len(part) == 0 {
				continue
			}
			got++
			if !slices.Equal(part, core.And(allowed)) {
				t.Fatalf("%v has %v of the core %v, of which %v is allowed", set, part, core, core.And(allowed))
			}
			if c.Others.Meets(part) {
				if kept++; !c.Has.Meets(part) {
					t.Fatalf("%v shares %v, which it had not", set, part)
				}
			}
		}
		if got != n || !allowed.Covers(set) {
			t.Fatalf("%v: %d cores, want %d of %v", set, got, n, allowed)
		}
		if kept > max(0, n-free) {
			t.Fatalf("%v shares %d cores, and %d are free", set, kept, free)
		}
	})
}

// What a group has, less of it and more again: the nearest to its own end stays, and
// what it gives back is what the others then find free.
func TestAGroupKeepsItsEndAndGrowsFromIt(t *testing.T) {
	machine := Topology{{0, 4}, {1, 5}, {2, 6}, {3, 7}}
	all := Set{0, 1, 2, 3, 4, 5, 6, 7}
	for _, c := range []struct {
		n           int
		high        bool
		has, others string
		want        string
	}{
		{1, false, "0-7", "", "0,4"},
		{1, true, "0-7", "", "3,7"},
		{2, false, "1-3,5-7", "", "1-2,5-6"},
		{3, false, "2,6", "", "0-2,4-6"},
		{2, true, "2,6", "", "2-3,6-7"},
		{2, true, "3,7", "0,4", "2-3,6-7"},
		{3, true, "3,7", "0-1,4-5", "none"},
		{2, false, "0,4", "5-7", "none"},
		{1, false, "1,5", "1", "0,4"},   // not what another has, if something else is free
		{1, false, "1,5", "0-7", "1,5"}, // but what it has rather than none
		{2, false, "1", "2-3", "0-1,4-5"},
	} {
		choice := Choice{Cores: machine.Cores(all), High: c.high}
		var errs [2]error
		choice.Has, errs[0] = ParseSet(c.has)
		choice.Others, errs[1] = ParseSet(c.others)
		set, ok := Choose(c.n, choice)
		got := set.String()
		if !ok {
			got = "none"
		}
		if got != c.want || errs != [2]error{} {
			t.Errorf("%d of %s beside %s: %s, want %s", c.n, c.has, c.others, got, c.want)
		}
	}
}

// Groups that take turns: whatever is asked of each, none gets what another has, and
// who has something keeps a core of it.
func TestGroupsThatGrowAndShrinkInTurnNeverMeet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		machine := machines().Draw(t, "machine")
		all := union(machine)
		has := make([]Set, rapid.IntRange(1, 4).Draw(t, "groups"))
		for range 30 {
			i := rapid.IntRange(0, len(has)-1).Draw(t, "group")
			c := Choice{Cores: machine.Cores(all), Has: has[i], High: i%2 == 1}
			for j := range has {
				if j != i {
					c.Others = c.Others.Or(has[j])
				}
			}
			if set, ok := Choose(rapid.IntRange(1, len(machine)).Draw(t, "n"), c); ok {
				has[i] = set
			}
			if has[i].Meets(c.Others) || len(c.Has) > 0 && !has[i].Meets(c.Has) {
				t.Fatalf("%v became %v, others have %v", c.Has, has[i], c.Others)
			}
		}
	})
}
