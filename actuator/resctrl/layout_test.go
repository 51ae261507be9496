package resctrl

import (
	"math/bits"
	"testing"

	"pgregory.net/rapid"
)

// world draws disjoint groups in a window, at least one of them.
func world(r *rapid.T) (width int, groups []span) {
	width = rapid.IntRange(1, 20).Draw(r, "width")
	for at := 0; at < width; {
		at += rapid.IntRange(0, 3).Draw(r, "gap")
		n := rapid.IntRange(1, 5).Draw(r, "ways")
		if at+n > width {
			break
		}
		groups = append(groups, span{string(rune('a' + len(groups))), at, n})
		at += n
	}
	return width, groups
}

func TestNoTwoGroupsEverShareAWayWhileNeighboursMove(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		width, groups := world(r)
		w := window{from: rapid.IntRange(0, 10).Draw(r, "from"), n: width, mirrored: rapid.Bool().Draw(r, "mirrored")}
		own := span{group: "own"}
		if len(groups) > 0 && rapid.Bool().Draw(r, "has ways") {
			i := rapid.IntRange(0, len(groups)-1).Draw(r, "own")
			own = groups[i]
			groups = append(groups[:i:i], groups[i+1:]...)
		}
		want := rapid.IntRange(0, 22).Draw(r, "want")
		moves, to, ok := place(width, groups, own, want, rapid.Bool().Draw(r, "high"))
		if fits := want >= 1 && want+total(groups) <= width; ok != fits {
			r.Fatalf("%d ways of %d beside %v: %v", want, width, groups, ok)
		}
		if !ok {
			return
		}
		masks := map[string]uint64{}
		for _, s := range groups {
			masks[s.group] = w.mask(s)
		}
		if own.n > 0 {
			masks[own.group] = w.mask(own)
		}
		for _, s := range append(moves, to) {
			was, moved := masks[s.group], w.mask(s)
			if s.group != own.group && bits.OnesCount64(was) != s.n {
				r.Fatalf("%s had %x, is to have %x", s.group, was, moved)
			}
			masks[s.group] = moved
			sum := 0
			all := uint64(0)
			for name, m := range masks {
				if back, ok := w.span(name, m); !ok || w.mask(back) != m {
					r.Fatalf("%s has %x: not a run within the window", name, m)
				}
				all |= m
				sum += bits.OnesCount64(m)
			}
			if bits.OnesCount64(all) != sum {
				r.Fatalf("after the move of %s two share a way: %x", s.group, masks)
			}
		}
		if bits.OnesCount64(masks[own.group]) != want {
			r.Fatalf("%d ways were wanted: %x", want, masks[own.group])
		}
	})
}

func TestNobodyMovesWhileThereAreFreeWaysBesideTheGroup(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		width, groups := world(r)
		if len(groups) == 0 {
			return
		}
		i := rapid.IntRange(0, len(groups)-1).Draw(r, "own")
		own := groups[i]
		low, high := 0, width
		if i > 0 {
			low = groups[i-1].end()
		}
		if i+1 < len(groups) {
			high = groups[i+1].at
		}
		want := rapid.IntRange(1, high-low).Draw(r, "want")
		moves, to, ok := place(width, append(groups[:i:i], groups[i+1:]...), own, want, rapid.Bool().Draw(r, "high"))
		if !ok || len(moves) > 0 || to.at < low || to.end() > high {
			r.Fatalf("%v to %d ways within [%d, %d): %v, moves %v", own, want, low, high, to, moves)
		}
	})
}

func TestWaysThatDevicesShareAreGivenOutLast(t *testing.T) {
	for _, c := range []struct {
		name                   string
		mask, taken, shareable uint64
		want                   uint64 // of the first group, two ways
	}{
		{"shared at the top", 0x7ff, 0, 0x600, 0x003},
		{"shared at the bottom", 0x7ff, 0, 0x003, 0x600},
		{"the default group was given the low ways", 0xfffff, 0x000ff, 0xc0000, 0x00300},
		{"somebody has the middle", 0x7ff, 0x008, 0, 0x030},
	} {
		w := windowOf(c.mask, c.taken, c.shareable)
		_, to, ok := place(w.n, nil, span{}, 2, false)
		if !ok || w.mask(to) != c.want {
			t.Errorf("%s: %x, want %x", c.name, w.mask(to), c.want)
		}
	}
	if w := windowOf(0x7ff, 0x7ff, 0); w.n != 0 {
		t.Errorf("of nothing: %+v", w)
	}
}

func TestBestEffortGroupsGrowFromTheOtherEnd(t *testing.T) {
	_, critical, _ := place(11, nil, span{group: "critical"}, 4, false)
	_, effort, _ := place(11, []span{critical}, span{group: "effort"}, 3, true)
	if critical != (span{"critical", 0, 4}) || effort != (span{"effort", 8, 3}) {
		t.Errorf("%v and %v", critical, effort)
	}
	for _, c := range []struct{ want, at int }{{2, 9}, {5, 6}, {1, 10}, {7, 4}} {
		moves, to, ok := place(11, []span{critical}, effort, c.want, true)
		if !ok || len(moves) > 0 || to.at != c.at {
			t.Errorf("%d ways: %v, moves %v", c.want, to, moves)
		}
	}
}
