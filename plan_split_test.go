package trimtab_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

// aPlan is a plan over hosts h0, h1, …, of which actions may leave some out.
func aPlan(t *rapid.T) *trimtab.Plan {
	hosts := []string{"h0", "h1", "h2", "h3"}[:rapid.IntRange(2, 4).Draw(t, "hosts")]
	p := &trimtab.Plan{
		Pool: "p", Epoch: 1, Sequence: rapid.Uint64Range(1, 3).Draw(t, "sequence"), Step: rapid.IntRange(1, 2).Draw(t, "step"), Last: true,
		Time: time.Unix(1, 0).UTC(), Lease: 60, Capacity: 9, Hosts: hosts, Held: map[string]trimtab.Held{"w": {Code: trimtab.HeldOld, Text: "old"}},
	}
	for i := range rapid.IntRange(0, 6).Draw(t, "actions") {
		p.Actions = append(p.Actions, trimtab.Action{
			KnobID: trimtab.KnobID{Pool: "p", Host: rapid.SampledFrom(hosts).Draw(t, "host"), Workload: string(rune('a' + i)), Resource: trimtab.CPU},
			Mode:   trimtab.Act, Set: trimtab.Units(float64(i)),
		})
	}
	return p
}

// inOrder puts the actions in the order of their hosts.
func inOrder(p *trimtab.Plan) *trimtab.Plan {
	slices.SortFunc(p.Actions, func(a, b trimtab.Action) int { return a.KnobID.Compare(b.KnobID) })
	if len(p.Actions) == 0 {
		p.Actions = nil
	}
	return p
}

func TestAPlanThatWasSplitIsWholeAgainInWhateverOrderItsPartsCome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var parts, got, want []*trimtab.Plan
		for i := range 3 {
			p := aPlan(t)
			p.Epoch = uint64(i + 1)
			travels := *p
			travels.Hosts = nil
			want = append(want, inOrder(&travels))
			for _, part := range p.Split() {
				for range rapid.IntRange(1, 2).Draw(t, "deliveries") {
					parts = append(parts, part)
				}
			}
		}
		var join trimtab.Joiner
		for _, part := range rapid.Permutation(parts).Draw(t, "order") {
			for _, p := range join.Take(part) {
				got = append(got, inOrder(p))
			}
		}
		slices.SortFunc(got, func(a, b *trimtab.Plan) int { return int(a.Epoch) - int(b.Epoch) })
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	})
}

func TestAPartHasWhatItsHostHasToDoAndNothingOfOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := aPlan(t)
		parts := p.Split()
		if len(parts) != len(p.Hosts)+1 || parts[0].Parts != len(p.Hosts) || parts[0].Key() != "p/" || len(parts[0].Held) != len(p.Held) {
			t.Fatalf("%d parts, head %+v", len(parts), parts[0])
		}
		for i, part := range parts {
			if err := part.Validate(); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				continue
			}
			if part.Host != p.Hosts[i-1] || part.Key() != "p/"+part.Host || part.Held != nil {
				t.Fatalf("part of %s: %+v", p.Hosts[i-1], part)
			}
			for _, a := range p.Actions {
				if has := slices.ContainsFunc(part.Actions, func(b trimtab.Action) bool { return b.KnobID == a.KnobID }); has != (a.Host == part.Host) {
					t.Fatalf("part of %s has %s: %t", part.Host, a.Name(), has)
				}
			}
		}
	})
}

func TestAPlanForOneHostTravelsWhole(t *testing.T) {
	p := &trimtab.Plan{Pool: "p", Hosts: []string{"h0"}}
	if parts := p.Split(); len(parts) != 1 || parts[0] != p || p.Key() != "p" {
		t.Errorf("%+v", parts)
	}
}

func TestAPlanOfWhichAPartIsMissingIsGivenUpForLaterOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lost := aPlan(t).Split()
		lost = lost[:rapid.IntRange(1, len(lost)-1).Draw(t, "arrived")]
		var join trimtab.Joiner
		for _, part := range lost {
			if got := join.Take(part); got != nil {
				t.Fatalf("%+v", got)
			}
		}
		var got []*trimtab.Plan
		for i := range 2 * 4 {
			p := aPlan(t)
			p.Epoch += uint64(i + 1)
			parts := p.Split()
			for _, part := range parts[:len(parts)-1] {
				got = append(got, join.Take(part)...)
			}
		}
		if len(got) != 1+4 || got[0].Epoch != 1 || got[0].Parts != 0 {
			t.Fatalf("%d plans: %+v", len(got), got)
		}
	})
}

func TestAPartIsRefusedThatIsNotOfItsHost(t *testing.T) {
	for name, p := range map[string]trimtab.Plan{
		"an action of another host": {Host: "h1", Actions: []trimtab.Action{{KnobID: trimtab.KnobID{Pool: "p", Host: "h2", Workload: "w", Resource: "cpu"}, Mode: trimtab.Act}}},
		"a head with actions":       {Parts: 2, Actions: []trimtab.Action{{KnobID: trimtab.KnobID{Pool: "p", Host: "h2", Workload: "w", Resource: "cpu"}, Mode: trimtab.Act}}},
		"a head for a host":         {Parts: 2, Host: "h1"},
		"less than no parts":        {Parts: -1},
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
