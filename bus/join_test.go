package bus

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
)

// aPlan is a plan over hosts h0, h1, …, of which actions may leave some out, and
// sometimes one of several pieces.
func aPlan(t *rapid.T) *trimtab.Plan {
	hosts := []string{"h0", "h1", "h2", "h3"}[:rapid.IntRange(2, 4).Draw(t, "hosts")]
	p := &trimtab.Plan{
		Pool: "p", Epoch: 1, Sequence: rapid.Uint64Range(1, 3).Draw(t, "sequence"), Step: rapid.IntRange(1, 2).Draw(t, "step"), Last: true,
		Time: time.Unix(1, 0).UTC(), Lease: 60, Capacity: 9, Hosts: hosts, Held: map[string]trimtab.Held{"w": {Code: codes.HeldOld, Text: "old"}},
	}
	for i := range rapid.IntRange(0, 6).Draw(t, "actions") {
		p.Actions = append(p.Actions, trimtab.Action{
			KnobID: trimtab.KnobID{Pool: "p", Host: rapid.SampledFrom(hosts).Draw(t, "host"), Workload: string(rune('a' + i)), Resource: trimtab.CPU},
			Mode:   trimtab.Act, Set: trimtab.Units(float64(i)),
		})
	}
	if rapid.Bool().Draw(t, "thousands held") {
		p.Held = maps.Clone(thousands())
	}
	return p
}

// thousands are more than fit into two pieces, and what every plan holds.
var thousands = sync.OnceValue(func() map[string]trimtab.Held {
	all := map[string]trimtab.Held{}
	for i := range 2500 {
		all[fmt.Sprint("v", i)] = trimtab.Held{Code: codes.HeldOld, Text: "old"}
	}
	all["w"] = all["v0"]
	return all
})

// inPieces are the pieces of a plan.
func inPieces(p *trimtab.Plan) (out []*trimtab.Plan) {
	pieces, _ := p.Split()
	for _, v := range pieces {
		out = append(out, v.(*trimtab.Plan))
	}
	return out
}

// inOrder puts the actions in the order of their hosts.
func inOrder(p *trimtab.Plan) *trimtab.Plan {
	slices.SortFunc(p.Actions, func(a, b trimtab.Action) int { return a.KnobID.Compare(b.KnobID) })
	if len(p.Actions) == 0 {
		p.Actions = nil
	}
	return p
}

func TestAPlanThatWasSplitIsWholeAgainInWhateverOrderItsPiecesCome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var parts, got, want []*trimtab.Plan
		for i := range 3 {
			p := aPlan(t)
			p.Epoch = uint64(i + 1)
			travels := *p
			travels.Hosts = nil
			want = append(want, inOrder(&travels))
			for _, part := range inPieces(p) {
				for range rapid.IntRange(1, 2).Draw(t, "deliveries") {
					parts = append(parts, part)
				}
			}
		}
		var join joiner
		for _, part := range rapid.Permutation(parts).Draw(t, "order") {
			for _, p := range join.add(part) {
				got = append(got, inOrder(p))
			}
		}
		slices.SortFunc(got, func(a, b *trimtab.Plan) int { return int(a.Epoch) - int(b.Epoch) })
		if !reflect.DeepEqual(want, got) {
			t.Fatal(cmp.Diff(want, got))
		}
	})
}

func TestAPartHasWhatItsHostHasToDoAndNothingOfOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := aPlan(t)
		_, parts := p.Split()
		if len(parts) != len(p.Hosts) {
			t.Fatalf("%d parts for %d hosts", len(parts), len(p.Hosts))
		}
		for i, v := range parts {
			part := v.(*trimtab.Plan)
			if err := part.Validate(); err != nil {
				t.Fatal(err)
			}
			if part.Host != p.Hosts[i] || part.Kind() != trimtab.KindPart || part.Key() != "p/"+part.Host || part.Held != nil {
				t.Fatalf("part of %s: %+v", p.Hosts[i], part)
			}
			for _, a := range p.Actions {
				if has := slices.ContainsFunc(part.Actions, func(b trimtab.Action) bool { return b.KnobID == a.KnobID }); has != (a.Host == part.Host) {
					t.Fatalf("part of %s has %s: %t", part.Host, a.Name(), has)
				}
			}
		}
	})
}

func TestAPieceOfAPlanIsSmallAndNoHostReadsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := aPlan(t)
		for _, piece := range inPieces(p) {
			if err := piece.Validate(); err != nil {
				t.Fatal(err)
			}
			if n := len(piece.Actions) + len(piece.Held) + len(piece.Unmoved); n > 1002 || piece.Kind() != trimtab.KindPlan || piece.Key() != "p/" {
				t.Fatalf("piece %d of %d has %d entries, on %s %q", piece.Piece, piece.Pieces, n, piece.Kind(), piece.Key())
			}
		}
	})
}

func TestAPlanForOneHostTravelsWhole(t *testing.T) {
	p := &trimtab.Plan{Pool: "p", Hosts: []string{"h0"}}
	if pieces, parts := p.Split(); len(pieces) != 1 || pieces[0] != trimtab.Value(p) || len(parts) != 0 || p.Key() != "p" {
		t.Errorf("%+v, %+v", pieces, parts)
	}
}

func TestAPlanOfWhichAPieceIsMissingIsGivenUpForLaterOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		several := func() []*trimtab.Plan {
			p := aPlan(t)
			p.Held = maps.Clone(thousands())
			return inPieces(p)
		}
		lost := several()
		lost = lost[:rapid.IntRange(1, len(lost)-1).Draw(t, "arrived")]
		held := 0
		var join joiner
		for _, piece := range lost {
			held += len(piece.Held)
			if got := join.add(piece); got != nil {
				t.Fatalf("%+v", got)
			}
		}
		var got []*trimtab.Plan
		for i := range 2 * 4 {
			pieces := several()
			for _, piece := range pieces[:len(pieces)-1] {
				piece.Epoch += uint64(i + 1)
				got = append(got, join.add(piece)...)
			}
		}
		if len(got) != 1+4 || got[0].Epoch != 1 || got[0].Pieces != 0 || len(got[0].Held) != held {
			t.Fatalf("%d plans: %+v", len(got), got)
		}
	})
}

func TestAPartOrPieceIsRefusedThatIsNotWhatItSays(t *testing.T) {
	for name, p := range map[string]trimtab.Plan{
		"an action of another host": {Host: "h1", Actions: []trimtab.Action{{KnobID: trimtab.KnobID{Pool: "p", Host: "h2", Workload: "w", Resource: "cpu"}, Mode: trimtab.Act}}},
		"a piece for a host":        {Piece: 1, Pieces: 2, Host: "h1"},
		"a piece beyond the last":   {Piece: 3, Pieces: 2},
		"a piece before the first":  {Piece: -1, Pieces: 2},
		"pieces without a number":   {Pieces: 2},
		"too many pieces":           {Piece: 1, Pieces: 1 << 40},
	} {
		p.Pool, p.Epoch, p.Sequence, p.Step, p.Time, p.Lease = "p", 1, 1, 1, time.Unix(1, 0), 60
		if p.Validate() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestTheHostsOfAPlanDoNotTravel(t *testing.T) {
	b, err := json.Marshal(&trimtab.Plan{Pool: "p", Hosts: []string{"h1", "h2"}})
	var back trimtab.Plan
	if err != nil || json.Unmarshal(b, &back) != nil || back.Hosts != nil {
		t.Errorf("%s %v", b, err)
	}
}
