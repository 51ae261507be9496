package colocate

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// plant is a service with jobs beside it: under a slacklimit below what it stands, a
// tick misses the SLO with the chance of bad, and of good above.
type plant struct {
	stands, good, bad float64
	search            *Search
	random            *rand.Rand
	missed, ticks     int
}

func newPlant(share, stands float64, seed uint64) *plant {
	return &plant{stands: stands, bad: 0.2, search: NewSearch(share), random: rand.New(rand.NewPCG(seed, 1))}
}

// slackAlone is the slack of the service without a job.
const slackAlone = 0.6

func (p *plant) run(ticks int) {
	for range ticks {
		chance := p.good
		if p.search.SlackLimit < p.stands {
			chance = p.bad
		}
		e := Evidence{Held: true, Ran: p.search.SlackLimit < slackAlone, Slack: slackAlone, Load: 0.5, Share: p.search.Share}
		if e.Ran {
			e.Held = p.random.Float64() >= chance
		}
		if p.ticks++; !e.Held {
			p.missed++
		}
		p.search.Observe(SearchConfig{}, e)
	}
}

func TestTheSearchEndsAboveWhatTheServiceStandsAndKeepsItsBudget(t *testing.T) {
	for _, share := range []float64{0, 0.1, 0.5, 0.95, 1} { // steps of 0.25 and of 0.05
		for _, stands := range []float64{0, 0.05, 0.2, 0.4} {
			p := newPlant(share, stands, 1)
			p.run(16 * 300)
			if limit := p.search.SlackLimit; limit < stands || limit > stands+0.3 || !p.search.Done {
				t.Errorf("share %v, it stands %v: %+v", share, stands, p.search)
			}
			if float64(p.missed) > 0.01*float64(p.ticks) {
				t.Errorf("share %v, it stands %v: %d of %d ticks missed", share, stands, p.missed, p.ticks)
			}
		}
	}
}

func TestACandidateThatMissesTheSLOIsGivenUpAtOnce(t *testing.T) {
	p := newPlant(0.9, 0, 1)
	p.run(6 * 300)
	limit := p.search.SlackLimit
	p.bad, p.stands = 1, 1
	if p.run(4); p.search.SlackLimit <= limit { // 3 of 300 are the budget
		t.Errorf("%+v after 4 misses, was %v", p.search, limit)
	}
}

func TestWhenTheSLOIsMissedLaterTheSearchGoesOnFromAbove(t *testing.T) {
	p := newPlant(0.5, 0.1, 1)
	p.run(16 * 300)
	found := p.search.SlackLimit
	p.stands = found + 0.1 // it stands less now
	p.run(16 * 300)
	if p.search.Restarts == 0 || p.search.SlackLimit < p.stands {
		t.Errorf("%+v, it stands %v", p.search, p.stands)
	}
}

func TestAnotherContributionBeginsTheSearchAnew(t *testing.T) {
	p := newPlant(0.5, 0.1, 1)
	p.run(16 * 300)
	found := p.search.SlackLimit
	p.search.Observe(SearchConfig{}, Evidence{Held: true, Share: 0.8})
	if p.search.Done || p.search.SlackLimit <= found || p.search.Share != 0.8 {
		t.Errorf("%+v, found %v", p.search, found)
	}
}

func TestTheLoadlimitRisesWithWhatWasHeldNearIt(t *testing.T) {
	s := NewSearch(0.5)
	near := Evidence{Held: true, Ran: true, Slack: 0.9, Load: 0.84, Share: 0.5}
	for range 1000 {
		near.Load = s.LoadLimit - 0.01
		s.Observe(SearchConfig{}, near)
	}
	if s.LoadLimit != greatestLoad {
		t.Errorf("%v, want %v", s.LoadLimit, greatestLoad)
	}
	near.Held = false
	if s.Observe(SearchConfig{}, near); s.LoadLimit >= greatestLoad || !s.LoadDone {
		t.Errorf("%+v: want it lower, and no rise any more", s)
	}
}

func TestLimitsStayWithinTheirBoundsWhateverIsObserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := NewSearch(rapid.Float64Range(0, 1).Draw(t, "share"))
		for range rapid.IntRange(0, 300).Draw(t, "ticks") {
			e := Evidence{Held: rapid.Bool().Draw(t, "held"), Ran: rapid.Bool().Draw(t, "ran"),
				Slack: rapid.Float64().Draw(t, "slack"), Load: rapid.Float64().Draw(t, "load"), Share: rapid.Float64Range(-0.1, 1.1).Draw(t, "share now")}
			s.Observe(SearchConfig{Window: 20e9}, e)
			if !s.valid() || s.SlackLimit < leastSlack || s.LoadLimit > greatestLoad || s.LoadLimit < leastLoad {
				t.Fatalf("%+v after %+v", s, e)
			}
		}
	})
}

func TestASearchIsASmallValue(t *testing.T) {
	p := newPlant(0.5, 0.1, 1)
	p.run(3000)
	b, err := json.Marshal(p.search)
	var back Search
	if err != nil || json.Unmarshal(b, &back) != nil || !reflect.DeepEqual(back, *p.search) || len(b) > 400 {
		t.Errorf("%s: %v", b, err)
	}
}
